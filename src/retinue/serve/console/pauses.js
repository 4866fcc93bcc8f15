// What a paused turn waits for, as cards: each call with its arguments and the answers it takes.

import { ICONS, button, el, fill } from "./dom.js";
import { many, pretty } from "./words.js";

const TITLES = {
  approval: "May this call run?",
  question: "A question for you",
  external: "You run this tool; give its result",
  environment: "Something must be mended first",
};

/** The cards of a pause. A single answer is sent at once; several are gathered and sent together.
 *
 * @param {object[]} pending the calls that wait
 * @param {function(object): Promise} send sends answers by id; rejects with the reason
 */
export class Pauses {
  constructor(pending, send) {
    this._cards = pending.map((call) => new Card(call, () => this._decided()));
    this._send = send;
    this._complaint = el("p", { class: "complaint", role: "alert" });
    this._submit = button("Send", null, () => this._deliver(), { words: "Send", class: "primary" });
    this._line = el(
      "div",
      { class: "line", hidden: pending.length < 2 },
      this._submit,
      el("small", {
        text: "Calls that you leave out go on waiting.",
      }),
    );
    this.node = el(
      "section",
      { class: "pause", "aria-label": `${many(pending.length, "call")} waiting for an answer` },
      ...this._cards.map((card) => card.node),
      this._line,
      this._complaint,
    );
    for (const card of this._cards) card.begin();
    this._decided(false);
  }

  _decided(mayDeliver = true) {
    const count = this._cards.filter((card) => card.answer).length;
    this._submit.disabled = count === 0;
    this._submit.lastChild.textContent = `Send ${count} of ${many(this._cards.length, "answer")}`;
    this._complaint.textContent = "";
    if (mayDeliver && this._cards.length === 1 && count === 1) this._deliver();
  }

  async _deliver() {
    const decided = this._cards.filter((card) => card.answer);
    this.node.inert = true;
    try {
      await this._send(Object.fromEntries(decided.map((card) => [card.call.id, card.answer])));
    } catch (error) {
      this.node.inert = false;
      this._complaint.textContent = error.message;
      if (this._cards.length === 1) this._cards[0].reopen();
    }
  }
}

class Card {
  constructor(call, decided) {
    this.call = call;
    this.answer = null;
    this._decided = decided;
    this._area = el("div", { class: "area" });
    this._buttons = el("div", {
      class: "line",
      role: "group",
      "aria-label": `Answers for ${call.tool}`,
    });
    const given = call.arguments ?? {};
    this.node = el(
      "div",
      { class: "card" },
      el("h3", {}, el("span", { text: TITLES[call.kind] }), el("code", { text: call.tool })),
      el("p", { text: call.why, dir: "auto" }),
      Object.keys(given).length
        ? el("pre", { tabindex: "0", dir: "ltr", "aria-label": "Arguments", text: pretty(given) })
        : null,
      this._buttons,
      this._area,
    );
    this._offer();
  }

  /** Takes the answer back, and leaves what was written. */
  reopen() {
    this.answer = null;
    for (const each of this._buttons.children) each.setAttribute("aria-pressed", "false");
  }

  _offer() {
    const { kind } = this.call;
    const choose = (answer) => (event) => this._choose(answer, event.currentTarget);
    const write = (form) => (event) => this._write(form, event.currentTarget);
    const offers = {
      approval: [
        ["Approve", ICONS.check, choose({ kind: "approve" }), "primary"],
        ["Edit…", null, write("edit")],
        ["Reject…", null, write("reject")],
        ["Reply…", null, write("reply")],
      ],
      question: [
        ["Answer…", null, write("reply"), "primary"],
        ["Decline…", null, write("reject")],
      ],
      external: [
        ["Give the result…", null, write("reply"), "primary"],
        ["It was not run…", null, write("reject")],
      ],
      environment: [
        ["Try again", ICONS.check, choose({ kind: "retry" }), "primary"],
        ["Go on with the failure", null, choose({ kind: "proceed" })],
      ],
    };
    for (const [words, path, press, style] of offers[kind]) {
      this._buttons.append(
        button(words, path, press, { words, class: style, "aria-pressed": "false" }),
      );
    }
  }

  /** A question has its box open from the start. */
  begin() {
    if (this.call.kind === "question") this._write("reply", this._buttons.firstChild, false);
  }

  _press(pressed) {
    for (const each of this._buttons.children)
      each.setAttribute("aria-pressed", String(each === pressed));
  }

  _choose(answer, pressed) {
    this._press(pressed);
    fill(this._area);
    this.answer = answer;
    this._decided();
  }

  /** Opens a box to write in. Ctrl+Enter sends it, Escape closes it. */
  _write(form, pressed, focus = true) {
    this._press(pressed);
    this.answer = null;
    this._decided(false);
    const about = FORMS[form];
    const label = el("span", { text: about.label(this.call) });
    const box = el("textarea", {
      rows: "3",
      dir: "auto",
      spellcheck: form === "edit" ? "false" : null,
      class: about.code ? "mono" : null,
    });
    box.value = about.start(this.call);
    box.rows = Math.min(14, Math.max(3, box.value.split("\n").length + 1));
    const complaint = el("p", { class: "complaint", role: "alert" });
    const done = () => {
      try {
        this.answer = about.read(box.value);
      } catch (error) {
        complaint.textContent = error.message;
        box.setAttribute("aria-invalid", "true");
        box.focus();
        return;
      }
      complaint.textContent = "";
      box.removeAttribute("aria-invalid");
      this._decided();
    };
    box.addEventListener("keydown", (event) => {
      if (
        event.key === "Enter" &&
        (event.ctrlKey || event.metaKey || !(about.code || event.shiftKey || event.isComposing))
      ) {
        event.preventDefault();
        done();
      } else if (event.key === "Escape") {
        event.stopPropagation();
        fill(this._area);
        this._press(null);
        pressed.focus();
      }
    });
    fill(
      this._area,
      el("label", {}, label, box),
      complaint,
      button(about.words, ICONS.check, done, { words: about.words, class: "primary" }),
    );
    if (focus) box.focus();
  }
}

const FORMS = {
  edit: {
    words: "Approve with these arguments",
    code: true,
    label: () => "The arguments, as a JSON object (Ctrl+Enter sends them)",
    start: (call) => pretty(call.arguments ?? {}),
    read(text) {
      let args;
      try {
        args = JSON.parse(text);
      } catch (error) {
        throw new Error(`This is no JSON: ${error.message}.`);
      }
      if (args === null || typeof args !== "object" || Array.isArray(args)) {
        throw new Error("The arguments are a JSON object: { … }.");
      }
      return { kind: "approve", args };
    },
  },
  reject: {
    words: "Reject",
    label: () => "Why? The model is told",
    start: () => "",
    read: (text) => ({ kind: "reject", reason: text.trim() }),
  },
  reply: {
    words: "Send the reply",
    label: (call) =>
      call.kind === "question" ? "Your answer" : "The result; the tool does not run",
    start: () => "",
    read(text) {
      if (!text.trim()) throw new Error("Write something first.");
      return { kind: "reply", value: text };
    },
  },
};
