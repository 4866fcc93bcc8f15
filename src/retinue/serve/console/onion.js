// The onion of an agent as a picture: shells in shells, each with the time that it took in a turn.

import { el } from "./dom.js";
import { dollars, many, seconds, tokens } from "./words.js";

const HOOKS = {
  turn: "once a turn",
  round: "once a round",
  chat: "once a model call",
  tool: "once a tool run",
};

/** The picture.
 *
 * @param {object} card the agent as it declares itself
 * @param {object|null} turn whose times are shown; null shows none
 */
export function onion(card, turn) {
  const timed = turn?.layers ?? [];
  const calls = callsOf(turn);
  const total = [...timed.map((row) => row.seconds), ...calls.values()].reduce((a, b) => a + b, 0);
  const shells = (hook, core) => wrapped(chain(card, timed, hook), hook, core, total);
  const model = timed.filter((row) => row.hook === "model");
  const asked = model.length
    ? model
    : [{ name: card.model.split(":").pop(), seconds: null, calls: 0 }];
  const modelCore = el(
    "div",
    { class: "core" },
    ...asked.map((row) => line(row, total, "model")),
    streams(card, timed, total),
  );
  const tools = card.tools ?? [];
  const toolCore = el("div", { class: "core" }, ...toolLines(tools, calls, turn, total));
  const inside = el(
    "div",
    { class: "pair" },
    shells("chat", modelCore),
    tools.length || calls.size ? shells("tool", toolCore) : null,
  );
  return el(
    "div",
    { class: "onion", role: "group", "aria-label": `The onion of ${card.name}` },
    shells("turn", shells("round", inside)),
  );
}

/** The layers of a hook from the outside in: those that were called, then those that were not. */
function chain(card, timed, hook) {
  const called = timed.filter((row) => row.hook === hook);
  const names = new Set(called.map((row) => row.name));
  const idle = (card.layers ?? []).filter(
    (layer) => layer.hooks.includes(hook) && !names.has(layer.name),
  );
  return [...called, ...idle.map((layer) => ({ name: layer.name, seconds: null, calls: 0 }))];
}

function wrapped(layers, hook, core, total) {
  if (!layers.length) return core;
  return layers.reduceRight((inside, row, at) => {
    const title = at === 0 ? el("small", { text: `${hook}, ${HOOKS[hook]}` }) : null;
    return el("div", { class: `shell of-${hook}` }, title, line(row, total, hook), inside);
  }, core);
}

function streams(card, timed, total) {
  const rows = chain(card, timed, "stream");
  if (!rows.length) return null;
  return el(
    "div",
    { class: "stream" },
    el("small", { text: "stream, what the model sends" }),
    ...rows.map((row) => line(row, total, "stream")),
  );
}

function toolLines(tools, calls, turn, total) {
  const used = [...calls].map(([name, time]) => ({ name, seconds: time, calls: runs(turn, name) }));
  const others = tools.filter((tool) => !calls.has(tool.name));
  const shown = others.slice(0, 6).map((tool) => ({ name: tool.name, seconds: null, calls: 0 }));
  const more = others.length - shown.length;
  const rest = more > 0 ? el("small", { text: `and ${many(more, "more tool")}` }) : null;
  return [...[...used, ...shown].map((row) => line(row, total, "tool")), rest];
}

function line(row, total, kind) {
  const share = row.seconds && total ? row.seconds / total : 0;
  const bar = el("i", { class: "bar" });
  bar.style.setProperty("--share", share.toFixed(4));
  const often = row.calls > 1 ? el("small", { text: `×${row.calls}` }) : null;
  const time =
    row.seconds === null ? null : el("span", { class: "time", text: seconds(row.seconds) });
  const name = el("span", { class: "name", text: row.name, title: `${row.name} (${kind})` });
  return el(
    "div",
    { class: row.seconds === null ? "layer idle" : "layer" },
    name,
    often,
    time,
    bar,
  );
}

/** The seconds that each tool took in a turn, by name. */
function callsOf(turn) {
  const found = new Map();
  for (const call of allCalls(turn)) {
    if (call.seconds !== null) found.set(call.name, (found.get(call.name) ?? 0) + call.seconds);
  }
  return found;
}

function runs(turn, name) {
  return allCalls(turn).filter((call) => call.name === name && call.seconds !== null).length;
}

function allCalls(turn) {
  return (turn?.rounds ?? []).flatMap((round) =>
    round.items.filter((item) => item.kind === "call"),
  );
}

/** Tokens and cost of a turn, round by round. */
export function account(turn) {
  const row = (tag, cells, style) =>
    el(
      "tr",
      { class: style },
      ...cells.map((text, at) =>
        el(at ? tag : "th", {
          scope: at ? (tag === "th" ? "col" : null) : tag === "th" ? "col" : "row",
          text,
        }),
      ),
    );
  const rows = turn.rounds.map((round) => {
    const { input, output } = withNested(round);
    return row("td", [`${round.number}`, tokens(input), tokens(output), dollars(round.cost)]);
  });
  const costs = turn.rounds.map((round) => round.cost).filter((cost) => cost !== null);
  const cost = costs.length ? costs.reduce((a, b) => a + b, 0) : null;
  const cached = turn.usage?.cache_read;
  return el(
    "div",
    { class: "account" },
    el(
      "table",
      {},
      el("caption", { class: "unseen", text: "Tokens and cost, round by round" }),
      el("thead", {}, row("th", ["Round", "In", "Out", "Cost"])),
      el("tbody", {}, ...rows),
      el(
        "tfoot",
        {},
        row("td", ["Turn", tokens(turn.usage?.input), tokens(turn.usage?.output), dollars(cost)]),
      ),
    ),
    cached ? el("small", { text: `${tokens(cached)} of the input came from a cache.` }) : null,
  );
}

/** The tokens of a round; those of sub-agents are counted in the round that called them. */
function withNested(round) {
  const total = { input: round.usage?.input ?? null, output: round.usage?.output ?? null };
  for (const item of round.items) {
    for (const inner of item.child?.rounds ?? []) {
      const nested = withNested(inner);
      for (const name of ["input", "output"]) {
        if (nested[name] !== null) total[name] = (total[name] ?? 0) + nested[name];
      }
    }
  }
  return total;
}
