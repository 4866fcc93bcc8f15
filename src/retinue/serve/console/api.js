// The server as functions. The key is kept for this tab alone, and goes along as a header.

import { Frames } from "./sse.js";

const KEY = "retinue.key";
const BASE = new URL(".", document.baseURI);

/** What the server refused: its code and its sentence. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** The JSON of an answer, or null where there is none. Throws Refused, or TypeError when the server
 * cannot be reached. */
export async function ask(method, path, body) {
  const response = await send(method, path, { body });
  return response.status === 204 ? null : response.json();
}

/** A stream of events: {turn, frames}, where `frames` gives {place, event} one by one.
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
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const frame of cut.feed(value)) yield { place: frame.id, event: JSON.parse(frame.data) };
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function send(method, path, { body, after, signal, accept = "application/json" }) {
  const headers = { accept };
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
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
  if (!response.ok) throw await refusal(response);
  return response;
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
