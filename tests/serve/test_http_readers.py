"""Readers of a turn over HTTP: those who leave, come back, wait, or miss something."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from retinue import Agent, ToolContext, tool
from retinue.advisors import Memory
from retinue.chains import events
from retinue.chains.events import final_text
from retinue.errors import StoreError
from retinue.models.scripted import Say, Scripted, call
from retinue.serve.access import Caller
from retinue.serve.cards import AgentCard
from retinue.serve.declared import app_of
from retinue.serve.dispatch import InProcess
from retinue.serve.gateway import Gateway
from retinue.serve.jobs import Job
from retinue.serve.keeping import Keeping
from retinue.serve.wire import Resync
from retinue.stores import InMemory
from tests.serve.scenes import BOUND, Stuck, echoing, paying, weather, within
from tests.serve.serving import listening, serving


@pytest.mark.rule("R-STREAM-6", "R-LOOP-8")
async def test_a_client_that_leaves_cancels_its_turn_down_to_the_tool() -> None:
    seen: list[ToolContext] = []
    began = asyncio.Event()
    ended = asyncio.Event()

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Waits."""
        seen.append(ctx)
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    agent = Agent(Scripted(call("wait")), tools=[wait])
    async with serving(agent) as here:
        async with here.stream("/v1/turns", {"input": "go", "stream": True}) as frames:
            await within(anext(aiter(frames)))
            await within(began.wait())
        await within(ended.wait())
    assert seen[0].cancel.cancelled


@pytest.mark.rule("R-LOOP-8")
async def test_a_client_that_waits_for_json_and_leaves_cancels_its_turn_too() -> None:
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck))) as here:
        asking = asyncio.create_task(here.json("POST", "/v1/turns", {"input": "go"}))
        await within(stuck.asked.wait())
        asking.cancel()
        await within(stuck.stopped.wait())


@pytest.mark.rule("R-STREAM-6")
async def test_a_detached_turn_goes_on_without_its_reader_who_comes_back_and_misses_nothing() -> (
    None
):
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck))) as here:
        body = {"input": "go", "stream": True, "detached": True}
        first: list[Any] = []
        async with here.stream("/v1/turns", body) as frames:
            async for event in frames:
                first.append(event)
                if isinstance(event, events.AttemptStarted):
                    break
        turn = first[0].turn
        path = f"/v1/turns/{turn}/events"
        stuck.go.set()
        rest = await here.events(path, last_event_id=frames.last_id)
        by_number = await here.events(f"{path}?after={first[-1].seq}")
    assert by_number == rest
    whole = first + rest
    assert [event.seq for event in whole] == [*range(1, len(whole) + 1)]
    assert final_text(whole) == whole[-1].text == "at last"
    assert not stuck.stopped.is_set()


async def test_one_who_has_read_all_is_told_that_there_is_no_more() -> None:
    async with serving(echoing()) as here:
        got = await here.events("/v1/turns", {"input": "Hi", "stream": True})
        path = f"/v1/turns/{got[0].turn}/events?after={got[-1].seq}"
        assert await here.json("GET", path) == (204, None)


async def test_a_number_of_another_run_is_not_taken_for_one_of_this() -> None:
    async with serving(echoing()) as here:
        got = await here.events("/v1/turns", {"input": "Hi", "stream": True})
        path = f"/v1/turns/{got[0].turn}/events"
        assert await here.events(path, last_event_id="elsewhere:3") == got
        assert await here.events(path, last_event_id="rubbish") == got


@pytest.mark.rule("R-STREAM-6")
async def test_one_who_was_away_over_a_pause_still_gets_the_rest_of_what_came_before_it() -> None:
    async with serving(paying()) as here:
        ask = {"input": "Pay five.", "conversation": "c-1", "stream": True}
        async with here.stream("/v1/turns", ask) as frames:
            before: list[Any] = [event async for event in frames]
        earlier = frames.last_id.partition(":")[0]
        answers = {before[-2].pending[0].id: {"kind": "approve"}}
        go_on = {"answers": answers, "stream": True}
        async with here.stream("/v1/conversations/c-1/answers", go_on) as frames:
            after: list[Any] = [event async for event in frames]
        later = frames.last_id.partition(":")[0]
        assert later != earlier
        path = f"/v1/turns/{before[0].turn}/events"
        assert await here.events(path, last_event_id=f"{earlier}:2") == before[2:]
        assert await here.events(f"{path}?after={earlier}:2") == before[2:]
        assert await here.events(f"{path}?after={later}:2") == after[2:]
        assert await here.events(f"{path}?after=2") == after[2:]


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_who_missed_too_much_is_shown_where_the_turn_stands() -> None:
    words = [f"{n} " for n in range(50)]
    stuck = Stuck()
    say = Say(text=words, calls=[call("look")])

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent = Agent(Scripted(say, stuck), tools=[look], advisors=[Memory(InMemory())], name="slow")
    async with serving(agent, keeping=Keeping(events=10)) as here:
        body = {"input": "go", "stream": True, "detached": True, "conversation": "c-1"}
        async with here.stream("/v1/turns", body) as frames:
            first = await within(anext(aiter(frames)))
        await within(stuck.asked.wait())
        path = f"/v1/turns/{first.turn}/events"  # pyright: ignore[reportAttributeAccessIssue]
        reading = asyncio.create_task(here.events(f"{path}?after=1"))
        stuck.go.set()
        resync, *rest = await within(reading)
    assert isinstance(resync, Resync)
    assert [event.seq for event in rest] == [*range(resync.seq + 1, resync.seq + 1 + len(rest))]
    stored = [(m.role, m.text) for m in resync.messages]
    assert stored[:2] == [("user", "go"), ("assistant", "".join(words))]
    live = "".join(e.text for e in rest if isinstance(e, events.TextChunk))
    assert resync.text + live == rest[-1].text == "at last"


