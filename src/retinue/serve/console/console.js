// The page put together: what a person does, and what becomes of it.

import { Refused, ask, hasKey } from "./api.js";
import { Asking, spoken } from "./asking.js";
import { Conversation } from "./conversation.js";
import { ICONS, composes, el, fill, icon } from "./dom.js";
import { confirmed, drawers } from "./frame.js";
import { forget, keep, recall } from "./kept.js";
import { account, onion } from "./onion.js";
import { newId, running } from "./running.js";
import { Tree } from "./tree.js";
import { many } from "./words.js";
import { Workers } from "./workers.js";

const AGENT = "agent";
const AGAIN = 2000;
const LONG = 4000;
const TALLEST = 240;
const $ = (id) => document.getElementById(id);

class Console {
  constructor() {
    this.cards = [];
    this.card = null;
    this.id = null;
    this.shown = null;
    this.opening = null;
    this.drawers = drawers();
    this.conversation = new Conversation({
      log: $("log"),
      scroller: $("scroller"),
      latest: $("latest"),
      acts: this.acts(),
    });
    this.asking = new Asking(this);
    this.tree = new Tree($("tree"), {
      open: (id) => {
        this.drawers.close();
        this.go(id);
      },
      remove: (one) => this.remove(one),
    });
    this.listen();
  }

  acts() {
    return {
      fork: (turn) => this.fork(turn),
      rollBack: (turn) => this.rollBack(turn),
      select: (turn) => {
        this.inspect(turn);
        this.drawers.open("inspector");
      },
    };
  }

