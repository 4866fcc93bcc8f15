// The conversation that is open: its turns on the page, older ones read when they come into sight,
// and the view kept at the end while a turn writes there.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { newTurn, turnsOf } from "./fold.js";
import { TurnView } from "./turnview.js";

const PAGE = 200;
const NEAR = 80;
const AHEAD = 600;
const SHARE = 3;

/** What is open.
 *
 * @param {{log, scroller, acts}} parts where turns go, what scrolls, and what can be done with a turn
 */
export class Conversation {
  constructor({ log, scroller, latest, acts }) {
    this.log = log;
    this.turns = [];
    this._views = new Map();
    this._scroller = scroller;
    this._latest = latest;
    this._acts = acts;
    this._changed = new Set();
    this._isDue = false;
    this._drawn = 0;
    this._took = 0;
    this._sticks = true;
    this._last = 0;
    this._older = el(
      "button",
      { type: "button", class: "older", on: { click: () => this.more() } },
      "Earlier messages",
    );
    scroller.addEventListener("scroll", () => this._scrolled(), { passive: true });
    new ResizeObserver(() => this._sticks && this.toEnd()).observe(log);
    latest.addEventListener("click", () => this.toEnd());
    // Who unfolds something wants to read it there, and not what comes at the end.
    log.addEventListener("click", (event) => {
      if (event.target.closest("summary, .more")) this._sticks = false;
    });
  }

  /** Forgets all, and shows nothing. */
  clear(id = null) {
    this.id = id;
    this.turns = [];
    this._entries = [];
    this._before = null;
    this._views.clear();
    this._changed.clear();
    this.log.replaceChildren();
    this._sticks = true;
    this._latest.hidden = true;
  }

  /** Reads a conversation: what the server knows of it, and its last messages; null if it is not
   * stored. */
  async read(id) {
    try {
      return await Promise.all([
        ask("GET", `v1/conversations/${encodeURIComponent(id)}`),
        this._page(id, null),
      ]);
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  /** Shows the last messages, before what may be shown already. */
  show(page) {
    this._take(page);
    this.toEnd();
  }

  /** Reads the messages before those that are shown. */
  async more() {
    if (this._before === null || this._isReading) return;
    this._isReading = true;
    const { id, turns } = this;
    try {
      const page = await this._page(id, this._before);
      if (this.turns === turns) this._take(page); // else it was opened anew meanwhile
      requestAnimationFrame(() => this._scrolled()); // perhaps that was not enough
    } catch {
      // the button is still there
    } finally {
      this._isReading = false;
    }
  }

  /** The turn of this id, or a new one behind the others. */
  turn(id) {
    const known = id === null ? undefined : this.turns.find((turn) => turn.id === id);
    return known ?? this.add(newTurn(id));
  }

  /** Shows a turn behind the others, unless it is there. */
  add(turn) {
    if (!this.turns.includes(turn)) {
      this.turns.push(turn);
      this.log.append(this._view(turn).node);
    }
    return turn;
  }

  /** Whether the log has this turn already, as another object. */
  has(turn) {
    return this.turns.some((one) => one !== turn && one.id === turn.id);
  }

  /** The view of a turn. */
  view(turn) {
    return this._views.get(turn);
  }

  /** Says that a turn has changed; it is shown with the next picture. What takes long to draw is drawn
   * less often, so that three quarters of the time are left for the reader. */
  changed(turn) {
    this._changed.add(turn);
    if (this._isDue) return;
    this._isDue = true;
    const wait = SHARE * this._took - (performance.now() - this._drawn);
    const next = () => requestAnimationFrame(() => this._draw());
    if (wait > 16) setTimeout(next, wait);
    else next();
  }

  /** Goes to the end, and stays there. */
  toEnd() {
    this._sticks = true;
    this._scroller.scrollTop = this._scroller.scrollHeight;
    this._last = this._scroller.scrollTop;
    this._latest.hidden = true;
  }

  _draw() {
    this._isDue = false;
    const begun = performance.now();
    for (const turn of this._changed) this._views.get(turn)?.update();
    this._changed.clear();
    if (this._sticks) this.toEnd();
    else this._latest.hidden = false;
    this._drawn = performance.now();
    this._took = this._drawn - begun;
  }

  _page(id, before) {
    const query = before === null ? "" : `&before=${before}`;
    return ask("GET", `v1/conversations/${encodeURIComponent(id)}/messages?limit=${PAGE}${query}`);
  }

  _take({ messages, before }) {
    const held = this.turns[0];
    const isCut = held && messages.at(-1)?.turn === held.id && held.status === "stored";
    this._entries = isCut ? [...messages, ...this._entries] : messages;
    const first = isCut ? this.turns.shift() : null;
    const read = turnsOf(isCut ? this._entries : messages);
    const fresh = read.filter((turn) => !this.has(turn)); // one that was asked meanwhile is shown
    this._before = before ?? null;
    const anchor =
      this.log.firstElementChild === this._older
        ? this._older.nextElementSibling
        : this.log.firstElementChild;
    const height = anchor?.getBoundingClientRect().top;
    // The browser's own anchoring does not act at the very top, and would act twice elsewhere.
    this._scroller.style.overflowAnchor = "none";
    const nodes = fresh.map((turn) => this._view(turn).node);
    const isFocused = document.activeElement === this._older;
    this._older.remove();
    if (first) this._views.get(first).node.remove();
    this.log.prepend(...(this._before === null ? [] : [this._older]), ...nodes);
    this.turns.unshift(...fresh);
    this._entries = this._entries.slice(0, read[0]?.entries ?? 0);
    if (isFocused) this.log.firstElementChild.focus({ preventScroll: true });
    if (anchor?.isConnected)
      this._scroller.scrollTop += anchor.getBoundingClientRect().top - height;
    requestAnimationFrame(() => this._scroller.style.removeProperty("overflow-anchor"));
  }

  _view(turn) {
    const view = new TurnView(turn, this._acts);
    this._views.set(turn, view);
    view.update();
    return view;
  }

  _scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this._scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    // Who begins to scroll up is not pulled back, however little he has scrolled yet.
    if (left > 1 && scrollTop < this._last) this._sticks = false;
    else if (left < NEAR) this._sticks = true;
    this._last = scrollTop;
    this._latest.hidden = this._sticks;
    if (scrollTop < AHEAD) this.more();
  }
}