async def test_a_quiet_stream_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.serve.http.sse.BEAT", 0.005)
    stuck = Stuck()
    async with (
        serving(Agent(Scripted(stuck))) as here,
        here.stream("/v1/turns", {"input": "go", "stream": True}) as frames,
    ):
        async with asyncio.timeout(BOUND):
            while b": \n" not in await frames.response.content.readline():
                pass
        stuck.go.set()
        got: list[Any] = [event async for event in frames]
    assert got[-1].text == "at last"


async def test_a_stream_whose_log_cannot_be_read_breaks_off_and_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def lost(job: Any, turn: str) -> Any:
        raise StoreError("no way to db.internal")

    stuck = Stuck()
    agent = Agent(
        Scripted(Say(text=["x"] * 50, calls=[call("weather", city="Oslo")]), stuck),
        tools=[weather],
        advisors=[Memory(InMemory())],
        name="slow",
    )
    async with serving(agent, keeping=Keeping(events=10)) as here:
        body = {"input": "go", "stream": True, "detached": True, "conversation": "c"}
        async with here.stream("/v1/turns", body) as frames:
            first: Any = await within(anext(aiter(frames)))
        await within(stuck.asked.wait())
        here.gateway.find(Caller(), first.turn)._log = lost  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(aiohttp.ClientPayloadError):
            await here.events(f"/v1/turns/{first.turn}/events?after=1")
        stuck.go.set()
    assert "StoreError: no way to db.internal" in caplog.text
    assert "Exception in ASGI application" not in caplog.text


class Crowded(InProcess):
    """A dispatcher whose places are all taken: jobs wait for one, and can be taken back."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.asked = asyncio.Event()
        self.free = asyncio.Event()
        self.taken_back = asyncio.Event()

    async def start(self, job: Job) -> Any:
        self.asked.set()
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.taken_back.set()
            raise
        return await super().start(job)


PATHS = (
    ("/v1/turns", {"input": "go"}),
    ("/v1/turns", {"input": "go", "stream": True}),
    ("/v1/chat/completions", {"model": "echo", "messages": [{"role": "user", "content": "go"}]}),
)


@pytest.mark.parametrize(("path", "body"), PATHS)
async def test_a_client_that_leaves_gives_up_its_place_in_the_queue(path: str, body: Any) -> None:
    crowded = Crowded(echoing())
    gateway = Gateway(crowded)
    async with listening(app_of(gateway), gateway) as here:
        asking = asyncio.create_task(here.json("POST", path, body))
        await within(crowded.asked.wait())
        asking.cancel()
        await within(crowded.taken_back.wait())


class Deserted(InProcess):
    """A dispatcher whose agents may leave it."""

    left = False

    def agents(self) -> Mapping[str, AgentCard]:
        return {} if self.left else super().agents()


async def test_a_request_that_is_made_again_is_answered_where_its_agent_has_left() -> None:
    deserted = Deserted(echoing())
    gateway = Gateway(deserted)
    async with listening(app_of(gateway), gateway) as here:
        body = {"agent": "echo", "input": "Hi", "request_id": "r"}
        _, first = await here.json("POST", "/v1/turns", body)
        deserted.left = True
        assert await here.json("POST", "/v1/turns", body) == (200, first)
        status, got = await here.json("POST", "/v1/turns", {**body, "request_id": "s"})
        assert (status, got["error"]["code"]) == (503, "unavailable")


async def test_a_detached_turn_keeps_its_place_in_the_queue_without_its_client() -> None:
    model = Scripted("said")
    crowded = Crowded(Agent(model, name="echo"))
    gateway = Gateway(crowded)
    async with listening(app_of(gateway), gateway) as here:
        body = {"input": "go", "detached": True, "request_id": "r"}
        asking = asyncio.create_task(here.json("POST", "/v1/turns", body))
        await within(crowded.asked.wait())
        asking.cancel()
        crowded.free.set()
        _, got = await here.json("POST", "/v1/turns", body)
    assert got["text"] == "said"
    assert not crowded.taken_back.is_set()
    assert len(model.requests) == 1
