// What a paused turn waits for, as cards: each call with its arguments and the answers it takes.

import { ICONS, button, composes, el, fill } from "./dom.js";
import { parse } from "./json.js";
import { many, pretty } from "./words.js";

const TITLES = {
  approval: "May this call run?",
  question: "A question for you",
  external: "You run this tool; give its result",
  environment: "Something must be mended first",
};

// The answers that a call takes: what stands on the button, and the answer or the form that asks for
// it. The first one is the usual one.
const OFFERS = {
  approval: [
    ["Approve", { kind: "approve" }],
    ["Edit…", "edit"],
    ["Reject…", "reject"],
    ["Reply…", "reply"],
  ],
  question: [
    ["Answer…", "reply"],
    ["Decline…", "reject"],
  ],
  external: [
    ["Give the result…", "reply"],
    ["It was not run…", "reject"],
  ],
  environment: [
    ["Try again", { kind: "retry" }],
    ["Go on with the failure", { kind: "proceed" }],
  ],
};

const FORMS = {
  edit: {
    words: "Approve with these arguments",
    code: true,
    label: () => "The arguments, as a JSON object (Ctrl+Enter when done)",
    start: (call) => pretty(call.arguments ?? {}),
    read(text) {
      let args;
      try {
        args = parse(text);
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

/** The cards of a pause. A single answer is sent at once; several are chosen and sent together.
 *
 * @param {object[]} pending the calls that wait
 * @param {function(object): Promise} send sends answers by id; rejects with the reason
 */
export class Pauses {
  constructor(pending, send) {
    this.isOne = pending.length === 1;
    this._cards = pending.map((call) => new Card(call, this));
    this._send = send;
    this._complaint = el("p", { class: "complaint", role: "alert" });
    this._submit = button("Send", null, () => this.deliver(), { words: "Send", class: "primary" });
    this.node = el(
      "section",
      {
        class: this.isOne ? "pause" : "pause several",
        "aria-label": `${many(pending.length, "call")} waiting for an answer`,
      },
      ...this._cards.map((card) => card.node),
      el(
        "div",
        { class: "line", hidden: this.isOne },
        this._submit,
        el("small", { text: "Calls that you leave out go on waiting." }),
      ),
      this._complaint,
    );
    if (this.isOne) this._cards[0].begin();
    this._count();
  }

  /** Puts the cursor where a single question is answered. */
  focus() {
    this._cards[0].box?.focus();
  }

  /** An answer was chosen or taken back. */
  chosen(isWhole) {
    this._count();
    if (isWhole && this.isOne) this.deliver();
  }

  /** What was written is to be sent. Several answers are sent by their own button. */
  written() {
    if (this.isOne) this.deliver();
    else this._submit.focus();
  }

  /** Sends what was chosen. */
  async deliver() {
    const answers = {};
    for (const card of this._cards.filter((one) => one.choice !== null)) {
      const answer = card.read();
      if (answer === null) return;
      answers[card.call.id] = answer;
    }
    const focused = document.activeElement;
    this.node.inert = true;
    try {
      await this._send(answers);
    } catch (error) {
      this.node.inert = false;
      this._complaint.textContent = error.message;
      if (this.isOne) this._cards[0].release();
      focused.focus();
    }
  }

  _count() {
    const count = this._cards.filter((card) => card.choice !== null).length;
    this._submit.disabled = count === 0;
    this._submit.lastChild.textContent = `Send ${count} of ${many(this._cards.length, "answer")}`;
    this._complaint.textContent = "";
  }
}

class Card {
  constructor(call, pauses) {
    this.call = call;
    this.choice = null; // an answer, or the form that asks for one
    this.box = null;
    this._pauses = pauses;
    this._area = el("div", { class: "area" });
    this._complaint = el("p", { class: "complaint", role: "alert" });
    this._buttons = OFFERS[call.kind].map(([words, choice], at) =>
      button(words, choice.kind ? ICONS.check : null, () => this._choose(at), {
        words,
        class: at === 0 ? "usual" : null,
        "aria-pressed": "false",
      }),
    );
    this.node = el(
      "div",
      { class: "card" },
      el("h3", {}, el("span", { text: TITLES[call.kind] }), el("code", { text: call.tool })),
      ...about(call),
      el(
        "div",
        { class: "line", role: "group", "aria-label": `Answers for ${call.tool}` },
        ...this._buttons,
      ),
      this._area,
    );
  }

  /** A question has its box open from the start. */
  begin() {
    if (this.call.kind === "question") this._choose(0);
  }

  /** The answer that was chosen; null, with a complaint, if it cannot be one. */
  read() {
    if (this.box === null) return this.choice;
    try {
      return FORMS[this.choice].read(this.box.value);
    } catch (error) {
      this._complaint.textContent = error.message;
      this.box.setAttribute("aria-invalid", "true");
      this.box.focus();
      return null;
    }
  }

  /** Nothing is chosen any more, but what was written stays. */
  release() {
    if (this.box === null) this._take(null);
  }

  _choose(at) {
    const [, choice] = OFFERS[this.call.kind][at];
    const isForm = typeof choice === "string";
    this._take(this.choice === choice && !this._pauses.isOne ? null : choice);
    this.box = null;
    fill(this._area);
    if (isForm && this.choice !== null) this._ask(choice);
    this._pauses.chosen(!isForm);
  }

  _take(choice) {
    this.choice = choice;
    OFFERS[this.call.kind].forEach(([, one], at) =>
      this._buttons[at].setAttribute("aria-pressed", String(one === choice)),
    );
  }

  /** Opens a box to write in. Ctrl+Enter sends it, Enter too if it is prose; Escape closes it. */
  _ask(form) {
    const { words, code, label, start } = FORMS[form];
    const box = el("textarea", {
      dir: "auto",
      spellcheck: code ? "false" : null,
      class: code ? "mono" : null,
    });
    box.value = start(this.call);
    box.rows = Math.min(14, Math.max(3, box.value.split("\n").length + 1));
    box.addEventListener("input", () => {
      this._complaint.textContent = "";
      box.removeAttribute("aria-invalid");
    });
    box.addEventListener("keydown", (event) => {
      if (composes(event)) return;
      const sends = event.ctrlKey || event.metaKey || !(code || event.shiftKey);
      if (event.key === "Enter" && sends) {
        event.preventDefault();
        this._pauses.written();
      } else if (event.key === "Escape") {
        event.stopPropagation();
        this._buttons.find((one) => one.ariaPressed === "true").focus();
        this._take((this.box = null));
        fill(this._area);
        this._pauses.chosen(false);
      }
    });
    const send = button(words, ICONS.check, () => this._pauses.deliver(), {
      words,
      class: "primary",
    });
    fill(
      this._area,
      el("label", {}, el("span", { text: label(this.call) }), box),
      this._complaint,
      this._pauses.isOne ? send : null,
    );
    this._complaint.textContent = "";
    this.box = box;
    if (this.node.isConnected) box.focus();
  }
}

/** What the call is about: a question in its own words, else why it waits, and its arguments. */
function about({ kind, why, arguments: given }) {
  const { question, ...rest } = given ?? {};
  const isAsked = kind === "question" && typeof question === "string";
  const shown = isAsked ? rest : (given ?? {});
  return [
    el("p", { text: isAsked ? question : why, dir: "auto" }),
    Object.keys(shown).length
      ? el("pre", { tabindex: "0", dir: "ltr", "aria-label": "Arguments", text: pretty(shown) })
      : null,
  ];
}
