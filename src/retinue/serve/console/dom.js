// Makes nodes. It is the only way that this page makes any: text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element.
 *
 * @param {string} tag
 * @param {object} given attributes; `class`, `text`, and `on` for listeners, are among them. False,
 *     null and undefined leave an attribute out, true writes it without a value.
 * @param {...(Node|string|null)} children
 */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** An icon: one path in a box of 16 by 16, in the colour of the text. */
export function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  const attributes = { viewBox: "0 0 16 16", "aria-hidden": "true", class: "icon" };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export const ICONS = {
  check: "M3.5 8.5l3 3 6-7",
  copy: "M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2",
  cross: "M4 4l8 8M12 4l-8 8",
  down: "M8 3v10M4 9l4 4 4-4",
  fork: "M4 3v10M4 8h4a4 4 0 0 0 4-4V3M2.5 4.5L4 3l1.5 1.5M10.5 4.5L12 3l1.5 1.5",
  hand: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M6.5 6v4M9.5 6v4",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  onion: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12M8 4.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7M8 7v2",
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  undo: "M6 3L3 6l3 3M3 6h6a4 4 0 0 1 0 8H6",
};

/** A button with an icon, a label that is read out, and perhaps words. */
export function button(label, path, press, { words = "", ...more } = {}) {
  return el(
    "button",
    {
      type: "button",
      "aria-label": words ? null : label,
      title: label,
      on: { click: press },
      ...more,
    },
    path ? icon(path) : null,
    words ? el("span", { text: words }) : null,
  );
}

/** Whether a key only goes to an input method, as where it picks a word of Japanese. Safari ends the
 * composition before it tells of the key, and only its number still shows it. */
export function composes(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Takes all children away and puts others in their place. */
export function fill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function filled(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}
