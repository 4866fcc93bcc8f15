// A turn as data, folded from its events. No page, no connection.
//
// Turn:  {id, conversation, asked, rounds, status, reason, error, blockedBy, usage, layers, pending,
//         begun, ended}; `begun` is when it was asked, where this page knows that
// Round: {number, items, usage, cost, fromLog}
// Item:  {kind: "text" | "thinking", text, attempt, discarded}
//      | {kind: "call", id, name, written, arguments, state, text, seconds, retries, child}
//      | {kind: "note", text}
// A call's `child` is the turn of a sub-agent. Its `state` is "written", "running", "done" or
// "failed".

export function newTurn(id = null) {
  return {
    id,
    conversation: null,
    asked: [],
    rounds: [],
    status: null,
    reason: null,
    error: null,
    blockedBy: null,
    usage: null,
    layers: [],
    pending: [],
    begun: null,
    ended: null,
  };
}

/** Takes the next event into a turn. */
export function fold(turn, event) {
  if (event.path?.length) {
    const call = callOf(turn, event.path[0]);
    if (call) fold((call.child ??= newTurn()), { ...event, path: event.path.slice(1) });
    return;
  }
  HANDLERS[event.type]?.(turn, event);
}

const HANDLERS = {
  turn_started(turn, event) {
    turn.id = event.turn;
    turn.conversation = event.conversation;
    turn.status = turn.ended = null;
    turn.pending = [];
  },
  round_started(turn, event) {
    roundOf(turn, event.round);
  },
  attempt_started(turn, event) {
    const round = roundOf(turn, event.round);
    if (!round.fromLog) return;
    // The stream tells this round from its beginning on; what the log had of it is in there.
    Object.assign(round, newRound(event.round));
  },
  attempt_discarded(turn, event) {
    for (const item of roundOf(turn, event.round).items) {
      if (item.kind === "text" && item.attempt === event.attempt) item.discarded = event.reason;
    }
  },
  text: (turn, event) => write(turn, event, "text"),
  thinking: (turn, event) => write(turn, event, "thinking"),
  tool_arguments(turn, event) {
    const round = roundOf(turn, event.round);
    round.indices ??= {};
    const id = event.call_id || round.indices[event.index];
    round.indices[event.index] = id;
    const call = callOf(turn, id) ?? newCall(round, id, event.name);
    call.written += event.fragment;
  },
  tool_started(turn, event) {
    const call =
      callOf(turn, event.call_id) ?? newCall(roundOf(turn, event.round), event.call_id, event.name);
    call.state = "running";
    call.arguments = event.arguments;
    call.begun = Date.now();
  },
  tool_retried(turn, event) {
    callOf(turn, event.call_id)?.retries.push(event.error);
  },
  tool_finished(turn, event) {
    const call =
      callOf(turn, event.call_id) ?? newCall(roundOf(turn, event.round), event.call_id, event.name);
    call.state = event.ok ? "done" : "failed";
    call.text = event.text;
    // A call that never ran took no time.
    call.seconds = call.begun || event.seconds > 0 ? event.seconds : null;
    call.blockedBy = event.blocked_by;
  },
  model_retried(turn, event) {
    const wait = event.wait.toFixed(1);
    const text = `The model failed and is asked again after ${wait} s: ${event.error}`;
    roundOf(turn, event.round).items.push({ kind: "note", text });
  },
  usage(turn, event) {
    const round = roundOf(turn, event.round);
    round.usage = sum(round.usage, event.usage);
    if (event.cost !== null && event.cost !== undefined)
      round.cost = (round.cost ?? 0) + event.cost;
    turn.usage = event.total;
  },
  layers_timed(turn, event) {
    turn.layers = event.layers;
  },
  paused(turn, event) {
    turn.pending = event.pending;
  },
  turn_ended(turn, event) {
    turn.status = event.status;
    turn.reason = event.reason;
    turn.error = event.error;
    turn.blockedBy = event.blocked_by;
    turn.usage = event.usage;
    turn.ended = Date.now();
  },
  resync(turn, event) {
    turn.id = event.turn;
    turn.conversation = event.conversation;
    turn.status = null;
    turn.pending = event.pending ?? [];
    turn.rounds = [];
    if (event.messages.some((message) => message.role === "user")) turn.asked = [];
    for (const message of event.messages) takeMessage(turn, message);
    for (const round of turn.rounds) round.fromLog = false;
    const round = roundOf(turn, event.round);
    if (event.thinking) write(turn, { ...event, text: event.thinking }, "thinking");
    if (event.text) write(turn, event, "text");
    for (const shown of event.calls) {
      const call = newCall(round, shown.call_id, shown.name);
      call.written = shown.arguments;
      call.state = shown.started ? "running" : "written";
      if (shown.ok !== null)
        Object.assign(call, { state: shown.ok ? "done" : "failed", text: shown.text });
    }
  },
};

