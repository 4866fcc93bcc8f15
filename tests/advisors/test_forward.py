"""Others hear the events of a turn: what they get, and who pays when they fail or are slow."""

import asyncio
import logging
import queue
from collections.abc import Callable
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, TurnRequest, events, tool
from retinue.advisors import Forward, Validate
from retinue.chains.events import Event, TextChunk, TurnEnded, TurnStarted, final_text
from retinue.messages import TextDelta
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from tests.advisors.talking import WAYS, Way, by_parent, soon
from tests.agent.reading import quiet, read


def text_of(heard: list[Any]) -> str:
    return "".join(one.text for one in heard if isinstance(one, TextChunk))


def all_of(waiting: asyncio.Queue[Event]) -> list[Event]:
    return [waiting.get_nowait() for _ in range(waiting.qsize())]


class Writer:
    """Like the stream of an RPC: one async method."""

    def __init__(self, method: str) -> None:
        self.heard: list[Any] = []
        setattr(self, method, self._take)

    async def _take(self, event: Any) -> None:
        await asyncio.sleep(0)
        self.heard.append(event)


def consumers() -> list[tuple[str, Callable[[], tuple[Any, Callable[[], list[Any]]]]]]:
    def plain() -> tuple[Any, Any]:
        heard: list[Any] = []
        return heard.append, lambda: heard

    def asynchronous() -> tuple[Any, Any]:
        heard: list[Any] = []

        async def take(event: Event) -> None:
            await asyncio.sleep(0)
            heard.append(event)

        return take, lambda: heard

    def waiting() -> tuple[Any, Any]:
        events: asyncio.Queue[Event] = asyncio.Queue()
        return events, lambda: all_of(events)

    def threads() -> tuple[Any, Any]:
        events: queue.Queue[Event] = queue.Queue()
        return events, lambda: [events.get_nowait() for _ in range(events.qsize())]

    def writer(method: str) -> Callable[[], tuple[Any, Any]]:
        def make() -> tuple[Any, Any]:
            it = Writer(method)
            return it, lambda: it.heard

        return make

    return [
        ("function", plain),
        ("async function", asynchronous),
        ("queue", waiting),
        ("queue of threads", threads),
        ("send", writer("send")),
        ("write", writer("write")),
    ]


