// The conversations at the side: each with its forks below it.

import { Refused, ask } from "./api.js";
import { ICONS, button, el, fill } from "./dom.js";
import { many, when } from "./words.js";

/** The list.
 *
 * @param {Element} node where it is shown
 * @param {{open: function(string), remove: function(object)}} acts
 */
export class Tree {
  constructor(node, acts) {
    this.node = node;
    this._acts = acts;
    this._current = null;
    this._asked = 0;
    this._written = new Map();
  }

  /** Reads the list anew. An answer that comes after a later one is of no use. */
  async refresh() {
    const asked = (this._asked += 1);
    let list;
    try {
      const { tree } = await ask("GET", "v1/tree");
      if (asked !== this._asked) return;
      this._written.clear();
      list = tree.length
        ? this._list(tree)
        : note("Nothing is kept yet. What you say next is.");
    } catch (error) {
      if (asked !== this._asked) return;
      list = note(complaint(error));
    }
    const focused = this.node.contains(document.activeElement) && document.activeElement;
    fill(this.node, list);
    this.mark(this._current);
    if (focused) this._refocus(focused);
  }

  /** When a conversation was last written, as the list has it. */
  written(conversation) {
    return this._written.get(conversation);
  }

  /** Shows which one is open. */
  mark(conversation) {
    this._current = conversation;
    for (const each of this.node.querySelectorAll("a")) {
      const isCurrent = each.dataset.conversation === conversation;
      if (isCurrent) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    }
  }

  /** Puts the focus where it was, or to the first one if that is gone. */
  _refocus({ ariaLabel, dataset }) {
    const all = [...this.node.querySelectorAll("a, button")];
    const same = (one) =>
      one.ariaLabel === ariaLabel && one.dataset.conversation === dataset.conversation;
    (all.find(same) ?? all[0])?.focus();
  }

  _list(branches) {
    return el("ul", {}, ...branches.map((branch) => this._item(branch)));
  }

  _item({ conversation, forks = [] }) {
    const { id, title } = conversation;
    const count = many(conversation.messages, "message");
    const about = conversation.forked_at
      ? [`forked at ${conversation.forked_at}`, count]
      : [count, when(conversation.updated)];
    this._written.set(id, conversation.updated);
    const open = el(
      "a",
      { href: `#${encodeURIComponent(id)}`, "data-conversation": id },
      el("span", { class: "title", dir: "auto", text: title || "No words" }),
      el("small", {}, about.join(" · ")),
      conversation.paused ? el("small", { class: "badge", text: "waits" }) : null,
    );
    open.addEventListener("click", (event) => {
      event.preventDefault();
      this._acts.open(id);
    });
    const remove = button(`Delete “${title}”`, ICONS.trash, () => this._acts.remove(conversation), {
      class: "quiet",
      "data-conversation": id,
    });
    return el(
      "li",
      {},
      el("div", { class: "item" }, open, remove),
      forks.length ? this._list(forks) : null,
    );
  }
}

function note(text) {
  return el("p", { class: "note", text });
}

function complaint(error) {
  if (error.code === "forbidden") return "Your key has no scope “conversations”.";
  return error instanceof Refused ? error.message : "The server cannot be reached.";
}
