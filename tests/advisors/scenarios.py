"""What a process does when it dies: conversations of every kind, written for `crashing.py`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from retinue import Agent, Approve, Reject, ToolContext, tool
from retinue.advisors import Memory, Summarizer, Validate
from retinue.messages import Message
from retinue.models.scripted import Scripted, Step, call
from retinue.tools import Sequential, Tool, ask_user
from tests.advisors.crashing import Process, Script, answers, finish

Drive = Callable[[Agent], Awaitable[object]]


@dataclass(frozen=True)
class Scenario:
    """One conversation.

    Attributes:
        name: what it is about.
        build: the agent of a process.
        drive: what is asked of it, all in the conversation "c".
        questions: the texts that are asked, in order.
        once: effects that must not happen twice.
    """

    name: str
    build: Callable[[Process], Agent]
    drive: Drive
    questions: Sequence[str]
    once: Sequence[str] = ()


def tools(process: Process) -> list[Tool]:
    """One that must not run twice, one that may, one that is asked about, and more."""

    @tool
    async def book(n: int) -> str:
        """Books."""
        process.act(f"book {n}")
        return f"did book {n}"

    @tool(retry=True)
    async def look(n: int, ctx: ToolContext) -> str:
        """Looks."""
        process.act(f"look {n}", ctx.idempotency_key)
        return f"did look {n}"

    @tool(sensitive=True)
    async def pay(n: int) -> str:
        """Pays."""
        process.act(f"pay {n}")
        return f"did pay {n}"

    @tool
    async def write(n: int) -> str:
        """Writes to a disk that is full until somebody has made room."""
        if process.world.broken:
            process.world.broken = False
            raise PermissionError("read-only")
        process.act(f"write {n}")
        return f"did write {n}"

    @tool(return_direct=True)
    async def fetch(n: int) -> str:
        """Fetches."""
        process.act(f"fetch {n}")
        return f"did fetch {n}"

    return [book, look, pay, write, fetch, ask_user()]


def agent(process: Process, scripts: dict[str, Script], **options: Any) -> Agent:
    """An agent with all tools and a memory on the process's store."""
    store: Any = process
    memory = Memory(store, **options.pop("memory", {}))
    options.setdefault("tools", tools(process))
    layers = [memory, *options.pop("advisors", ())]
    return Agent(
        process.model({**scripts, MORE: ["more"]}), gate="sensitive", advisors=layers, **options
    )


MORE: Final = "and then?"


def asks(*questions: str) -> Drive:
    """Asks, and answers whatever waits."""

    async def drive(agent: Agent) -> None:
        for question in questions:
            result = await agent.run(question, conversation="c")
            while result.status == "paused":
                result = await agent.resume("c", answers(result.pending))

    return drive


def simple(
    name: str, once: Sequence[str] = (), options: dict[str, Any] | None = None, **scripts: Any
) -> Scenario:
    """One whose questions are asked one after another."""
    return Scenario(
        name,
        lambda process: agent(process, scripts, **(options or {})),
        asks(*scripts),
        [*scripts],
        once,
    )


# -- a plain turn, rounds, batches -----------------------------------------------------------------

PLAIN = simple("plain answers", hi=["hello"], bye=["so long"])
ROUNDS = simple(
    "rounds of tools",
    ["book 1", "book 2"],
    go=[call("book", n=1), call("look", n=3), call("book", n=2), "done"],
)
PARALLEL = simple(
    "a batch at once",
    ["book 1", "book 2"],
    go=[[call("book", n=1), call("look", n=3), call("book", n=2), call("look", n=4)], "done"],
)
IN_ORDER = simple(
    "a batch in order",
    ["book 1", "book 2"],
    {"engine": Sequential()},
    go=[[call("look", n=3), call("book", n=1), call("nosuch"), call("book", n=2)], "done"],
)
DIRECT = simple(
    "results as the answer",
    ["fetch 1", "fetch 2"],
    go=[[call("fetch", n=1), call("fetch", n=2)], "sorry"],
)


