// The conversations at the side: each with its forks below it.

import { ask } from "./api.js";
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
  }

  /** Reads the list anew. */
  async refresh() {
    let tree;
    try {
      ({ tree } = await ask("GET", "v1/tree"));
    } catch (error) {
      const words =
        error.code === "forbidden" ? "Your key has no scope “conversations”." : error.message;
      fill(this.node, el("p", { class: "note", text: words }));
      return;
    }
    const isEmpty = tree.length === 0;
    fill(
      this.node,
      isEmpty
        ? el("p", { class: "note", text: "Nothing is kept yet. What you say next is." })
        : this._list(tree),
    );
    this.mark(this._current);
  }

  /** Shows which one is open. */
  mark(conversation) {
    this._current = conversation;
    for (const each of this.node.querySelectorAll("[data-conversation]")) {
      const isCurrent = each.dataset.conversation === conversation;
      if (isCurrent) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    }
  }

  _list(branches) {
    return el("ul", {}, ...branches.map((branch) => this._item(branch)));
  }

  _item({ conversation, forks = [] }) {
    const { id, title } = conversation;
    const about = [many(conversation.messages, "message"), when(conversation.updated)];
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
    });
    return el(
      "li",
      {},
      el("div", { class: "item" }, open, remove),
      forks.length ? this._list(forks) : null,
    );
  }
}
