"""What retinue does, shown on a small model that runs on this machine: `make demo`.

Nothing is prepared: every answer comes from SmolLM2 with 135 million parameters, while you look.
Such a model writes fluent sentences, picks words out of a text, and knows next to nothing. So what
it says is only shown; what retinue does round it is checked, and a failed check ends the demo with
exit code 1.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from layers import show_layers
from msgspec import Meta

from retinue import Agent, Approve, ChatRequest, ChatResponse, Layer, Settings, Turn, events, tool
from retinue.advisors import Memory, UsageCollector
from retinue.errors import OutputError, RetinueError
from retinue.messages import Message
from retinue.stores import SQLite
from retinue.tools import PendingCall

CONVERSATION = "demo"
BOOKING = "booking"
FIRST = "My dog is called Rex. Suggest a toy for Rex."
SECOND = "What is my dog's name?"
THIRD = "What is the name of my dog?"
CALM = Settings(temperature=0, max_tokens=48)
ROOMY = Settings(max_tokens=300)
Name = Annotated[str, Meta(max_length=30)]
"""It fits into ROOMY, whatever the model writes: a small one does not always find the end."""


@tool(return_direct=True)
def forecast(city: Name, days: int) -> str:
    """The weather forecast of a city.

    Args:
        city: Name of the city.
        days: How many days.
    """
    return f"{city}: rain on all {days} days."


@tool(sensitive=True, return_direct=True)
def book(city: Name, nights: int) -> str:
    """Books a room in a hotel.

    Args:
        city: Name of the city.
        nights: How many nights.
    """
    return f"Booked in {city}: {nights} nights."


@dataclass
class Person:
    """What is to be read out of a sentence."""

    name: Name
    age: int


class Demo:
    """The agent, what its model was sent, and how many checks have failed."""

    def __init__(self, database: Path) -> None:
        self.sent: list[Message] = []
        self.failed = 0
        self.usage = UsageCollector()
        self.store = SQLite(database)
        self.agent = Agent(
            "local",
            instructions="Be brief.",
            advisors=[self.usage, Memory(self.store), Layer("Witness", chat=self._witness)],
            gate="sensitive",
            settings=CALM,
            name="demo",
        )

    async def _witness(self, request: ChatRequest, call_next: Any) -> ChatResponse:
        self.sent = list(request.messages)
        return await call_next(request)

    async def ask(self, question: str, **options: Any) -> Any:
        """One turn, streamed to the screen."""
        print(f"you    {question}")
        print("model  ", end="", flush=True)
        return await self.watch(self.agent.stream(question, **options))

    async def watch(self, turn: Turn) -> Any:
        """Shows a turn that was begun."""
        began = time.perf_counter()
        async for event in turn:
            if isinstance(event, events.TextChunk):
                print(event.text.replace("\n", " "), end="", flush=True)
            elif isinstance(event, events.Paused):
                print(*(f"wants {c.tool} with {c.arguments}" for c in event.pending), end="")
            elif isinstance(event, events.ToolStarted):
                print(f"calls {event.name} with {dict(event.arguments or {})}")
            elif isinstance(event, events.ToolFinished):
                print(f"tool   {event.text}\nanswer ", end="", flush=True)
        result = await turn.result()
        cut = " …" if result.message is not None and result.message.finish == "length" else ""
        print(f"{cut}   [{time.perf_counter() - began:.1f} s]")
        return result

    def check(self, what: str, holds: bool) -> None:
        """Says whether something holds, and remembers if it does not."""
        self.failed += not holds
        print(f"{'✓' if holds else '✗ NOT SO:'} {what}")

    def see(self, what: str, holds: bool) -> None:
        """Says whether the model got something right, which is its own affair."""
        print(f"{'✓' if holds else '· not this time:'} {what}")

    def show_sent(self) -> None:
        """What the model was sent last, instructions apart."""
        for message in self.sent:
            print(f"       sent: {message.role:<9}  {' '.join(message.text.split())[:70]}")

    async def close(self) -> None:
        """Lets go of the model and the database."""
        await self.agent.close()
        await self.store.close()


async def show_all(database: Path) -> int:
    """The whole demo but the later processes; gives the number of failed checks."""
    demo = Demo(database)
    title("The onion round the model")
    print(demo.agent.explain())
    title("An answer, streamed")
    first = await demo.ask(FIRST, conversation=CONVERSATION)
    demo.check("the turn completed and has an answer", bool(first.text))
    await show_memory(demo, first.text)
    await show_tool(demo)
    await show_output(demo)
    title("Advisors at work")
    await show_layers(demo)
    title("What all of that used")
    print(demo.usage.report())
    demo.check("the tokens of every call were counted", demo.usage.total.calls == 5)
    await demo.close()
    return demo.failed


async def show_memory(demo: Demo, answered: str) -> None:
    """The same question with the conversation and without."""
    title("A second question, which only the conversation can answer")
    second = await demo.ask(SECOND, conversation=CONVERSATION)
    demo.see("the answer names Rex", "Rex" in second.text)
    demo.show_sent()
    said = [(message.role, message.text) for message in demo.sent]
    demo.check(
        "the model was sent the first exchange, and once",
        said == [("user", FIRST), ("assistant", answered), ("user", SECOND)],
    )
    print("\nFor comparison, without the conversation:")
    await demo.ask(SECOND)
    demo.check("the model was sent the question alone", len(demo.sent) == 1)


async def show_tool(demo: Demo) -> None:
    """A call that the model must make: it fills in the arguments, and the result is the answer."""
    title("A tool whose arguments the model fills in")
    print("The call is forced and its JSON is held to the schema; the words in it are the model's.")
    plain, demo.agent = demo.agent, demo.agent.with_(tools=[forecast])
    result = await demo.ask(
        "What will the weather be in Oslo for the next 3 days?",
        settings=Settings(tool_choice="forecast", max_tokens=ROOMY.max_tokens),
    )
    demo.agent = plain
    ran = [one for message in result.messages for one in message.tool_results]
    demo.check("the tool ran once, on arguments of the right types", [r.ok for r in ran] == [True])
    demo.see("the model took them from the question", "Oslo: rain on all 3" in result.text)


async def show_output(demo: Demo) -> None:
    """A typed object out of a sentence."""
    title("A typed object out of a sentence")
    result = await demo.ask(
        "Grace is 45 years old and lives in Bergen.", output=Person, settings=ROOMY
    )
    try:
        person = result.output
    except OutputError as error:
        person = error
    print(f"       {person!r}")
    demo.check("it is a Person", isinstance(person, Person))
    demo.see("it says what the sentence says", person == Person("Grace", 45))


async def go_on(database: Path) -> int:
    """The second process: it has the file and nothing else; gives the number of failed checks."""
    demo = Demo(database)
    before = await demo.store.tail(CONVERSATION)
    third = await demo.ask(THIRD, conversation=CONVERSATION)
    demo.see("the answer names Rex", "Rex" in third.text)
    demo.show_sent()
    demo.check(
        "the model was sent all that was said in the first process",
        [message.text for message in demo.sent[:-1]] == [entry.message.text for entry in before]
        and len(before) == 4,
    )
    await show_pause(demo)
    await demo.close()
    return demo.failed


async def show_pause(demo: Demo) -> None:
    """A call that the model must make and a person must allow: the turn waits in the database."""
    title("A call that a person must allow")
    demo.agent = demo.agent.with_(tools=[book])
    result = await demo.ask(
        "Book a room in Lima for 30 nights.",
        conversation=BOOKING,
        settings=Settings(tool_choice="book", max_tokens=ROOMY.max_tokens),
    )
    print(f"       {result.status}: {result.reason}")
    booked = [one for message in result.messages for one in message.tool_results]
    demo.check(
        "the turn waits for one answer, and nothing was booked",
        len(result.pending) == 1 and not booked,
    )
    print("       The process ends here.")


async def approve(database: Path) -> int:
    """The third process: it finds the call and answers it; gives the number of failed checks."""
    demo = Demo(database)
    demo.agent = demo.agent.with_(tools=[book])
    pending = await demo.agent.pending(BOOKING)
    demo.check("it finds the call that waits", [call.tool for call in pending] == ["book"])
    for call in pending:
        await show_approval(demo, call)
    await demo.close()
    return demo.failed


async def show_approval(demo: Demo, call: PendingCall) -> None:
    """The call is approved with other arguments, and the turn goes on to its end."""
    print(f"       {call.tool} with {call.arguments} waits ({call.kind}): {call.why}")
    edited = {**(call.arguments or {}), "nights": 3}
    print(f"you    Approved, with {edited}\nmodel  ", end="")
    answers = {call.id: Approve(edited)}
    result = await demo.watch(await demo.agent.stream_resume(BOOKING, answers))
    demo.check(
        "the turn completed, and what was approved is what ran",
        result.status == "completed" and result.text == book(**edited),
    )
    demo.check("nothing waits any more", not await demo.agent.pending(BOOKING))


def title(text: str) -> None:
    """A heading."""
    print(f"\n── {text} {'─' * (76 - len(text))}\n", flush=True)


def main(arguments: list[str]) -> int:
    """Runs the demo, or one of its later processes; gives the exit code."""
    later = {"--go-on": go_on, "--approve": approve}
    if arguments and arguments[0] in later:
        return min(asyncio.run(later[arguments[0]](Path(arguments[1]))), 1)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "demo.db"
        failed = asyncio.run(show_all(database))
        for what, option in (
            ("A new process, with the same database", "--go-on"),
            ("Another process, which finds what waits", "--approve"),
        ):
            title(what)
            command = [sys.executable, __file__, option, str(database)]
            failed += subprocess.run(command, check=False).returncode != 0
    title("Done" if not failed else "Something is wrong")
    print(
        "The model here has 135 million parameters. It can write sentences, fill in a form and"
        "\nfind words in a short text. It cannot reason or calculate, knows hardly any facts, and"
        "\nloses the thread after a few sentences. The rest of what you saw is retinue, and is the"
        "\nsame with a large model: `retinue chat openai:gpt-5-mini`; `retinue models` lists more."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RetinueError as error:
        sys.exit(f"demo: {error}")