KINDS = pytest.mark.parametrize(
    "make", [m for _, m in consumers()], ids=[n for n, _ in consumers()]
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_slow", ["wait", "drop", "detach"])
@KINDS
async def test_every_kind_of_consumer_gets_every_event_in_order(
    make: Any, on_slow: Any, way: Way
) -> None:
    consumer, heard = make()
    model = Scripted(Say(text=["I ", "look."], calls=[call("none")]), Say(text=["Ra", "in."]))
    agent = Agent(model, advisors=[Forward(consumer, on_slow=on_slow)])
    result = await soon(way(agent, "Weather?"))
    got = heard()
    assert [one.seq for one in got] == list(range(1, len(got) + 1))
    assert isinstance(got[0], TurnStarted)
    assert isinstance(got[-1], TurnEnded)
    assert final_text(got) == result.text == got[-1].text == "Rain."


async def test_what_is_forwarded_of_a_stream_is_what_its_reader_sees() -> None:
    heard: list[Event] = []
    agent = Agent(Scripted(Say(text=["a", "b"])), advisors=[Forward(heard.append)])
    assert await read(agent.stream("Go.")) == heard


async def test_several_consumers_hear_the_same() -> None:
    one: list[Event] = []
    two: list[Event] = []
    advisors = [Forward(one.append, two.append), Forward(three := Writer("write"))]
    await Agent(Scripted("hi"), advisors=advisors).run("Go.")
    assert one == two == three.heard
    assert text_of(one) == "hi"


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_that_is_entered_again_is_forwarded_once(way: Way) -> None:
    heard: list[Event] = []
    agent = Agent(Scripted("x", "1"), advisors=[Validate(int), Forward(heard.append)])
    assert (await way(agent, "A number?")).text == "1"
    assert [one.seq for one in heard] == list(range(1, len(heard) + 1))
    assert final_text(heard) == "1"


async def test_as_a_sub_agent_its_own_events_are_forwarded() -> None:
    heard: list[Event] = []
    await by_parent(Agent(Scripted("from the child"), advisors=[Forward(heard.append)]), "Go.")
    assert text_of(heard) == "from the child"


async def test_each_turn_can_have_a_consumer_of_its_own() -> None:
    heard: dict[str, list[Event]] = {"a": [], "b": []}

    async def whose(request: TurnRequest) -> Any:
        await asyncio.sleep(0)
        return None if request.data is None else heard[request.data].append

    agent = Agent(Scripted(lambda r: r.data or "", repeat=True), advisors=[Forward(for_turn=whose)])
    await asyncio.gather(*(agent.run("Go.", data=name) for name in ("a", "b", None)))
    assert {name: text_of(them) for name, them in heard.items()} == {"a": "a", "b": "b"}


async def test_events_are_encoded_and_left_out_by_choice() -> None:
    heard: list[bytes] = []
    encode = lambda e: e.text.encode() if isinstance(e, TextChunk) else None  # noqa: E731
    agent = Agent(Scripted(Say(text=["a", "b"])), advisors=[Forward(heard.append, encode=encode)])
    await agent.run("Go.")
    assert heard == [b"a", b"b"]


def failing(on: str = "b") -> tuple[list[Event], Callable[[Event], None]]:
    heard: list[Event] = []

    def take(event: Event) -> None:
        if isinstance(event, TextChunk) and event.text == on:
            raise LookupError("the line is dead, token=abcdefgh")
        heard.append(event)

    return heard, take


def endless() -> Layer:
    """Keeps the turn from ending by itself."""

    async def linger(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        await asyncio.Event().wait()
        return response

    return Layer("linger", turn=linger)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_slow", ["wait", "drop", "detach"])
@pytest.mark.behaviour("B-ON-13")
async def test_a_consumer_that_fails_stops_the_turn_with_its_error(way: Way, on_slow: Any) -> None:
    forward = Forward(failing()[1], on_slow=on_slow)
    agent = Agent(Scripted(Say(text=["a", "b", "c"])), advisors=[forward, endless()])
    with pytest.raises(LookupError, match="dead") as caught:
        await soon(way(agent, "Go."))
    assert "of Forward" in caught.value.__notes__[0]
    await quiet()


@pytest.mark.parametrize(
    ("on_failure", "text", "ends"), [("drop", "ac", True), ("detach", "a", False)]
)
@pytest.mark.parametrize("on_slow", ["wait", "drop", "detach"])
async def test_a_failure_costs_one_event_or_all_that_follow_by_choice(
    on_failure: Any, on_slow: Any, text: str, ends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard, take = failing()
    agent = Agent(
        Scripted(Say(text=["a", "b", "c"])),
        advisors=[Forward(take, on_failure=on_failure, on_slow=on_slow)],
    )
    with caplog.at_level(logging.WARNING, "retinue"):
        assert (await agent.run("Go.")).text == "abc"
    assert text_of(heard) == text
    assert isinstance(heard[-1], TurnEnded) is ends
    (line,) = caplog.messages
    assert "dead" in line
    assert "abcdefgh" not in line


async def test_a_consumer_that_was_cancelled_itself_has_failed_and_the_turn_is_not() -> None:
    async def gone(event: Event) -> None:
        raise asyncio.CancelledError

    with pytest.raises(ConnectionAbortedError):
        await soon(Agent(Scripted("hi"), advisors=[Forward(gone), endless()]).run("Go."))
    agent = Agent(Scripted("hi"), advisors=[Forward(gone, on_failure="detach")])
    assert (await soon(agent.run("Go."))).text == "hi"


async def test_a_failure_behind_the_end_of_the_turn_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def late(event: Event) -> None:
        if isinstance(event, TurnEnded):
            raise LookupError("too late")

    assert (await Agent(Scripted("hi"), advisors=[Forward(late)]).run("Go.")).text == "hi"
    assert "too late" in caplog.text


async def test_a_consumer_that_is_stuck_fails_when_patience_is_out() -> None:
    never = asyncio.Event()

    async def stuck(event: Event) -> None:
        await never.wait()

    agent = Agent(Scripted(Say(text=["x"] * 50)), advisors=[Forward(stuck, limit=2, patience=0.01)])
    with pytest.raises(TimeoutError, match=r"took longer than 0.01 seconds for one event; make it"):
        await soon(agent.run("Go."))
    await quiet()


def gated() -> tuple[asyncio.Event, list[Event], Any]:
    gate, heard = asyncio.Event(), list[Event]()

    async def take(event: Event) -> None:
        await gate.wait()
        heard.append(event)

    return gate, heard, take


@pytest.mark.rule("R-STREAM-6")
async def test_a_slow_consumer_slows_the_model_by_default() -> None:
    gate, heard, take = gated()
    sent: list[int] = []

    def chunks() -> Any:
        for number in range(100):
            sent.append(number)
            yield TextDelta("x")

    agent = Agent(Scripted(Say(deltas=chunks())), advisors=[Forward(take, limit=10)])
    running = asyncio.create_task(agent.run("Go."))
    for _ in range(300):
        await asyncio.sleep(0)
    assert len(sent) <= 10
    gate.set()
    assert (await soon(running)).text == text_of(heard) == "x" * 100


@pytest.mark.parametrize("way", WAYS)
async def test_a_slow_consumer_misses_chunks_and_no_other_event_by_choice(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    gate, heard, take = gated()

    async def opened(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        gate.set()
        return response

    agent = Agent(
        Scripted(Say(text=["x"] * 90, calls=[call("none")]), Say(text=["y"] * 90)),
        advisors=[Layer("open", turn=opened), Forward(take, limit=10, on_slow="drop")],
    )
    result = await soon(way(agent, "Go."))
    assert len(text_of(heard)) < 90
    assert [type(one) for one in heard if not isinstance(one, TextChunk)] == [
        events.TurnStarted, events.RoundStarted, events.AttemptStarted, events.ToolStarted,
        events.ToolFinished, events.RoundStarted, events.AttemptStarted, events.TurnEnded,
    ]  # fmt: skip
    assert heard[-1].text == result.text == "y" * 90  # pyright: ignore[reportAttributeAccessIssue]
    assert "which it missed" in caplog.text


@pytest.mark.parametrize("way", WAYS)
async def test_a_slow_consumer_is_let_go_by_choice(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    _, heard, take = gated()
    agent = Agent(
        Scripted(Say(text=["x"] * 90)), advisors=[Forward(take, limit=10, on_slow="detach")]
    )
    assert (await soon(way(agent, "Go."))).text == "x" * 90
    assert heard == []
    assert "10 events wait, and gets no more" in caplog.text
    await quiet()


@pytest.mark.parametrize("on_slow", ["drop", "detach"])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_burst_is_no_slowness(on_slow: Any, asynchronous: bool) -> None:
    heard: list[Event] = []

    async def take(event: Event) -> None:
        heard.append(event)

    @tool
    async def look() -> str:
        """Looks."""
        return "x"

    consumer = take if asynchronous else heard.append
    calls = [call("look") for _ in range(50)]
    agent = Agent(
        Scripted(calls, Say(text=["x"] * 1000)),
        tools=[look],
        advisors=[Forward(consumer, limit=10, on_slow=on_slow)],
    )
    await agent.run("Go.")
    assert text_of(heard) == "x" * 1000
    assert [one.seq for one in heard] == list(range(1, len(heard) + 1))


@pytest.mark.parametrize("on_slow", ["wait", "drop", "detach"])
async def test_nothing_is_left_of_a_turn_that_is_cancelled(on_slow: Any) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def wait(request: Any) -> str:
        asked.set()
        await never.wait()
        return ""

    heard: list[Event] = []
    agent = Agent(Scripted(wait), advisors=[Forward(heard.append, on_slow=on_slow)])
    running = asyncio.create_task(agent.run("Go."))
    await soon(asked.wait())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(running)
    assert isinstance(heard[-1], TurnEnded)
    assert heard[-1].status == "cancelled"
    await quiet()


async def test_a_consumer_that_cannot_be_found_fails_the_turn_or_is_done_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def nobody(request: TurnRequest) -> Any:
        raise KeyError("no connection")

    with pytest.raises(KeyError):
        await Agent(Scripted("hi"), advisors=[Forward(for_turn=nobody)]).run("Go.")
    agent = Agent(Scripted("hi"), advisors=[Forward(for_turn=nobody, on_failure="detach")])
    assert (await agent.run("Go.")).text == "hi"
    assert "no connection" in caplog.text
    wrong = Agent(Scripted("hi"), advisors=[Forward(for_turn=lambda request: 7)])
    with pytest.raises(ConfigError, match="cannot send events to 7"):
        await wrong.run("Go.")


@pytest.mark.parametrize(
    ("consumers", "options", "told"),
    [
        ([], {}, "has no consumer"),
        ([7], {}, "cannot send events to 7"),
        ([Writer], {}, "cannot send events to <class"),
        ([lambda: None], {}, "must take one event"),
        ([queue.Queue(3)], {}, "give its put_nowait"),
        ([], {"for_turn": 7}, "for_turn=7"),
        ([print], {"encode": "x"}, "encode='x'"),
        ([print], {"on_failure": "raise"}, "on_failure='raise'"),
        ([print], {"on_slow": "stop"}, "on_slow='stop'"),
        ([print], {"limit": 0}, "limit=0"),
        ([print], {"patience": 0}, "patience=0"),
        ([print], {"patience": "30"}, "patience='30'"),
        ([print], {"encode": lambda: b""}, "give a function of one thing"),
    ],
)
def test_what_cannot_be_forwarded_is_refused_where_it_is_built(
    consumers: Any, options: Any, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        Forward(*consumers, **options)
