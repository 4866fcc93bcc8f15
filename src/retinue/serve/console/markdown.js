// Markdown as nodes of the page. The text comes from a model and is trusted in nothing: no markup of
// its own is read, no picture is fetched, and links lead only to http, https and mailto.

import { blocks } from "./blocks.js";
import { ICONS, button, el } from "./dom.js";
import { textOf } from "./inline.js";

const SAFE = new Set(["http:", "https:", "mailto:"]);
const MARKS = { strong: "strong", em: "em", del: "del" };

/** A text that may still be growing. Of what is shown, only the last blocks are read anew, and of
 * their nodes only those are touched that look different now. */
export class Markdown {
  constructor() {
    this.node = el("div", { class: "prose" });
    this.text = "";
    this._from = 0;
    this._settled = 0;
  }

  /** Shows this text; mostly it is the last one and more. */
  show(text) {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) {
      this._from = this._settled = 0;
    }
    this.text = text;
    const rest = text.slice(this._from);
    const lines = rest.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");
    const found = blocks(lines);
    const fresh = found.map((block) => nodeOf(block, "auto"));
    matchChildren(this.node, fresh, this._settled);
    // Where a block begins is certain when its first two lines are whole.
    const certain = found.findLastIndex((block) => block.from < lines.length - 2);
    if (certain > 0) {
      this._settled += certain;
      this._from += offsetOf(rest, found[certain].from);
    }
  }
}

/** Where the line of this number begins. */
function offsetOf(text, line) {
  let at = 0;
  for (let passed = 0; passed < line; passed += 1) at = text.indexOf("\n", at) + 1;
  return at;
}

/** Makes the children of a node, from one of them on, look like fresh ones. What looks so already
 * stays, and with it what a reader has selected in it, scrolled or focused. */
function matchChildren(node, fresh, from = 0) {
  const shown = [...node.childNodes].slice(from);
  fresh.forEach((child, at) => {
    const old = shown[at];
    if (!old) node.append(child);
    else if (!isAlike(old, child)) old.replaceWith(child);
    else if (child.nodeType === Node.TEXT_NODE) matchText(old, child.data);
    else matchChildren(old, [...child.childNodes]);
  });
  for (const left of shown.slice(fresh.length)) left.remove();
}

function isAlike(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return false;
  const names = fresh.getAttributeNames?.() ?? [];
  return (
    names.length === (old.attributes?.length ?? 0) &&
    names.every((name) => old.getAttribute(name) === fresh.getAttribute(name))
  );
}

function matchText(node, data) {
  if (data.startsWith(node.data)) node.appendData(data.slice(node.data.length));
  else node.data = data;
}

/** A block. The direction of its script is that of its first letter; what is in it follows it. */
function nodeOf(block, dir = null) {
  switch (block.kind) {
    case "heading":
      // The page has headings of its own above these.
      return el(`h${Math.min(block.level + 2, 6)}`, { dir }, ...spans(block.children));
    case "code":
      return codeOf(block);
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", { dir }, ...block.blocks.map((inner) => nodeOf(inner)));
    case "list":
      return listOf(block, dir);
    case "table":
      return tableOf(block);
    default:
      return el("p", { dir }, ...spans(block.children));
  }
}

function codeOf(block) {
  const code = el("code", { text: block.text });
  const copy = button("Copy the code", ICONS.copy, () => copied(copy, code.textContent), {
    class: "quiet",
  });
  return el(
    "figure",
    { class: "code", dir: "ltr" },
    el("figcaption", {}, el("span", { text: block.language || "code" }), copy),
    el("pre", { tabindex: "0" }, code),
  );
}

/** Puts a text on the clipboard, and says so on the button. */
export async function copied(press, text) {
  try {
    await navigator.clipboard.writeText(text);
    press.dataset.said = "Copied";
  } catch {
    press.dataset.said = "The browser forbids it";
  }
  setTimeout(() => delete press.dataset.said, 1500);
}

function listOf(block, dir) {
  const start = block.ordered && block.start !== 1 ? block.start : null;
  return el(block.ordered ? "ol" : "ul", { start, dir }, ...block.items.map(itemOf));
}

function itemOf(item) {
  const box =
    item.checked === null
      ? null
      : el("input", {
          type: "checkbox",
          checked: item.checked,
          disabled: true,
          "aria-label": item.checked ? "done" : "to do",
        });
  const [first, ...rest] = item.blocks;
  const isTight = first?.kind === "paragraph" && rest.every((block) => block.kind === "list");
  const inside = isTight
    ? [...spans(first.children), ...rest.map((block) => nodeOf(block))]
    : item.blocks.map((block) => nodeOf(block));
  return el("li", { class: box ? "task" : null }, box, ...inside);
}

function tableOf(block) {
  const row = (tag, cells) =>
    el(
      "tr",
      {},
      ...cells.map((cell, at) =>
        el(tag, { class: `to-${block.align[at]}`, dir: "auto" }, ...spans(cell)),
      ),
    );
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" },
    el(
      "table",
      {},
      el("thead", {}, row("th", block.head)),
      el("tbody", {}, ...block.rows.map((cells) => row("td", cells))),
    ),
  );
}

function spans(nodes) {
  return nodes.map(span);
}

function span(node) {
  switch (node.kind) {
    case "text":
      return document.createTextNode(node.text);
    case "code":
      return el("code", { text: node.text });
    case "break":
      return el("br");
    case "link":
      return linkOf(node);
    default:
      return el(MARKS[node.kind], {}, ...spans(node.children));
  }
}

function linkOf(node) {
  const href = safe(node.href);
  const words = node.image ? [`image: ${textOf(node) || node.href}`] : spans(node.children);
  if (href === null)
    return el(
      "span",
      { class: "dead", title: `This link is not followed: ${node.href}` },
      ...words,
    );
  return el(
    "a",
    { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" },
    ...words,
  );
}

/** The address if it may be followed, or null. */
function safe(href) {
  try {
    const address = new URL(href);
    return SAFE.has(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}
