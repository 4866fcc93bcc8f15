"""Workers, a gateway and clients that die, as real processes."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from retinue.chains.events import (
    AttemptDiscarded,
    Event,
    TextChunk,
    ToolFinished,
    TurnEnded,
    final_text,
)
from retinue.serve.access import ApiKeys, new_key
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub
from tests.serve.grpc.processes import START, child, line_of, seen_until, worker
from tests.serve.grpc.stage import by_name, event_of, job, stage, text_of
from tests.serve.scenes import all_of, kinds, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


def numbered(events: list[Event]) -> bool:
    """Whether they have their numbers without a gap."""
    return [event.seq for event in events] == [*range(1, len(events) + 1)]


def end_of(events: list[Event]) -> TurnEnded:
    """The last event."""
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


async def test_a_worker_killed_before_the_first_event_is_not_noticed(tmp_path: Path) -> None:
    async with (
        stage(route=by_name) as one,
        worker(tmp_path, one.address, "quick", name="1") as first,
        worker(tmp_path, one.address, "quick", name="2") as second,
    ):
        first.signal(signal.SIGSTOP)  # it is given the job and says nothing
        starting = asyncio.create_task(one.dispatcher.start(job("quick")))
        for _ in range(3):
            await asyncio.sleep(0)
        assert one.dispatcher.load().workers[0].running == 1
        await first.kill()
        events = await all_of(aiter(await within(starting)))
        assert kinds(events) == [
        "TurnStarted", "RoundStarted", "AttemptStarted", "TextChunk", "TurnEnded",
        ]  # fmt: skip
        assert numbered(events)
        assert final_text(events) == str(second.pid)


@pytest.mark.rule("R-STREAM-5")
async def test_a_worker_killed_in_an_answer_is_followed_by_one_that_says_it_again(
    tmp_path: Path,
) -> None:
    async with (
        stage(route=by_name) as one,
        worker(tmp_path, one.address, "halting", name="1") as first,
        worker(tmp_path, one.address, "halting", name="2") as second,
    ):
        running = await one.dispatcher.start(job("halting", conversation="c"))
        stream, events = aiter(running), list[Event]()
        await seen_until(stream, TextChunk, events)
        assert await line_of(tmp_path / "asked") == str(first.pid)
        await first.kill()
        await seen_until(stream, AttemptDiscarded, events)
        rest = asyncio.create_task(all_of(stream))
        assert await line_of(tmp_path / "asked", 2) == str(second.pid)
        (tmp_path / "go").touch()
        events += await rest
        assert numbered(events)
        assert final_text(events) == end_of(events).text == "one two"
        (taken_back,) = [event for event in events if isinstance(event, AttemptDiscarded)]
        assert "The worker '1' was lost." in taken_back.reason


@pytest.mark.rule("R-TOOL-10")
async def test_a_tool_that_has_run_on_a_lost_worker_does_not_run_again(tmp_path: Path) -> None:
    async with (
        stage(route=by_name) as one,
        worker(tmp_path, one.address, "clerk", name="1") as first,
        worker(tmp_path, one.address, "clerk", name="2") as second,
    ):
        running = await one.dispatcher.start(job("clerk", conversation="c"))
        stream, events = aiter(running), list[Event]()
        await seen_until(stream, ToolFinished, events)
        assert await line_of(tmp_path / "asked") == str(first.pid)
        await first.kill()
        rest = asyncio.create_task(all_of(stream))
        assert await line_of(tmp_path / "asked", 2) == str(second.pid)
        (tmp_path / "go").touch()
        events += await rest
        assert numbered(events)
        assert final_text(events) == end_of(events).text == "All noted."
        assert (tmp_path / "noted").read_text() == "x\n"
        # Who goes on tells the result again; it is that of the same call.
        told = [event for event in events if isinstance(event, ToolFinished)]
        assert len({(event.call_id, event.text) for event in told}) == 1


async def test_a_worker_killed_while_idle_is_given_nothing_more(tmp_path: Path) -> None:
    async with stage(route=by_name) as one:
        gone = asyncio.Event()
        async with (
            worker(tmp_path, one.address, "quick", name="1") as first,
            worker(tmp_path, one.address, "quick", name="2") as second,
        ):
            one.dispatcher.fleet.watch(gone.set)
            await first.kill()
            await within(gone.wait())
            assert [load.name for load in one.dispatcher.load().workers] == ["2"]
            assert text_of(await one.run("x")) == str(second.pid)


async def test_workers_find_a_gateway_again_that_was_killed_and_started(tmp_path: Path) -> None:
    module = ("-m", "tests.serve.grpc.served", "gateway")
    async with child(tmp_path, *module, "0") as before:
        port = await before.line()
        address = f"127.0.0.1:{port}"
        async with worker(tmp_path, address, "quick", "halting") as serving:
            async with aio.insecure_channel(address) as channel:
                stub: Any = AgentsStub(channel)
                call = stub.Run(pb.Start(agent="halting", text="x"))
                assert (await within(anext(aiter(call)))).type == "turn_started"
                await line_of(tmp_path / "asked")
                await before.kill()
            assert await line_of(tmp_path / "cancelled") == str(serving.pid)
            async with child(tmp_path, *module, port) as after:
                assert await after.line() == port
                assert await _asked(address) == str(serving.pid)


async def _asked(address: str) -> str:
    """What the agent `quick` says, as soon as its worker is there."""
    async with asyncio.timeout(START), aio.insecure_channel(address) as channel:
        stub: Any = AgentsStub(channel)
        while True:
            try:
                call = stub.Run(pb.Start(agent="quick", text="x"), wait_for_ready=True)
                return text_of([event async for event in call])
            except aio.AioRpcError as error:
                if error.code().name != "UNAVAILABLE":
                    raise
                await asyncio.sleep(0.05)


@pytest.mark.rule("R-LOOP-8")
async def test_a_client_that_is_killed_ends_its_turn(tmp_path: Path) -> None:
    async with stage() as one, worker(tmp_path, one.address, "halting") as serving:
        module = ("-m", "tests.serve.grpc.served", "client")
        async with child(tmp_path, *module, one.address) as client:
            assert await client.line() == "turn_started"
            await line_of(tmp_path / "asked")
            await client.kill()
            assert await line_of(tmp_path / "cancelled") == str(serving.pid)


async def test_a_worker_that_is_told_to_end_lets_its_turns_end_and_takes_no_more(
    tmp_path: Path,
) -> None:
    async with (
        stage(route=by_name) as one,
        worker(tmp_path, one.address, "halting", name="1") as leaving,
        worker(tmp_path, one.address, "quick", "halting", name="2"),
    ):
        running = await one.dispatcher.start(job("halting"))
        await line_of(tmp_path / "asked")
        noticed = asyncio.Event()
        one.dispatcher.fleet.watch(noticed.set)
        leaving.signal(signal.SIGTERM)
        await leaving.until("takes no more turns")
        await within(noticed.wait())
        other = asyncio.create_task(one.run("x", agent="halting"))
        assert await line_of(tmp_path / "asked", 2) != str(leaving.pid)
        (tmp_path / "go").touch()
        assert (await all_of(aiter(running)))[-1].text == "one two"
        assert text_of(await within(other)) == "one two"
        assert await leaving.code() == 0


async def test_a_second_signal_cancels_what_still_runs(tmp_path: Path) -> None:
    async with stage() as one, worker(tmp_path, one.address, "halting") as leaving:
        reading = asyncio.create_task(one.run("x"))
        await line_of(tmp_path / "asked")
        leaving.signal(signal.SIGTERM)
        await leaving.until("takes no more turns")
        leaving.signal(signal.SIGINT)
        assert await line_of(tmp_path / "cancelled") == str(leaving.pid)
        assert await leaving.code() == 0
        assert event_of((await within(reading))[-1]).status in ("cancelled", "failed")


@pytest.mark.parametrize(
    ("scopes", "said"),
    [
        (None, "refused this worker's token: Who you are is not known"),
        (["turns"], "does not let this token work: This key or token has no scope 'work'"),
    ],
)
async def test_a_worker_with_a_wrong_token_ends_and_says_why(
    tmp_path: Path, scopes: list[str] | None, said: str
) -> None:
    key, kept = new_key("somebody", scopes or ["work"])
    token = key if scopes else "rk-wrong"
    async with stage(gateway={"access": ApiKeys([kept])}) as one:
        env = {"RETINUE_WORKER_TOKEN": token}
        async with worker(tmp_path, one.address, "quick", ready=False, env=env) as refused:
            line = await refused.until(said)
            assert token not in line
            assert await refused.code() == 2
        assert one.dispatcher.load().workers == ()
