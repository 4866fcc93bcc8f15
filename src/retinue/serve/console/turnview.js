// A turn on the page. It is told that its turn has changed, and then shows only what is new.

import { ICONS, button, el, fill, icon } from "./dom.js";
import { answerOf, costOf } from "./fold.js";
import { Markdown, copied } from "./markdown.js";
import { brief, dollars, many, pretty, seconds, size, tokens } from "./words.js";

const STATES = {
  written: ["Being written", null],
  running: ["Running", null],
  waiting: ["Waits for an answer", ICONS.hand],
  done: ["Done", ICONS.check],
  failed: ["Failed", ICONS.cross],
  unfinished: ["Did not run to its end", ICONS.cross],
};
const LONG = 2_000;
const ENDS = {
  stored: "",
  completed: "",
  paused: "Waits for an answer",
  blocked: "Blocked",
  limit: "Stopped at a limit",
  cancelled: "Cancelled",
  failed: "Failed",
};

/** One turn.
 *
 * @param {object} turn as fold.js has it
 * @param {object} acts what can be done with it: {fork, rollBack, select}; null for a sub-agent
 */
export class TurnView {
  constructor(turn, acts) {
    this.turn = turn;
    this.asked = el("div", { class: "asked", role: "group", "aria-label": "Question" });
    this.rounds = el("div", { class: "rounds", role: "group", "aria-label": "Answer" });
    this.pause = el("div", { class: "pauses" });
    this.foot = acts ? new Foot(turn, acts) : null;
    this.node = acts
      ? el("article", { class: "turn", tabindex: "-1" })
      : el("div", { class: "turn nested" });
    this.node.append(this.asked, this.rounds, this.pause);
    if (this.foot) this.node.append(this.foot.node);
    this._asked = 0;
    this._rounds = [];
  }

  /** Shows the turn as it is now. */
  update() {
    const { turn } = this;
    if (turn.asked !== this._list) {
      this._list = turn.asked;
      this._asked = 0;
      this.asked.replaceChildren();
    }
    for (; this._asked < turn.asked.length; this._asked += 1) {
      this.asked.append(question(turn.asked[this._asked]));
    }
    while (this._rounds.length > turn.rounds.length) this._rounds.pop().node.remove();
    turn.rounds.forEach((round, at) => {
      if (this._rounds[at]?.items !== round.items) this._place(at, new RoundView(round));
      this._rounds[at].update(turn);
    });
    this.node.toggleAttribute("aria-busy", this.foot !== null && turn.status === null);
    this.foot?.update();
  }

  _place(at, view) {
    if (this._rounds[at]) this._rounds[at].node.replaceWith(view.node);
    else this.rounds.append(view.node);
    this._rounds[at] = view;
  }
}

function question({ parts, note, state }) {
  if (note)
    return el(
      "details",
      { class: "fold" },
      el("summary", { text: note.slice(0, 60) }),
      el("p", { text: note, dir: "auto" }),
    );
  const bubble = el("div", { class: "bubble" });
  for (const part of parts) bubble.append(partOf(part));
  if (state === "unanswered") bubble.append(el("small", { text: "Not answered" }));
  return bubble;
}

function partOf(part) {
  if (part.type === "text") return textOf(part.text);
  if (part.type === "image" && part.data) {
    return el("img", {
      src: `data:${part.media_type ?? "image/png"};base64,${part.data}`,
      alt: "A picture in the question",
    });
  }
  return el("div", { class: "attached", text: part.name ?? part.url ?? part.type });
}

/** A text of the person; of one that they pasted the beginning, until all of it is wanted. */
function textOf(text) {
  if (text.length <= LONG) return el("div", { text, dir: "auto" });
  const shown = el("div", { text: `${text.slice(0, LONG)}…`, dir: "auto" });
  const words = `Show all (${size(text.length)})`;
  const unfold = () => {
    shown.textContent = text;
    more.closest("article").focus({ preventScroll: true });
    more.remove();
  };
  const more = button(words, null, unfold, { words, class: "quiet more" });
  return el("div", {}, shown, more);
}

class RoundView {
  constructor(round) {
    this.round = round;
    this.items = round.items;
    this.node = el("section", { class: "round" });
    this._views = [];
  }

  update(turn) {
    this.items.forEach((item, at) => {
      this._views[at] ??= this._made(item);
      this._views[at].update(turn);
    });
    this.node.classList.toggle("partial", this.round.partial);
  }

  _made(item) {
    const view = new VIEWS[item.kind](item);
    this.node.append(view.node);
    return view;
  }
}

class TextView {
  constructor(item) {
    this.item = item;
    this.markdown = new Markdown();
    this.node = this.markdown.node;
  }

  update() {
    this.markdown.show(this.item.text);
    if (!this.item.discarded || this._folded) return;
    this._folded = el(
      "details",
      { class: "fold discarded" },
      el("summary", { text: `Taken back: ${this.item.discarded}` }),
    );
    this.node.replaceWith(this._folded);
    this._folded.append(this.node);
  }
}

class ThinkingView {
  constructor(item) {
    this.item = item;
    this.words = el("span", { text: "Thinking" });
    this.text = el("div", { class: "thoughts", dir: "auto" });
    this.node = el("details", { class: "fold thinking" }, el("summary", {}, this.words), this.text);
    this._begun = performance.now();
  }