  listen() {
    const question = $("question");
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.asking.ask(question.value.trim());
    });
    question.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || composes(event)) return;
      event.preventDefault();
      this.asking.ask(question.value.trim());
    });
    question.addEventListener("input", () => this.fit());
    $("stop").addEventListener("click", () => this.asking.stop());
    $("new").addEventListener("click", () => {
      this.drawers.close();
      this.go(null);
      question.focus();
    });
    $("skip").addEventListener("click", (event) => {
      event.preventDefault();
      question.focus();
    });
    $("agent").addEventListener("change", (event) => this.choose(event.target.value));
    $("sign-out").addEventListener("click", () => {
      forget();
      location.reload();
    });
    document.addEventListener("keydown", (event) => this.pressed(event));
    document.addEventListener("visibilitychange", () => this.returned());
    window.addEventListener("focus", () => this.returned());
    window.addEventListener("popstate", () => this.open(hashed()));
  }

  pressed(event) {
    if (event.defaultPrevented || composes(event) || document.querySelector("dialog[open]")) return;
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey);
    if (event.key === "Escape") {
      if (!this.drawers.close()) this.asking.stop();
    } else if (event.key === "/" && isPlain && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      $("question").focus();
    }
  }

  async start() {
    const agents = await this.patiently(offered);
    $("sign-out").hidden = !hasKey();
    if (agents === null) return;
    this.cards = agents;
    const isOne = agents.length === 1;
    $("agent").hidden = isOne;
    $("agent-name").hidden = !isOne;
    fill($("agent"), ...agents.map((card) => el("option", { value: card.name, text: card.name })));
    this.choose(recall(AGENT));
    new Workers($("workers"));
    await this.open(hashed());
  }

  /** What a request gives, as soon as the server can answer it; null if it refuses, or if nobody
   * waits for it any more. */
  async patiently(request, isAwaited = () => true) {
    while (isAwaited()) {
      try {
        const given = await request();
        this.say(null);
        return given;
      } catch (error) {
        if (!isAwaited()) break;
        const isRefused = error instanceof Refused;
        this.say(isRefused ? error.message : "The server cannot be reached. Trying again…");
        if (isRefused && error.status < 500 && error.status !== 429) return null;
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
      }
    }
    return null;
  }

  /** Somebody is back at this page. What was written elsewhere meanwhile, in another tab say, is read. */
  async returned() {
    const { id } = this;
    const known = this.tree.written(id);
    if (document.visibilityState !== "visible" || known === undefined) return;
    await this.tree.refresh();
    const isChanged = this.tree.written(id) !== known;
    if (isChanged && id === this.id && !this.asking.isActive) this.open(id);
  }

  choose(name) {
    this.card = this.cards.find((card) => card.name === name) ?? this.cards[0] ?? null;
    if (!this.card) return;
    keep(AGENT, this.card.name);
    $("agent").value = this.card.name;
    $("agent-name").textContent = this.card.name;
    $("model").textContent = $("model").title = this.card.model;
    $("conversations").hidden = !this.cards.some((card) => card.keeps);
    document.body.classList.toggle("keeps", this.card.keeps);
    document.title = `${this.card.name} · retinue`;
    this.inspect(this.shown);
    this.welcome();
  }

  // Conversations

  go(id) {
    if (id === this.id && id !== null) return this.conversation.toEnd();
    history.pushState(
      null,
      "",
      id === null ? location.pathname + location.search : `#${encodeURIComponent(id)}`,
    );
    return this.open(id);
  }

  async open(id) {
    this.asking.leave();
    this.say(null);
    this.id = id;
    this.inspect(null);
    this.tree.mark(id);
    if (this.cards.some((card) => card.keeps)) this.tree.refresh();
    const hadFocus = $("log").contains(document.activeElement);
    this.conversation.clear(id);
    const opening = (this.opening = {});
    const isOpen = () => opening === this.opening;
    const read = () => this.conversation.read(id);
    const [about, page] = (id === null ? null : await this.patiently(read, isOpen)) ?? [];
    if (!isOpen()) return;
    if (page) this.conversation.show(page);
    const isLost = hadFocus && document.activeElement === document.body;
    if (isLost) $("log").lastElementChild?.focus({ preventScroll: true });
    if (!this.asking.isActive) this.rejoin(about);
    this.welcome();
  }

  /** Goes on with what runs in the open conversation, or shows what it waits for. */
  rejoin(about) {
    const kept = running.get(this.id);
    const now = about?.running ?? kept?.turn ?? null;
    const asked = kept && (!now || !kept.turn || kept.turn === now) ? kept : now && { turn: now };
    if (asked) {
      const turn = this.conversation.turn(now);
      if (!turn.asked.length && asked.body?.input) turn.asked.push(spoken(asked.body.input));
      turn.asked = turn.asked.map((one) => ({ ...one, state: "" })); // it is being answered
      turn.status = null;
      this.asking.follow(turn, asked);
      return;
    }
    const last = this.conversation.turns.at(-1);
    if (about?.pending?.length && last) {
      Object.assign(last, { status: "paused", pending: about.pending });
      this.asking.waits(last);
    }
    if (last) this.inspect(last);
  }

  /** The conversation that a question belongs to: the open one, or a new one. */
  begin() {
    if (this.card.keeps && this.id === null) {
      this.id = this.conversation.id = newId();
      history.pushState(null, "", `#${this.id}`);
      this.tree.mark(this.id);
    }
    return this.card.keeps ? this.id : null;
  }

  async fork(turn) {
    const isLast = turn === this.conversation.turns.at(-1);
    const at = isLast && turn.status === "paused" ? null : turn.id;
    await this.attempt(async () => {
      const { id } = await ask("POST", `v1/conversations/${encodeURIComponent(this.id)}/fork`, {
        at,
      });
      this.go(id);
      this.announce("This is the fork.");
    });
  }

  async rollBack(turn) {
    const behind = this.conversation.turns.length - 1 - this.conversation.turns.indexOf(turn);
    if (!behind) return this.say("Nothing comes after this turn.", 3000);
    const words = `${many(behind, "turn")} after this one will be removed for good. To keep them, fork first.`;
    if (!(await confirmed("Roll back to here?", words, "Roll back"))) return;
    const { id } = this;
    await this.attempt(async () => {
      await ask("POST", `v1/conversations/${encodeURIComponent(id)}/rollback`, { to: turn.id });
      await this.open(id);
    });
  }

  async remove({ id, title }) {
    if (
      !(await confirmed(
        "Delete this conversation?",
        `“${title}” will be gone for good. Its forks stay.`,
        "Delete",
      ))
    )
      return;
    await this.attempt(async () => {
      await ask("DELETE", `v1/conversations/${encodeURIComponent(id)}`);
      if (id === this.id) this.go(null);
      else this.tree.refresh();
    });
  }

  async attempt(work) {
    try {
      await work();
      return true;
    } catch (error) {
      this.say(error instanceof Refused ? error.message : "The server cannot be reached.", 6000);
      return false;
    }
  }

  // What is shown round about

  inspect(turn) {
    this.shown = turn;
    if (!this.card) return;
    fill($("onion"), onion(this.card, turn));
    const hasRounds = turn?.rounds.length > 0;
    fill(
      $("rounds"),
      hasRounds ? account(turn) : el("p", { class: "note", text: "Ask something to see them." }),
    );
  }

  /** Shows whether one may ask or stop. */
  buttons(isRunning) {
    const [shown, hidden] = isRunning ? [$("stop"), $("send")] : [$("send"), $("stop")];
    const hasFocus = document.activeElement === hidden;
    hidden.hidden = true;
    shown.hidden = false;
    if (hasFocus) shown.focus();
    this.stopping(false);
  }

  welcome() {
    const isEmpty = this.conversation.turns.length === 0 && this.card !== null;
    $("welcome").hidden = !isEmpty;
    if (!isEmpty) return;
    $("welcome-name").textContent = this.card.name;
    const kept = this.card.keeps
      ? "What you say is kept on the server."
      : "It keeps no conversations.";
    $("welcome-words").textContent = `${this.card.model}. ${kept}`;
    fill($("welcome-tools"), ...(this.card.tools ?? []).slice(0, 8).map(toolLine));
  }

  /** What was written is asked now. */
  empty() {
    $("question").value = "";
    this.fit();
  }

  /** What was asked did not arrive, so it can be asked again; unless something else is written now. */
  giveBack(text) {
    if ($("question").value) return;
    $("question").value = text;
    this.fit();
  }

  /** Whether the cursor stands where one asks, and nothing is written there. */
  isIdle() {
    return document.activeElement === $("question") && !$("question").value;
  }

  /** Whether the turn was asked to end. The button keeps its focus meanwhile. */
  stopping(isStopping) {
    $("stop").setAttribute("aria-disabled", String(isStopping));
  }

  fit() {
    const box = $("question");
    box.style.height = "auto";
    // To measure a long text takes long.
    const height = box.value.length > LONG ? TALLEST : box.scrollHeight;
    box.style.height = `${Math.min(height, TALLEST)}px`;
  }

  say(words, time = null) {
    clearTimeout(this._silence);
    $("banner").hidden = !words;
    $("banner").textContent = words ?? "";
    if (time !== null) this._silence = setTimeout(() => this.say(null), time);
  }

  announce(words) {
    $("said").textContent = words;
  }
}

/** The agents that can be asked. Those of workers come with the workers. */
async function offered() {
  const { agents } = await ask("GET", "v1/agents");
  if (agents.length) return agents;
  throw new Refused(503, "unavailable", "No agent is there yet. Waiting for a worker…");
}

function toolLine(tool) {
  const [about] = tool.description.split("\n");
  return el("li", {}, el("code", { text: tool.name }), el("span", { text: about }));
}

function hashed() {
  try {
    return decodeURIComponent(location.hash.slice(1)) || null;
  } catch {
    return null;
  }
}

for (const [id, path, words] of [
  ["show-conversations", ICONS.menu],
  ["show-turn", ICONS.onion],
  ["new", ICONS.plus, "New"],
  ["latest", ICONS.down, "Latest"],
  ["send", ICONS.send],
  ["stop", ICONS.stop],
])
  $(id).append(icon(path), ...(words ? [el("span", { text: words })] : []));

new Console().start();
