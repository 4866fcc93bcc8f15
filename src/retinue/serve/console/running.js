// Turns that run, as this tab remembers them, and the way back to them after a break.
//
// A turn is begun detached, so that it goes on without a reader. What this tab asked is kept until the
// turn has ended: a page that is loaded again asks the same under the same
// request id, which joins what runs, or reads on behind the last event it saw.

import { Refused, ask, open } from "./api.js";
import { parse } from "./json.js";
import { keep, recall } from "./kept.js";

const RUNNING = "running";
const LONGEST = 10_000;
const ASKED_LATELY = 60_000;

/** What runs, by conversation; "" is the one of an agent that keeps none. */
export const running = {
  get: (conversation) => read()[conversation ?? ""] ?? null,
  set(conversation, asked) {
    const all = read();
    if (asked === null) delete all[conversation ?? ""];
    else all[conversation ?? ""] = asked;
    keep(RUNNING, JSON.stringify(all));
  },
};

function read() {
  try {
    return parse(recall(RUNNING)) ?? {};
  } catch {
    return {};
  }
}

/** A new name for a request or a conversation. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Follows a turn to its end, through breaks of the connection.
 *
 * @param {object} asked {path, body, turn, at}: what began it, its id once that is known, and when
 *     it was asked; without `path` it is only read
 * @param {{event, begun, broken, signal}} told `event` gets each event, `begun` the turn's id,
 *     `broken` whether the connection is
 * @returns {Promise<boolean>} whether it was read to its end; false if nobody knows it any more
 */
export async function follow(asked, { event, begun, broken, signal }) {
  let [after, wait] = [null, 500];
  for (;;) {
    try {
      const { turn, frames } = await begin(asked, after, signal);
      if (frames === null) return false;
      if (turn && turn !== asked.turn) begun((asked.turn = turn));
      broken(false);
      for await (const frame of frames) {
        after = frame.place;
        wait = 500;
        event(frame.event);
        if (frame.event.type === "turn_ended" && !frame.event.path.length) return true;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof Refused) {
        if (error.status === 404 && asked.turn) return false;
        // A turn that was begun outlives what stands between it and this page.
        const isPassing = error.status === 429 || error.status >= 500;
        if (!isPassing || !asked.turn) throw error;
      }
    }
    signal.throwIfAborted();
    broken(true);
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST);
  }
}

function begin(asked, after, signal) {
  if (asked.turn) {
    return open("GET", `v1/turns/${encodeURIComponent(asked.turn)}/events`, { after, signal });
  }
  if (Date.now() - asked.at > ASKED_LATELY) {
    throw new Refused(410, "gone", "It is not known whether the question arrived. Ask again.");
  }
  return open("POST", asked.path, { body: asked.body, signal });
}

/** Asks a turn to end. */
export function cancel(turn) {
  return ask("POST", `v1/turns/${encodeURIComponent(turn)}/cancel`);
}

/** Waits a while, or until the browser is online again. */
function pause(time, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = (settle) => () => {
      clearTimeout(timer);
      over.abort();
      settle(signal.reason);
    };
    const timer = setTimeout(end(resolve), time);
    window.addEventListener("online", end(resolve), { signal: over.signal });
    signal.addEventListener("abort", end(reject), { signal: over.signal });
  });
}
