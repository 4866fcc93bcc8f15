// The inside of a paragraph in Markdown: text to a tree, with no page and no DOM.
//
// Node: {kind: "text" | "code" | "break", text} or {kind: "strong" | "em" | "del" | "link", children}.
// It is CommonMark as models write it, with one change: what stands beside `*` counts only as space
// or no space, so that emphasis works in scripts that set no spaces. It takes time in proportion to
// the text, and nests to a bounded depth.

const DEEPEST = 12;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const SPACE = /\s/u;
const WORD = /[\p{L}\p{N}]/u;
const BARE = /https?:\/\/[^\s<>"`]+/y;
const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const PLAIN = /[^\\`*_~[\]!<\nhH]+/y;

/** The tree of a text. */
export function inline(text) {
  const scan = new Scan(text);
  while (scan.at < text.length) scan.step();
  return emphasised(scan.tokens.map(settled));
}

class Scan {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.tokens = [];
    this.brackets = [];
    this.ticks = null;
  }

  step() {
    const { text } = this;
    const sign = text[this.at];
    switch (sign) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "*":
      case "_":
      case "~":
        return this.delimiter(sign);
      case "\n":
        return this.breakLine();
      case "!":
        return text[this.at + 1] === "[" ? this.open(2, true) : this.say(1);
      case "[":
        return this.open(1, false);
      case "]":
        return this.close();
      case "<":
        return this.link(ANGLED, 1);
      case "h":
      case "H":
        return this.bare();
      default:
        return this.say(match(PLAIN, text, this.at)[0].length);
    }
  }

  say(length) {
    this.tokens.push({ kind: "text", text: this.text.slice(this.at, this.at + length) });
    this.at += length;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") {
      this.at += 1;
      this.breakLine();
    } else if (next !== undefined && PUNCTUATION.test(next)) {
      this.at += 1;
      this.say(1);
    } else this.say(1);
  }

  breakLine() {
    this.tokens.push({ kind: "break", text: "\n" });
    this.at += 1;
    while (this.text[this.at] === " ") this.at += 1;
  }

  code() {
    const { text, at } = this;
    this.ticks ??= runsOf(text);
    const length = runLength(text, at, "`");
    const ends = this.ticks.get(length) ?? []; // an escape can cut a run short
    while (ends.length && ends[0] < at + length) ends.shift();
    if (!ends.length) return this.say(length);
    const inside = text.slice(at + length, ends[0]).replaceAll("\n", " ");
    const padded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
    this.tokens.push({ kind: "code", text: padded ? inside.slice(1, -1) : inside });
    this.at = ends[0] + length;
  }

  delimiter(sign) {
    const { text, at } = this;
    const length = runLength(text, at, sign);
    const before = text[at - 1] ?? " ";
    const after = text[at + length] ?? " ";
    let opens = !SPACE.test(after);
    let closes = !SPACE.test(before);
    if (sign === "_") {
      opens &&= !WORD.test(before);
      closes &&= !WORD.test(after);
    }
    if (length > 3 || (sign === "~" && length !== 2) || !(opens || closes)) return this.say(length);
    this.tokens.push({ kind: "delimiter", sign, length, opens, closes });
    this.at += length;
  }

  open(length, image) {
    this.brackets.push({ token: this.tokens.length, image });
    this.say(length);
  }

  close() {
    const bracket = this.brackets.pop();
    const target = bracket ? destination(this.text, this.at + 1) : null;
    if (target === null) return this.say(1);
    const inside = this.tokens.splice(bracket.token).slice(1);
    const children = emphasised(inside.map(settled).map(unlinked));
    this.tokens.push({ kind: "link", href: target.href, image: bracket.image, children });
    this.at = target.end;
  }

  bare() {
    const before = this.text[this.at - 1];
    const found =
      before !== undefined && WORD.test(before) ? null : match(BARE, this.text, this.at);
    if (found === null) return this.say(1);
    const href = trimmed(found[0]);
    this.tokens.push({ kind: "link", href, children: [{ kind: "text", text: href }] });
    this.at += href.length;
  }

  link(pattern, group) {
    const found = match(pattern, this.text, this.at);
    if (found === null) return this.say(1);
    const href = found[group];
    this.tokens.push({ kind: "link", href, children: [{ kind: "text", text: href }] });
    this.at += found[0].length;
  }
}

