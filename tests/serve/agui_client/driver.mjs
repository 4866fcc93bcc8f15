// Drives the public client of AG-UI: commands come in as lines of JSON, and what the client sees
// goes out the same way.
//
//   ["add", message]   the user, or the front end, puts a message into the thread
//   ["run", options]   a run; its events follow, then {"ended": …}
//   ["abort"]          the user stops it
//
// What the client complains of is told as {"said": …}.

import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
console.warn = console.error = (...words) => tell({ said: words.map(String).join(" ") });

const agent = new HttpAgent(JSON.parse(process.argv[2]));
agent.subscribe({ onEvent: ({ event }) => tell({ event }) });

async function run(options) {
  let failed = null;
  let result = null;
  try {
    ({ result = null } = await agent.runAgent(options));
  } catch (error) {
    failed = error.message;
  }
  const { messages, state, pendingInterrupts } = agent;
  tell({ ended: { failed, result, messages, state, interrupts: pendingInterrupts } });
}

const commands = {
  add: (message) => agent.addMessage(message),
  run,
  abort: () => agent.abortRun(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, argument] = JSON.parse(line);
  commands[name](argument); // a run goes on while further commands come
}
process.exit(); // connections that are kept alive would hold it