def nested(process: Process) -> Agent:
    """A parent whose sub-agent books and pays."""
    child = Agent(
        process.model({"trip": [call("book", n=1), call("pay", n=2), "child done"]}),
        name="child",
        tools=tools(process),
        gate="sensitive",
    )
    batch = [call("child", task="trip"), call("book", n=3)]
    return agent(process, {"go": [batch, "done"]}, tools=[child.as_tool(), *tools(process)])


NESTED = Scenario(
    "a sub-agent that pauses", nested, asks("go"), ["go"], ["book 1", "pay 2", "book 3"]
)

# -- answers given up, and summaries ---------------------------------------------------------------


def _is_good(text: str) -> str | None:
    return None if text == "good" else "say good"


def _corrected(turn: Sequence[Message]) -> Step:
    """Books, says something bad, and when told so looks and says something good."""
    called = {one.name for message in turn for one in message.tool_calls}
    if "book" not in called:
        return call("book", n=1)
    if "look" in called:
        return "good"
    return call("look", n=2) if turn[-1].role == "user" else "bad"


REENTRY = simple(
    "an answer that is not valid",
    ["book 1"],
    {"advisors": [Validate(check=_is_good)]},
    go=_corrected,
)
SUMMARY = simple(
    "summaries",
    ["book 1"],
    {"memory": {"max_messages": 4, "summary": Summarizer(model=Scripted("minutes", repeat=True))}},
    one=["1"],
    two=["2"],
    three=[call("book", n=1), "3"],
    four=["4"],
)

# -- pauses ----------------------------------------------------------------------------------------

PAUSE = simple(
    "a pause",
    ["pay 1", "book 2"],
    go=[[call("pay", n=1), call("book", n=2), call("look", n=3)], "done"],
)
TWICE = simple(
    "a pause after a pause", ["pay 1", "pay 2"], go=[call("pay", n=1), call("pay", n=2), "done"]
)
QUESTION = simple(
    "a question to the user",
    ["book 1"],
    go=[[call("ask_user", question="Which?"), call("book", n=1)], "done"],
)
ENVIRONMENT = simple(
    "a failure that a person mends",
    ["book 1", "write 2"],
    go=[[call("book", n=1), call("write", n=2)], "done"],
)


async def one_by_one(agent: Agent) -> None:
    """Answers one call at a time, in different ways."""
    result = await agent.run("go", conversation="c")
    given = iter((Approve({"n": 7}), Reject("no"), Approve()))
    while result.status == "paused":
        result = await agent.resume("c", {result.pending[0].id: next(given)})


APART = Scenario(
    "answers apart",
    lambda process: agent(process, {"go": [[call("pay", n=n) for n in (1, 2, 3)], "done"]}),
    one_by_one,
    ["go"],
    ["pay 1", "pay 2", "pay 3", "pay 7"],
)


async def drop(agent: Agent) -> None:
    """Pauses, and then asks something else."""
    await agent.run("go", conversation="c")
    await agent.run("stop", conversation="c")


DROPPED = Scenario(
    "a new message in place of an answer",
    lambda process: agent(
        process, {"go": [[call("pay", n=1), call("pay", n=2)], "done"], "stop": ["stopped"]}
    ),
    drop,
    ["go", "stop"],
    ["pay 1", "pay 2"],
)


async def anew(agent: Agent) -> None:
    """Asks, and asks again in another way."""
    await agent.run("hi", conversation="c")
    await agent.run("go", conversation="c")
    await finish(agent)
    await agent.regenerate("c", question="stay")


ANEW = Scenario(
    "a turn asked anew",
    lambda process: agent(
        process,
        {"hi": ["hello"], "go": [call("pay", n=1), "gone"], "stay": [call("book", n=2), "x"]},
    ),
    anew,
    ["hi"],
    ["pay 1", "book 2"],
)

SCENARIOS: Final = (
    PLAIN, ROUNDS, PARALLEL, IN_ORDER, DIRECT, NESTED, REENTRY, SUMMARY, PAUSE, TWICE, QUESTION,
    ENVIRONMENT, APART, DROPPED, ANEW,
)  # fmt: skip