/** Tokens with their delimiters paired to emphasis; those without a partner are text. */
function emphasised(tokens) {
  const out = [];
  const openers = { "*": [], _: [], "~": [] };
  for (const token of tokens) {
    if (token.kind !== "delimiter") {
      out.push(token);
      continue;
    }
    const own = openers[token.sign];
    while (token.closes && token.length && own.length) {
      const at = own.at(-1);
      const opener = out[at];
      const used = Math.min(opener.length, token.length, 2);
      for (const others of Object.values(openers)) {
        while (others.length && others.at(-1) > at) others.pop();
      }
      const children = merged(out.splice(at + 1));
      const depth = children.reduce((most, child) => Math.max(most, child.depth ?? 0), 0) + 1;
      if (depth > DEEPEST) {
        own.pop(); // or each closer to come would look through all that is inside again
        for (const child of children) out.push(child);
        break;
      }
      opener.length -= used;
      token.length -= used;
      if (!opener.length) {
        own.pop();
        out.pop();
      }
      out.push({ kind: kindOf(token.sign, used), children, depth });
    }
    if (token.length) {
      if (token.opens) own.push(out.length);
      out.push(token);
    }
  }
  return merged(out);
}

function kindOf(sign, length) {
  if (sign === "~") return "del";
  return length === 2 ? "strong" : "em";
}

/** Neighbouring texts as one; delimiters that are left are text. */
function merged(nodes) {
  const out = [];
  for (const node of nodes) {
    const plain =
      node.kind === "delimiter" ? { kind: "text", text: node.sign.repeat(node.length) } : node;
    const last = out.at(-1);
    if (plain.kind === "text" && last?.kind === "text") last.text += plain.text;
    else if (plain.kind !== "text" || plain.text)
      out.push(plain.kind === "text" ? { ...plain } : plain);
  }
  return out;
}

function settled(token) {
  return token.kind === "delimiter" ? { ...token } : token;
}

/** A link holds no link. */
function unlinked(token) {
  return token.kind === "link" ? { kind: "text", text: textOf(token) } : token;
}

/** The text of a node and of all in it. */
export function textOf(node) {
  return node.children ? node.children.map(textOf).join("") : node.text;
}

/** What stands in the round brackets behind a link's words; null if it is none. */
function destination(text, at) {
  if (text[at] !== "(") return null;
  let depth = 0;
  for (let end = at; end < text.length && end < at + 4000; end += 1) {
    const sign = text[end];
    if (sign === "\n") return null;
    if (sign === "\\") end += 1;
    else if (sign === "(") depth += 1;
    else if (sign === ")" && (depth -= 1) === 0) {
      const [href] = text
        .slice(at + 1, end)
        .trim()
        .split(/\s/u, 1);
      return { href: href.replace(/^<|>$/g, ""), end: end + 1 };
    }
  }
  return null;
}

/** An address without the punctuation of the sentence that it ends. */
function trimmed(href) {
  let end = href.length;
  let unpaired = href.split(")").length - href.split("(").length;
  while (end > 8) {
    const last = href[end - 1];
    if (last === ")" && unpaired > 0) unpaired -= 1;
    else if (!".,;:!?'*_~]。，、；：！？）」』】".includes(last)) break;
    end -= 1;
  }
  return href.slice(0, end);
}

/** Where the runs of backticks begin, by their length. */
function runsOf(text) {
  const runs = new Map();
  for (let at = text.indexOf("`"); at >= 0; at = text.indexOf("`", at)) {
    const length = runLength(text, at, "`");
    if (!runs.has(length)) runs.set(length, []);
    runs.get(length).push(at);
    at += length;
  }
  return runs;
}

function runLength(text, at, sign) {
  let end = at;
  while (text[end] === sign) end += 1;
  return end - at;
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
