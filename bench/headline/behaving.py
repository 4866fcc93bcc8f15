"""What turns do in cases that decide whether an agent can be left alone; counted and timed."""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retinue import Agent, TurnResponse, tool
from retinue.advisors import Memory, QuestionAnswer, Safeguard
from retinue.models.scripted import Say, Scripted, call
from retinue.retrieval import Lexical
from retinue.stores import InMemory

Row = tuple[str, str, str]


@dataclass
class City:
    """A form with a field that no prompt names."""

    name: str
    inhabitants: int


async def direct() -> Row:
    """A tool whose result is the answer, beside one whose result the model words anew."""

    @tool
    def fetch() -> str:
        """Fetches."""
        return "raw  result"

    called: list[tuple[int, bool]] = []
    for one in (fetch.with_(return_direct=True), fetch):
        model = Scripted(call("fetch"), "The result is raw.")
        result = await Agent(model, tools=[one]).run("Fetch.")
        called.append((len(model.requests), result.text == "raw  result"))
    (ours, verbatim), (control, _) = called
    return (
        "return-direct",
        "verbatim, 1 model call; control 2, rewritten",
        f"{'verbatim' if verbatim else 'CHANGED'}, {ours} model call; control {control}, rewritten",
    )


async def form() -> Row:
    """An answer that lacks a field is sent back."""
    model = Scripted('{"name": "Oslo"}', '{"name": "Oslo", "inhabitants": 709000}')
    result = await Agent(model, output=City).run("Tell me about Oslo.")
    fixed = result.output == City("Oslo", 709000)
    return (
        "structured output with a field the prompt never named",
        "fixed in 2 calls",
        f"{'fixed' if fixed else 'NOT FIXED'} in {len(model.requests)} calls",
    )


async def guard() -> Row:
    """A question that is refused."""
    store, model = InMemory(), Scripted("never")
    agent = Agent(model, advisors=[Safeguard(["bomb"]), Memory(store)])
    result = await agent.run("How do I build a bomb?", conversation="c")
    stored = len(await store.tail("c"))
    return (
        "safeguard",
        "0 model calls, nothing stored",
        f"{result.status}: {len(model.requests)} model calls, {stored} messages stored",
    )


async def facts() -> Row:
    """A fact that only the index holds, over a turn of three rounds."""
    asked: list[str] = []
    index = Lexical()
    await index.add("The harbour master of Velmora is called Odalys Brann.")

    async def retrieve(query: str, top_k: int) -> Any:
        asked.append(query)
        return await index.retrieve(query, top_k)

    @tool
    def note() -> str:
        """Notes."""
        return "noted"

    def say(request: Any) -> Any:
        if len(request.turn.messages) and request.round < 3:
            return call("note")
        known = "Odalys Brann" in "".join(message.text for message in request.messages)
        return "Odalys Brann" if known else "I do not know."

    question = "Who is the harbour master of Velmora?"
    advised = Agent(Scripted(say, repeat=True), tools=[note], advisors=[QuestionAnswer(retrieve)])
    control = Agent(Scripted(say, repeat=True), tools=[note])
    knows = (await advised.run(question)).text == "Odalys Brann"
    control_knows = (await control.run(question)).text == "Odalys Brann"
    await index.close()
    return (
        "retrieval over invented facts, a turn of three rounds",
        "control cannot answer, advised can; 1 retrieval",
        f"control {'can' if control_knows else 'cannot'}, advised {'can' if knows else 'CANNOT'};"
        f" {len(asked)} retrieval",
    )


async def timeout() -> Row:
    """A time limit of one second on a socket that answers after three."""
    landed: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.wait_for(reader.read(1), 3)
        except TimeoutError:
            writer.write(b"x")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    @tool(timeout=1.0)
    async def slow() -> str:
        """Waits for a socket, and then does something."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await reader.read(1)
            landed.append("socket")
        finally:
            writer.close()
        return "done"

    began = time.perf_counter()
    await Agent(Scripted(call("slow"), "I go on."), tools=[slow]).run("Go.")
    took = time.perf_counter() - began
    await asyncio.sleep(2.5)
    server.close()
    await server.wait_closed()
    return (
        "timeout of 1 s on a socket that takes 3 s",
        "goes on at 1 s, the effect never lands",
        f"goes on at {took:.2f} s, the effect {'LANDS' if landed else 'never lands'}",
    )


def spin(mark: str) -> str:
    """Computes for two seconds, and then leaves a mark."""
    end = time.perf_counter() + 2
    while time.perf_counter() < end:
        pass
    Path(mark).touch()
    return "done"


async def spinning(folder: Path) -> Row:
    """A time limit on a computation, in a thread and in a process of its own."""
    told: list[str] = []
    for isolation in (None, "process"):
        mark = folder / f"{isolation}"
        one = tool(timeout=0.5, isolation=isolation)(spin)
        model = Scripted(call("spin", mark=str(mark)), "I go on.")
        async with Agent(model, tools=[one]) as agent:
            await agent.run("Go.")
            await asyncio.sleep(3)
        where = "process" if isolation else "thread"
        told.append(f"{where}: {'lands later' if mark.exists() else 'never'}")
    return "timeout of a computation", "lands later; in a process never", ", ".join(told)


async def cancelled() -> Row:
    """How long a turn takes to end when its reader says so."""
    agent = Agent(Scripted(Say(text=["word "] * 100_000, delay=0.001), repeat=True))
    took: list[float] = []
    for _ in range(5):
        turn = agent.stream("Talk.")
        seen, began = 0, 0.0
        async for _event in turn:
            seen += 1
            if seen == 20:
                began = time.perf_counter()
                turn.cancel()
        took.append(time.perf_counter() - began)
    return "cancel of a stream", "about 7 ms", f"{1_000 * min(took):.1f} ms"


async def at_once() -> Row:
    """Eight conversations on one agent, the slowest of which takes half a second."""

    async def answer(request: Any) -> str:
        seconds = float(request.messages[-1].text)
        await asyncio.sleep(seconds)
        return f"slept {seconds}"

    agent = Agent(Scripted(answer, repeat=True), advisors=[Memory()])
    waits = [0.1, 0.2, 0.3, 0.5, 0.4, 0.3, 0.2, 0.1]

    async def ask(number: int) -> TurnResponse:
        return await agent.run(str(waits[number]), conversation=f"c-{number}")

    began = time.perf_counter()
    await asyncio.gather(*map(ask, range(8)))
    return (
        "8 conversations at once on one agent",
        "as long as the slowest one",
        f"{time.perf_counter() - began:.2f} s, the slowest {max(waits):.2f} s",
    )


async def rows() -> list[Row]:
    """What is shown, the reference's figure, and ours."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            await direct(),
            await form(),
            await guard(),
            await facts(),
            await timeout(),
            await spinning(Path(folder)),
            await cancelled(),
            await at_once(),
        ]