/** Takes a stored message into a turn, behind those before it. */
export function takeMessage(turn, message, state = "") {
  const parts = message.parts ?? [];
  if (message.role === "tool") {
    for (const part of parts) takeResult(turn, part);
  } else if (message.role === "assistant") takeAnswer(turn, message, parts, state);
  else if (message.role === "user" && !message.origin) turn.asked.push({ parts, state });
  else takeNote(turn, message, state);
}

function takeAnswer(turn, message, parts, state) {
  const round = newRound((turn.rounds.at(-1)?.number ?? 0) + 1);
  round.fromLog = true;
  round.usage = message.usage ?? null;
  round.partial = message.partial ?? false;
  turn.usage = sum(turn.usage, round.usage);
  turn.rounds.push(round);
  const discarded = state === "superseded" ? "A later answer took its place." : null;
  for (const part of parts) {
    if (part.type === "text" || part.type === "thinking") {
      if (part.text) round.items.push({ kind: part.type, text: part.text, attempt: 0, discarded });
    } else if (part.type === "tool_call") {
      newCall(round, part.id, part.name).written = part.arguments ?? "{}";
    }
  }
}

function takeResult(turn, part) {
  const call = part.type === "tool_result" ? callOf(turn, part.call_id) : null;
  if (!call) return;
  call.state = part.ok === false ? "failed" : "done";
  call.text = (part.parts ?? []).map((one) => one.text ?? `[${one.type}]`).join("");
}

function takeNote(turn, message, state) {
  const text = (message.parts ?? []).map((part) => part.text ?? "").join("");
  const about =
    state === "summary" || message.origin === "summary" ? "Summary" : NOTES[message.origin];
  const note = { kind: "note", text: `${about ?? "Instruction"}: ${text}` };
  const round = turn.rounds.at(-1);
  if (round) round.items.push(note);
  else turn.asked.push({ parts: [], note: note.text, state });
}

const NOTES = { feedback: "A layer asked again", healed: "Healed" };

/** Stored entries as turns, the oldest first. */
export function turnsOf(entries) {
  const turns = [];
  for (const entry of entries) {
    let turn = turns.at(-1);
    if (turn?.id !== entry.turn) {
      turn = Object.assign(newTurn(entry.turn), {
        status: "stored",
        entries: 0,
      });
      turns.push(turn);
    }
    turn.entries += 1;
    takeMessage(turn, entry.message, entry.state);
  }
  return turns;
}

/** What a reader would take for the answer: the text of the last round that was not taken back. */
export function answerOf(turn) {
  const items = turn.rounds.at(-1)?.items ?? [];
  return items
    .filter((item) => item.kind === "text" && !item.discarded)
    .map((item) => item.text)
    .join("");
}

/** What a turn cost in US dollars as far as that is known, or null. */
export function costOf(turn) {
  const known = turn.rounds.filter((round) => round.cost !== null);
  return known.length ? known.reduce((total, round) => total + round.cost, 0) : null;
}

/** Tokens added up; what is unknown of both stays so. */
export function sum(one, other) {
  if (!one || !other) return one ?? other ?? null;
  const total = {};
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const [a, b] = [one[name] ?? null, other[name] ?? null];
    total[name] = a === null && b === null ? null : (a ?? 0) + (b ?? 0);
  }
  return total;
}

function write(turn, event, kind) {
  const { items } = roundOf(turn, event.round);
  const last = items.at(-1);
  if (last?.kind === kind && last.attempt === event.attempt) last.text += event.text;
  else items.push({ kind, text: event.text, attempt: event.attempt, discarded: null });
}

function newRound(number) {
  return { number, items: [], usage: null, cost: null, fromLog: false, partial: false };
}

function roundOf(turn, number) {
  let round = turn.rounds.find((one) => one.number === number);
  if (!round) {
    round = newRound(number);
    turn.rounds.push(round);
  }
  return round;
}

function newCall(round, id, name) {
  const call = {
    kind: "call",
    id,
    name,
    written: "",
    arguments: undefined,
    state: "written",
    text: null,
    seconds: null,
    retries: [],
    blockedBy: null,
    begun: null,
    child: null,
  };
  round.items.push(call);
  return call;
}

function callOf(turn, id) {
  for (let at = turn.rounds.length - 1; at >= 0; at -= 1) {
    const call = turn.rounds[at].items.find((item) => item.kind === "call" && item.id === id);
    if (call) return call;
  }
  return null;
}
