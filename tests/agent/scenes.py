"""Scenes for property tests: scripts of answers, and layers that bend each hook and the stream."""

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from retinue import Agent, Layer, Limits, ModelError, RetinueError, tool
from retinue.advisors import Memory
from retinue.errors import ModelOverloaded, ModelRefused
from retinue.messages import Delta, TextDelta, Usage
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory


@tool
async def echo(word: str = "x") -> str:
    """Says it again."""
    return f"echo {word}"


@tool(return_direct=True)
async def direct(word: str = "x") -> str:
    """The answer itself."""
    return f"direct {word}"


@tool
async def broken() -> str:
    """Fails."""
    raise ValueError("no")


class Shout:
    def feed(self, delta: Delta) -> tuple[Delta]:
        return (TextDelta(delta.text.upper()) if isinstance(delta, TextDelta) else delta,)

    def flush(self) -> tuple[()]:
        return ()


class Double:
    def feed(self, delta: Delta) -> list[Delta]:
        return [delta, delta]

    async def flush(self) -> list[Delta]:
        return [TextDelta("²")]


class Hold:
    def __init__(self) -> None:
        self.held: list[Delta] = []

    def feed(self, delta: Delta) -> tuple[()]:
        self.held.append(delta)
        return ()

    async def flush(self) -> list[Delta]:
        await asyncio.sleep(0)
        return self.held


class Delivered(Shout):
    delivery_only = True


# -- layers, each of which bends one of the hooks --------------------------------------------------


def transform(kind: Callable[[], Any]) -> Callable[[int], Layer]:
    return lambda n: Layer(f"{kind.__name__} {n}", stream=lambda request: kind())


async def retried(request: Any, call_next: Any) -> Any:
    try:
        return await call_next(request)
    except ModelError:
        return await call_next(request)


async def twice(request: Any, call_next: Any) -> Any:
    await call_next(request)
    return await call_next(request)


async def first_of_two(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    await call_next(request)
    return first


async def at_once(request: Any, call_next: Any) -> tuple[Any, Any]:
    """Two inner calls at the same time, of which none is left behind."""
    tasks = [asyncio.ensure_future(call_next(request)) for _ in range(2)]
    try:
        first, second = await asyncio.gather(*tasks)
        return first, second
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_at_once(request: Any, call_next: Any) -> Any:
    return (await at_once(request, call_next))[0]


async def second_at_once(request: Any, call_next: Any) -> Any:
    return (await at_once(request, call_next))[1]


async def rewritten(request: Any, call_next: Any) -> Any:
    answer = await call_next(request)
    if answer.message is None or getattr(answer, "status", None) not in (None, "completed"):
        return answer
    return answer.with_(message=answer.message.with_text(answer.message.text + "!"))


async def emptied(request: Any, call_next: Any) -> Any:
    answer = await call_next(request)
    if answer.message is None or getattr(answer, "status", None) not in (None, "completed"):
        return answer
    return answer.with_(message=answer.message.with_text(""))


async def answered(request: Any, call_next: Any) -> Any:
    return request.respond("from a layer")


async def refused(request: Any, call_next: Any) -> Any:
    return request.refuse("no", answer="not that")


async def refused_late(request: Any, call_next: Any) -> Any:
    await call_next(request)
    return request.refuse("no")


async def again(request: Any, call_next: Any) -> Any:
    answer = await call_next(request)
    return await call_next(request.again("more")) if answer.status == "completed" else answer


async def apologised(request: Any, call_next: Any) -> Any:
    try:
        return await call_next(request)
    except ModelError:
        return request.respond("sorry")


async def failing_late(request: Any, call_next: Any) -> Any:
    await call_next(request)
    raise RetinueError("a layer fails")


def hook(kind: str, function: Any) -> Callable[[int], Layer]:
    return lambda n: Layer(f"{kind} {function.__name__} {n}", **{kind: function})


EVERYWHERE = (
    twice, first_of_two, first_at_once, second_at_once,
    rewritten, emptied, answered, refused, refused_late, apologised, failing_late,
)  # fmt: skip
LAYERS = [
    *(hook(kind, function) for kind in ("chat", "round", "turn") for function in EVERYWHERE),
    hook("chat", retried),
    hook("turn", again),
    *map(transform, (Shout, Double, Hold, Delivered)),
]
"""What makes the layers; each takes its number in the list."""

texts = st.lists(st.sampled_from(["a", "Bc ", "é", " "]), max_size=3)
says = st.builds(
    Say,
    thinking=st.sampled_from(["", "hm"]),
    text=texts,
    calls=st.lists(st.sampled_from(["echo", "direct", "broken", "nosuch"]), max_size=2).map(
        lambda names: [call(name) for name in names]
    ),
    usage=st.none() | st.just(Usage(input=3, output=2)),
    error=st.sampled_from([None, None, None, None, ModelOverloaded("busy"), ModelRefused("no")]),
)
layers = st.lists(st.sampled_from(LAYERS), max_size=3).map(
    lambda makers: [make(n) for n, make in enumerate(makers)]
)
limits = st.sampled_from([Limits(), Limits(rounds=1), Limits(rounds=2), Limits(tokens=6)])


def agent_of(script: list[Say], onion: list[Layer], limit: Limits, store: InMemory) -> Agent:
    """An agent for a scene. When the script is used up it answers "the end"."""
    return Agent(
        Scripted(*script, "the end", repeat=True),
        tools=[echo, direct, broken],
        advisors=[Memory(store), *onion],
        limits=limit,
        retry=ModelRetry(attempts=2, base=0.0),
    )
