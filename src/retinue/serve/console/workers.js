// Who runs the turns, and how busy they are.

import { ask } from "./api.js";
import { el, fill } from "./dom.js";
import { many } from "./words.js";

const EVERY = 2000;

/** Shows the load in a node, and again every two seconds while the page and the node are seen. */
export class Workers {
  constructor(node) {
    this.node = node;
    this._timer = null;
    this._isAsking = false;
    this._seen = new IntersectionObserver(([entry]) => this._toggle(entry.isIntersecting));
    this._seen.observe(node);
    document.addEventListener("visibilitychange", () => this._tick());
  }

  /** Looks now. */
  async refresh() {
    if (this._isAsking) return;
    this._isAsking = true;
    try {
      fill(this.node, ...shown(await ask("GET", "v1/load")));
    } catch (error) {
      const words =
        error.code === "forbidden"
          ? "Your key has no scope “metrics”, which shows the load."
          : "The load is not known: the server does not answer.";
      fill(this.node, el("p", { class: "note", text: words }));
    } finally {
      this._isAsking = false;
    }
  }

  _toggle(isSeen) {
    clearInterval(this._timer);
    this._timer = isSeen ? setInterval(() => this._tick(), EVERY) : null;
    if (isSeen) this._tick();
  }

  _tick() {
    if (this._timer !== null && document.visibilityState === "visible") this.refresh();
  }
}

function shown(load) {
  const workers = load.workers ?? [];
  const own = {
    name: "This server",
    running: load.running,
    capacity: load.capacity,
    draining: load.draining,
  };
  const rows = workers.length ? workers : [own];
  const waiting = load.queued
    ? el("p", { class: "note", text: `${many(load.queued, "turn")} waiting for a place.` })
    : null;
  return [el("ul", { class: "workers" }, ...rows.map(row)), waiting];
}

function row(worker) {
  const { capacity, running } = worker;
  const bar = el("i", { class: "bar" });
  bar.style.setProperty("--share", capacity ? Math.min(1, running / capacity) : 0);
  return el(
    "li",
    {},
    el("span", { class: "name", text: worker.name, title: worker.name }),
    worker.draining ? el("small", { class: "badge", text: "draining" }) : null,
    el("span", { class: "time", text: capacity ? `${running} of ${capacity}` : `${running}` }),
    worker.agents ? el("small", { class: "agents", text: worker.agents.join(", ") }) : null,
    bar,
  );
}