  update(turn) {
    if (this._shown !== this.item.text) this.text.textContent = this._shown = this.item.text;
    const items = turn.rounds.at(-1)?.items;
    const isGoingOn = turn.status === null && items?.at(-1) === this.item;
    if (isGoingOn || this._over) return;
    this._over = true;
    const took = (performance.now() - this._begun) / 1000;
    this.words.textContent =
      turn.status === "stored" || took < 0.1 ? "Thoughts" : `Thought for ${seconds(took)}`;
  }
}

class NoteView {
  constructor(item) {
    this.node = el("p", { class: "note", dir: "auto", text: item.text });
  }

  update() {}
}

class CallView {
  constructor(call) {
    this.call = call;
    this.sign = el("span", { class: "sign" });
    this.brief = el("span", { class: "brief", dir: "ltr" });
    this.time = el("span", { class: "time" });
    this.given = el("pre", { tabindex: "0", dir: "ltr", "aria-label": "Arguments" });
    this.result = el("pre", { tabindex: "0", dir: "auto", "aria-label": "Result" });
    this.resultBox = el(
      "div",
      { class: "result", hidden: true },
      el("h4", { text: "Result" }),
      this.result,
    );
    this.more = el("div");
    this.node = el(
      "details",
      { class: "call" },
      el("summary", {}, this.sign, el("b", { text: call.name }), this.brief, this.time),
      el(
        "div",
        { class: "body" },
        el("h4", { text: "Arguments" }),
        this.given,
        this.more,
        this.resultBox,
      ),
    );
  }

  update(turn) {
    const { call } = this;
    const given = call.arguments ?? call.written;
    if (given !== this._given) {
      this._given = given;
      this.brief.textContent = brief(given);
      this.given.textContent = pretty(given) || "none";
    }
    const state = stateOf(call, turn);
    if (state !== this._state) this._show(state);
    this.time.textContent = call.seconds === null ? "" : seconds(call.seconds);
    if (call.child) this._showChild();
    if (call.retries.length !== this._retries) {
      this._retries = call.retries.length;
      fill(
        this.more,
        ...call.retries.map((error) => el("p", { class: "note", text: `Tried again: ${error}` })),
        this.child?.node,
      );
    }
  }

  _show(state) {
    this._state = state;
    const [label, path] = STATES[state];
    this.node.dataset.state = state;
    const { call } = this;
    const words = call.blockedBy ? `${label}; ${call.blockedBy} decided it` : label;
    fill(
      this.sign,
      path ? icon(path) : el("i", { class: "spinner" }),
      el("span", { class: "unseen", text: `${words}. ` }),
    );
    this.sign.title = words;
    this.resultBox.hidden = call.text === null;
    if (call.text !== null) this.result.textContent = pretty(call.text) || "empty";
  }

  _showChild() {
    if (!this.child) {
      this.child = new TurnView(this.call.child, null);
      this.more.append(this.child.node);
      this.node.open = true;
    }
    this.child.update();
  }
}

/** A call without a result waits, if its turn does; where that is over, it will never have one. */
function stateOf({ state }, { status }) {
  if (state === "done" || state === "failed" || status === null) return state;
  return status === "paused" ? "waiting" : "unfinished";
}

const VIEWS = { text: TextView, thinking: ThinkingView, call: CallView, note: NoteView };

/** What stands under a turn: how it ended, what it took, and what can be done with it. */
class Foot {
  constructor(turn, acts) {
    this.turn = turn;
    this.status = el("span", { class: "status" });
    this.figures = el("button", {
      type: "button",
      class: "figures",
      on: { click: () => acts.select(turn) },
    });
    this.reason = el("p", { class: "reason", dir: "auto", hidden: true });
    this.copy = button("Copy the answer", ICONS.copy, () => copied(this.copy, answerOf(turn)), {
      class: "quiet",
    });
    this.acts = el("span", { class: "acts" }, this.copy);
    if (acts.fork) {
      this.acts.append(
        button("Fork here", ICONS.fork, () => acts.fork(turn), { class: "quiet" }),
        button("Roll back to here", ICONS.undo, () => acts.rollBack(turn), { class: "quiet" }),
      );
    }
    this.node = el(
      "footer",
      {},
      this.reason,
      el("div", { class: "line" }, this.status, this.figures, this.acts),
    );
  }

  update() {
    const { turn } = this;
    const isRunning = turn.status === null;
    this.node.dataset.status = turn.status ?? "running";
    fill(
      this.status,
      isRunning ? el("i", { class: "spinner" }) : null,
      isRunning ? "Working" : ENDS[turn.status],
    );
    this.acts.hidden = isRunning;
    this.copy.hidden = isRunning || !answerOf(turn);
    const words =
      turn.status === "paused"
        ? ""
        : [turn.reason, turn.error ? `(${turn.error})` : ""].filter(Boolean).join(" ");
    this.reason.textContent = words;
    this.reason.hidden = isRunning || !words || turn.status === "completed";
    this.figures.textContent = figures(turn);
    this.figures.title = "Show the onion and the rounds of this turn";
    this.figures.hidden = isRunning && !turn.usage;
  }
}

function figures(turn) {
  const told = [many(turn.rounds.length, "round")];
  if (turn.usage?.input)
    told.push(`${tokens(turn.usage.input)} in`, `${tokens(turn.usage.output)} out`);
  const cost = costOf(turn);
  if (cost !== null) told.push(dollars(cost));
  if (turn.ended && turn.begun) told.push(seconds((turn.ended - turn.begun) / 1000));
  return told.join(" · ");
}
