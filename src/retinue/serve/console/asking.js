// Turns that this page begins, follows and answers.

import { el, fill } from "./dom.js";
import { answerOf, fold } from "./fold.js";
import { Pauses } from "./pauses.js";
import { cancel, follow, newId, running } from "./running.js";

const INSPECTED = new Set([
  "turn_started",
  "round_started",
  "usage",
  "tool_finished",
  "layers_timed",
  "turn_ended",
  "resync",
]);

/** One question at a time.
 *
 * @param {Console} page where it is asked
 */
export class Asking {
  constructor(page) {
    this.page = page;
    this._active = null;
  }

  /** Whether a turn runs that this page reads. */
  get isActive() {
    return this._active !== null;
  }

  /** Reads on no more; the turn goes on without this page. */
  leave() {
    this._active?.abort.abort();
    this._active = null;
    this.page.buttons(false);
  }

  /** Asks something, unless a turn runs. */
  ask(text) {
    const { page } = this;
    if (!text || this._active || !page.card) return;
    page.empty();
    const conversation = page.begin();
    for (const turn of page.conversation.turns) this._settle(turn);
    const turn = page.conversation.turn(null);
    turn.asked.push(spoken(text));
    this.follow(turn, this._request("v1/turns", { input: text, conversation }));
    page.conversation.toEnd();
    page.welcome();
  }

  /** Follows a turn to its end; if the server refuses it, the turn has failed, and what was asked can
   * be asked again. */
  async follow(turn, asked) {
    try {
      await this._started(turn, asked);
    } catch (error) {
      if (asked.turn) return; // which has failed by then
      this._failed(turn, error.message);
      if (asked.body?.input) this.page.giveBack(asked.body.input);
    }
  }

  /** Follows a turn. The promise is kept when the server has taken the request, and broken when it
   * has not. What stops this page from reading on later is a failure of the turn. */
  _started(turn, asked) {
    const [conversation, abort] = [this.page.id, new AbortController()];
    const active = (this._active = { turn, asked, abort });
    turn.begun = asked.at ?? null;
    running.set(conversation, asked);
    this.page.buttons(true);
    this.page.inspect(turn);
    this.page.conversation.changed(turn);
    return new Promise((resolve, reject) => {
      const told = {
        event: (event) => this._took(turn, event),
        begun: () => {
          turn.id ??= asked.turn;
          running.set(conversation, asked);
          if (active.stopped) this.stop();
          resolve();
        },
        broken: (isBroken) => {
          if (active.stopped && !asked.turn) throw new Error("It may not have arrived.");
          this.page.say(isBroken ? "The connection is lost. Trying again…" : null);
        },
        signal: abort.signal,
      };
      follow(asked, told).then(
        (isWhole) => {
          this._over(conversation);
          if (!isWhole) this._lost(turn, conversation);
        },
        (error) => {
          if (abort.signal.aborted) return;
          this._over(conversation);
          if (asked.turn) this._failed(turn, error.message);
          reject(error);
        },
      );
    });
  }

  _took(turn, event) {
    fold(turn, event);
    this.page.conversation.changed(turn);
    if (turn === this.page.shown && INSPECTED.has(event.type)) this.page.inspect(turn);
    if (event.path?.length) return;
    if (event.type === "tool_started") this.page.announce(`Runs ${event.name}.`);
    if (event.type === "turn_ended") this._ended(turn, event);
  }

  _ended(turn, { status, reason }) {
    if (status === "paused") this.waits(turn);
    else if (status === "completed") this.page.announce(answerOf(turn).slice(0, 2000));
    else this.page.announce(`The turn ended: ${status}. ${reason ?? ""}`);
  }

  _over(conversation) {
    running.set(conversation, null);
    this._active = null;
    this.page.say(null);
    this.page.buttons(false);
    if (this.page.card.keeps) this.page.tree.refresh();
  }

  /** Nobody knows the turn any more. What its conversation has of it is shown, else what had come. */
  async _lost(turn, conversation) {
    if (conversation !== null) await this.page.open(conversation);
    if (conversation !== this.page.id || this.page.conversation.has(turn)) return;
    this.page.conversation.add(turn);
    this._failed(turn, "The server knows nothing of this turn any more. Perhaps it was restarted.");
  }

  _failed(turn, reason) {
    Object.assign(turn, { status: "failed", reason, ended: Date.now() });
    this.page.conversation.changed(turn);
    this.page.announce(`The turn failed. ${reason}`);
  }

  /** Shows what a paused turn waits for. */
  waits(turn) {
    const view = this.page.conversation.view(turn);
    if (!view) return;
    if (this.page.id === null) {
      fill(
        view.pause,
        el("p", {
          class: "note",
          text: "This agent keeps no conversations, so the turn cannot go on.",
        }),
      );
      return;
    }
    const pauses = new Pauses(turn.pending, (answers) => this._answer(turn, answers));
    fill(view.pause, pauses.node);
    if (this.page.isIdle()) pauses.focus();
    this.page.conversation.changed(turn);
    this.page.announce(
      `The turn waits for you: ${turn.pending.map((call) => call.tool).join(", ")}.`,
    );
  }

  async _answer(turn, answers) {
    const path = `v1/conversations/${encodeURIComponent(this.page.id)}/answers`;
    const { pending } = turn;
    turn.status = null;
    try {
      await this._started(turn, this._request(path, { answers }));
      const view = this.page.conversation.view(turn);
      if (turn.status !== "paused") fill(view.pause);
      if (document.activeElement === document.body) view.node.focus({ preventScroll: true });
    } catch (error) {
      Object.assign(turn, { status: "paused", pending });
      this.page.conversation.changed(turn);
      throw error;
    }
  }

  /** A new question closes a pause. */
  _settle(turn) {
    if (turn.status !== "paused") return;
    Object.assign(turn, { status: "cancelled", reason: "A new question came.", pending: [] });
    fill(this.page.conversation.view(turn).pause);
    this.page.conversation.changed(turn);
  }

  /** Asks the turn that runs to end. */
  async stop() {
    const active = this._active;
    if (!active || active.isStopping) return;
    active.stopped = true;
    if (!active.asked.turn) return this.page.stopping(true);
    active.isStopping = true;
    this.page.stopping(true);
    if (await this.page.attempt(() => cancel(active.asked.turn))) return;
    active.isStopping = false;
    if (active === this._active) this.page.stopping(false);
  }

  _request(path, body) {
    const { name } = this.page.card;
    const common = { agent: name, stream: true, detached: true, measure: true };
    return { path, body: { ...body, ...common, request_id: newId() }, turn: null, at: Date.now() };
  }
}

/** A text as a turn holds what was asked. */
export function spoken(text) {
  return { parts: [{ type: "text", text }], state: "" };
}
