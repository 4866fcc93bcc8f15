// The server as functions. The key is kept for this tab alone, and goes along as a header. Where the
// server does not know who asks, the person is asked for a key, and the request is made again.

import { signIn } from "./frame.js";
import { parse } from "./json.js";
import { keep, recall } from "./kept.js";
import { Frames } from "./sse.js";

const KEY = "key";
const BASE = new URL(".", document.baseURI);
// The server says something every 15 s. A connection on which nothing comes for longer is dead, though
// nobody was told: a lid was closed, or a network changed.
const SILENCE = 40_000;

/** What the server refused: its code and its sentence. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Whether requests are made with a key. */
export function hasKey() {
  return recall(KEY) !== null;
}

/** The JSON of an answer, or null where there is none. Throws Refused, or TypeError when the server
 * cannot be reached. */
export async function ask(method, path, body) {
  const response = await send(method, path, { body });
  return response.status === 204 ? null : parse(await response.text());
}

/** A stream of events: {turn, frames}, where `frames` gives {place, event} one by one, and is null
 * where there are no more.
 *
 * @param {string|null} after the place behind which it goes on
 */
export async function open(method, path, { body, after, signal }) {
  const response = await send(method, path, { body, after, signal, accept: "text/event-stream" });
  const frames = response.status === 204 ? null : read(response.body);
  return { turn: response.headers.get("x-turn-id"), frames };
}

async function* read(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const cut = new Frames();
  const giveUp = () => reader.cancel().catch(() => {}); // which ends the read that waits
  let timer;
  try {
    for (;;) {
      timer = setTimeout(giveUp, SILENCE);
      const { value, done } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      for (const frame of cut.feed(value)) yield { place: frame.id, event: parse(frame.data) };
    }
  } finally {
    clearTimeout(timer);
    giveUp();
  }
}

async function send(method, path, { body, after, signal, accept = "application/json" }) {
  const given = recall(KEY);
  const headers = { accept };
  if (given) headers.authorization = `Bearer ${given}`;
  if (after) headers["last-event-id"] = after;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(new URL(path, BASE), {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  if (response.ok) return response;
  const refused = await refusal(response);
  if (refused.status !== 401) throw refused;
  // Perhaps another request has asked for a new key meanwhile.
  if (recall(KEY) === given) keep(KEY, await signIn(given ? refused.message : ""));
  return send(method, path, { body, after, signal, accept });
}

async function refusal(response) {
  let fault = null;
  try {
    fault = (await response.json()).error;
  } catch {
    // something on the way answered, and not in our form
  }
  const message = fault?.message ?? `The server answered ${response.status} without a reason.`;
  return new Refused(response.status, fault?.code ?? "internal", message);
}
