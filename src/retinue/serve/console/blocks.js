// The blocks of a text in Markdown: lines to a tree, with no page and no DOM.
//
// Block: {kind, from, ...}; `from` is the number of its first line. A block that another one follows
// never changes when the text goes on, so that a text that is still being written needs only its
// last block read anew. Patterns have one way alone to match, so that no line takes more time than in
// proportion to its length.

import { inline } from "./inline.js";

const DEEPEST = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=\s|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const TASK = /^\[([ xX])\][ \t]/;
const COLUMN = /^:?-+:?$/;

/** The blocks of these lines. */
export function blocks(lines, depth = 0) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const read = depth < DEEPEST ? readerOf(lines, at) : paragraph;
    const [block, end] = read(lines, at, depth);
    found.push({ ...block, from: at });
    at = end;
  }
  return found;
}

function readerOf(lines, at) {
  const line = lines[at];
  if (FENCE.test(line)) return fence;
  if (HEADING.test(line)) return heading;
  if (RULE.test(line)) return rule;
  if (QUOTE.test(line)) return quote;
  if (ITEM.test(line)) return list;
  if (isTable(lines, at)) return table;
  return paragraph;
}

function fence(lines, at) {
  const [, mark, info] = FENCE.exec(lines[at]);
  const [language] = info.trim().split(/\s/, 1);
  const indent = indentOf(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], mark)) end += 1;
  const text = lines.slice(at + 1, end).map((line) => line.slice(Math.min(indent, indentOf(line))));
  const closed = end < lines.length;
  return [{ kind: "code", language, text: text.join("\n") }, closed ? end + 1 : end];
}

function closes(line, mark) {
  const bare = line.trim();
  return indentOf(line) < 4 && bare.length >= mark.length && bare === mark[0].repeat(bare.length);
}

function heading(lines, at) {
  const [opening, marks] = HEADING.exec(lines[at]);
  let text = lines[at].slice(opening.length).trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  if (end === 0 || text[end - 1] === " ") text = text.slice(0, end).trim();
  return [{ kind: "heading", level: marks.length, children: inline(text) }, at + 1];
}

function rule(lines, at) {
  return [{ kind: "rule" }, at + 1];
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [{ kind: "quote", blocks: blocks(inside, depth + 1) }, end];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at])[2];
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (found === null || !isSameList(first, found[2]) || (items.length && RULE.test(lines[end])))
      break;
    const [item, next] = itemOf(lines, end, found, depth);
    items.push(item);
    end = next;
  }
  const ordered = /\d/.test(first);
  return [{ kind: "list", ordered, start: ordered ? parseInt(first, 10) : 1, items }, end];
}

function isSameList(first, mark) {
  return first.at(-1) === mark.at(-1) && /\d/.test(first) === /\d/.test(mark);
}

function itemOf(lines, at, [opening, indent, mark, space], depth) {
  const width = indent.length + mark.length + Math.min(Math.max(space.length, 1), 4);
  const inside = [lines[at].slice(opening.length)];
  let end = at + 1;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    if (isBlank(line)) inside.push("");
    else if (indentOf(line) >= Math.min(width, indent.length + 2)) {
      inside.push(line.slice(Math.min(width, indentOf(line))));
    } else if (inside.at(-1) !== "" && !ITEM.test(line) && !startsBlock(lines, end))
      inside.push(line.trim());
    else break;
  }
  const task = TASK.exec(inside[0]);
  if (task) inside[0] = inside[0].slice(task[0].length);
  const checked = task ? task[1] !== " " : null;
  return [{ checked, blocks: blocks(inside, depth + 1) }, end];
}

function isTable(lines, at) {
  const [line, next] = [lines[at], lines[at + 1]];
  if (!line.includes("|") || !next?.includes("-")) return false;
  const columns = cellsOf(next);
  return columns.every((cell) => COLUMN.test(cell)) && columns.length === cellsOf(line).length;
}

function table(lines, at) {
  const align = cellsOf(lines[at + 1]).map(alignment);
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && lines[end].includes("|")) end += 1;
  const rows = lines.slice(at + 2, end).map((line) => cellsOf(line).slice(0, align.length));
  return [
    {
      kind: "table",
      align,
      head: cellsOf(lines[at]).map(inline),
      rows: rows.map((row) => align.map((_, column) => inline(row[column] ?? ""))),
    },
    end,
  ];
}

function alignment(cell) {
  if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "end";
  return "start";
}

/** The cells of a row; `\|` is no border. */
function cellsOf(line) {
  const cells = [""];
  let text = line.trim();
  if (text.startsWith("|")) text = text.slice(1);
  if (text.endsWith("|") && !text.endsWith("\\|")) text = text.slice(0, -1);
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cells[cells.length - 1] += "|";
      at += 1;
    } else if (text[at] === "|") cells.push("");
    else cells[cells.length - 1] += text[at];
  }
  return cells.map((cell) => cell.trim());
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines, end)) end += 1;
  const text = lines
    .slice(at, end)
    .map((line) => line.trimStart())
    .join("\n")
    .trimEnd();
  return [{ kind: "paragraph", children: inline(text) }, end];
}

/** Whether a line ends the paragraph before it. A number other than 1 is mostly a year or a sum. */
function startsBlock(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  if (item) return item[3] !== "" && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1);
  return (
    FENCE.test(line) ||
    HEADING.test(line) ||
    RULE.test(line) ||
    QUOTE.test(line) ||
    isTable(lines, at)
  );
}

function indentOf(line) {
  let at = 0;
  while (line[at] === " ") at += 1;
  return at;
}

function isBlank(line) {
  return line.trim() === "";
}
