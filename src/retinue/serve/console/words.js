// Figures in words.

import { parse } from "./json.js";

const BRIEF = 300;
const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });
const EXACT = new Intl.NumberFormat("en");

/** Tokens: 1234 is "1,234", and from 10,000 on "12.3K". Unknown is "–". */
export function tokens(count) {
  if (count === null || count === undefined) return "–";
  return count < 10_000 ? EXACT.format(count) : COUNT.format(count);
}

/** Seconds: "340 µs", "12 ms", "3.4 s", "2 min 5 s". */
export function seconds(time) {
  if (time === null || time === undefined) return "–";
  if (time < 0.001) return `${Math.round(time * 1e6)} µs`;
  if (time < 1) return `${time < 0.01 ? (time * 1000).toFixed(1) : Math.round(time * 1000)} ms`;
  if (time < 60) return `${time < 10 ? time.toFixed(1) : Math.round(time)} s`;
  return `${Math.floor(time / 60)} min ${Math.round(time % 60)} s`;
}

/** US dollars, exact enough for one call. Unknown is "–". */
export function dollars(cost) {
  if (cost === null || cost === undefined) return "–";
  if (cost === 0) return "$0";
  return cost < 0.01 ? `$${cost.toPrecision(2)}` : `$${cost.toFixed(2)}`;
}

/** A length of text: "2.5K characters". */
export function size(length) {
  return `${COUNT.format(length)} characters`;
}

/** "1 turn", "2 turns". */
export function many(count, what) {
  return `${EXACT.format(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** When something was: the time of today, or the day. */
export function when(at) {
  const then = new Date(at * 1000);
  const isToday = then.toDateString() === new Date().toDateString();
  const form = isToday
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short" };
  return then.toLocaleString("en-GB", form);
}

/** JSON as a person reads it; what is no JSON as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    return JSON.stringify(parse(value), null, 2);
  } catch {
    return value;
  }
}

/** Arguments on one line, as a call is written; of long ones the beginning. */
export function brief(value) {
  const given = typeof value === "string" ? parsed(value) : value;
  const isObject = given !== null && typeof given === "object";
  const words = isObject
    ? Object.entries(given).map(([name, one]) => `${name}: ${JSON.stringify(one)}`)
    : [String(value ?? "")];
  return words.join(", ").slice(0, BRIEF);
}

function parsed(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}
