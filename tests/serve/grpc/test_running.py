"""A turn on workers that are lost, refuse or leave, without a network."""

import asyncio
from typing import Any

import pytest

from retinue import ConfigError
from retinue.chains.events import AttemptDiscarded, AttemptStarted, Event, TurnEnded, TurnStarted
from retinue.serve.faults import Refused
from retinue.serve.grpc import Grpc
from retinue.serve.grpc.link import Link, WorkerLost
from retinue.serve.grpc.running import RemoteTurn
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.jobs import Job
from tests.serve.grpc.stage import accept, attached, chunk, job, send, told
from tests.serve.scenes import all_of, within

BEGUN = (TurnStarted(1, 0, 0, (), "t"), AttemptStarted(2, 1, 1, ()), chunk(3, "one"))


def end(seq: int) -> TurnEnded:
    return TurnEnded(seq, 1, 1, (), "t", "completed", text="one")


def lose(grpc: Grpc, link: Link) -> None:
    grpc.fleet.lose(link)


async def begun(grpc: Grpc, link: Link, asked: Job) -> RemoteTurn:
    """A turn that a worker has taken."""
    starting = asyncio.create_task(grpc.start(asked))
    dispatch = await told(link, "dispatch")
    accept(link, dispatch.id)
    return await within(starting)


async def reading(grpc: Grpc, link: Link, asked: Job) -> "asyncio.Task[list[Event]]":
    """A turn that is read, and of which the first events have come."""
    starting = asyncio.create_task(grpc.start(asked))
    dispatch = await told(link, "dispatch")
    accept(link, dispatch.id)
    send(link, dispatch.id, *BEGUN)
    return asyncio.create_task(all_of(aiter(await within(starting))))


async def test_a_worker_lost_before_its_answer_is_replaced() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    starting = asyncio.create_task(grpc.start(job()))
    assert (await told(one, "dispatch")).turn == ""
    two = attached(grpc.fleet, "2")
    lose(grpc, one)
    dispatch = await told(two, "dispatch")
    accept(two, dispatch.id)
    send(two, dispatch.id, *BEGUN, end(4), ended=True)
    assert await all_of(aiter(await within(starting))) == [*BEGUN, end(4)]
    assert grpc.load().running == 0


@pytest.mark.parametrize("conversation", ["c", None])
async def test_the_next_worker_is_told_which_turn_may_have_begun(conversation: str | None) -> None:
    grpc, asked = Grpc(), job(conversation=conversation)
    one = attached(grpc.fleet, "1")
    starting = asyncio.create_task(grpc.start(asked))
    await told(one, "dispatch")
    two = attached(grpc.fleet, "2")
    lose(grpc, one)
    dispatch = await told(two, "dispatch")
    assert (dispatch.turn, Job.load(dispatch.job)) == (asked.id, asked)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)


async def test_after_the_first_event_what_is_open_is_taken_back_and_another_goes_on() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    events = await reading(grpc, one, job(conversation="c"))
    await asyncio.sleep(0)
    lose(grpc, one)
    two = attached(grpc.fleet, "2")
    dispatch = await told(two, "dispatch")
    accept(two, dispatch.id)
    send(two, dispatch.id, *BEGUN, end(4), ended=True)
    seen = await within(events)
    assert [event.seq for event in seen] == [*range(1, 8)]
    assert isinstance(seen[3], AttemptDiscarded)
    assert seen[3].reason == "The worker '1' was lost. Another worker goes on."
    assert [event.attempt for event in seen] == [0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("on_loss", "conversation", "said"),
    [
        ("fail", "c", "What it had stored is in its conversation."),
        ("continue", None, "The turn has no conversation, so no other can go on."),
    ],
)
async def test_a_turn_that_nobody_goes_on_with_has_a_typed_end(
    on_loss: Any, conversation: str | None, said: str
) -> None:
    grpc = Grpc(on_loss=on_loss)
    one = attached(grpc.fleet, "1")
    attached(grpc.fleet, "2")
    events = await reading(grpc, one, job(conversation=conversation))
    await asyncio.sleep(0)
    lose(grpc, one)
    last = (await within(events))[-1]
    assert isinstance(last, TurnEnded)
    assert (last.status, last.error) == ("failed", "WorkerLost")
    assert said in (last.reason or "")
    assert [worker.running for worker in grpc.load().workers] == [0]


async def test_a_job_that_kills_its_workers_does_not_kill_them_all() -> None:
    grpc = Grpc()
    links = [attached(grpc.fleet, str(n)) for n in range(1, 5)]
    events = await reading(grpc, links[0], job(conversation="c"))
    await asyncio.sleep(0)
    for link in links[:3]:
        if link is not links[0]:
            await told(link, "dispatch")
        lose(grpc, link)
        await asyncio.sleep(0)
    last = (await within(events))[-1]
    assert isinstance(last, TurnEnded)
    assert "the last of 3 that were tried" in (last.reason or "")
    assert [worker.running for worker in grpc.load().workers] == [0]


async def test_what_is_open_is_taken_back_at_once_and_not_when_a_worker_is_found() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    turn = await begun(grpc, one, job(conversation="c"))
    stream = aiter(turn)
    send(one, next(iter(one.dispatches)), *BEGUN)
    for _ in BEGUN:
        await within(anext(stream))
    lose(grpc, one)
    assert isinstance(await within(anext(stream)), AttemptDiscarded)
    await stream.aclose()
    assert (grpc.load().queued, grpc.load().running) == (0, 0)


async def test_a_worker_that_ends_a_turn_without_an_end_is_told_of_as_one_that_lost_it() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    turn = await begun(grpc, one, job())
    send(one, next(iter(one.dispatches)), *BEGUN, ended=True)
    last = (await all_of(aiter(turn)))[-1]
    assert isinstance(last, TurnEnded)
    assert (last.status, last.seq) == ("failed", 4)
    assert last.reason == "The worker ended the turn without saying how."


async def test_a_turn_that_has_ended_is_not_stopped() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    turn = await begun(grpc, one, job())
    name = next(iter(one.dispatches))
    send(one, name, *BEGUN, end(4))
    assert (await all_of(aiter(turn)))[-1] == end(4)
    send(one, name, ended=True)
    assert grpc.load().running == 0
    one.close()
    assert await within(one.next()) is None


async def test_a_job_that_kills_its_workers_before_they_answer_is_given_up() -> None:
    grpc = Grpc()
    links = [attached(grpc.fleet, str(n)) for n in range(1, 5)]
    starting = asyncio.create_task(grpc.start(job()))
    for link in links[:3]:
        await told(link, "dispatch")
        lose(grpc, link)
    with pytest.raises(WorkerLost):
        await within(starting)
    assert grpc.load().running == 0


async def test_a_refusal_of_the_worker_is_that_of_the_start_and_frees_the_place() -> None:
    grpc = Grpc()
    link = attached(grpc.fleet)
    starting = asyncio.create_task(grpc.start(job()))
    dispatch = await told(link, "dispatch")
    declined = pb.Declined(
        dispatch=dispatch.id, code="conflict", message="No.", retry_after_seconds=2.0
    )
    link.hear(pb.FromWorker(declined=declined))
    with pytest.raises(Refused, match=r"^No\.$") as refused:
        await within(starting)
    assert (refused.value.code, refused.value.retry_after) == ("conflict", 2.0)
    assert grpc.load().running == 0


async def test_a_job_is_not_started_twice() -> None:
    grpc, asked = Grpc(), job()
    link = attached(grpc.fleet, capacity=5)
    turn = await begun(grpc, link, asked)
    with pytest.raises(Refused, match="running already") as refused:
        await grpc.start(asked)
    assert refused.value.code == "conflict"
    turn.cancel("over")
    assert (await told(link, "stop")).reason == "over"


async def test_a_turn_that_is_cancelled_while_it_looks_for_a_worker_ends() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    turn = await begun(grpc, one, job(conversation="c"))
    events = asyncio.create_task(all_of(aiter(turn)))
    await asyncio.sleep(0)
    lose(grpc, one)
    for _ in range(5):
        await asyncio.sleep(0)
    assert grpc.load().queued == 1
    turn.cancel("The reader left.")
    last = (await within(events))[-1]
    assert isinstance(last, TurnEnded)
    assert (last.status, last.reason) == ("cancelled", "The reader left.")
    assert (grpc.load().queued, grpc.load().running) == (0, 0)


async def test_the_time_of_a_job_goes_on_while_it_waits_and_moves() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    starting = asyncio.create_task(grpc.start(job(seconds=50.0)))
    first = Job.load((await told(one, "dispatch")).job)
    await asyncio.sleep(0.02)
    two = attached(grpc.fleet, "2")
    lose(grpc, one)
    second = Job.load((await told(two, "dispatch")).job)
    assert first.seconds is not None
    assert second.seconds is not None
    assert 0 < second.seconds <= first.seconds - 0.02 < 50
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)


async def test_draining_refuses_new_jobs_and_those_that_wait_and_cancels_in_the_end() -> None:
    grpc = Grpc()
    link = attached(grpc.fleet)
    turn = await begun(grpc, link, job())
    events = asyncio.create_task(all_of(aiter(turn)))
    waiting = asyncio.create_task(grpc.start(job()))
    await asyncio.sleep(0)
    draining = asyncio.create_task(grpc.drain(0.02))
    with pytest.raises(Refused, match="shutting down"):
        await within(waiting)
    with pytest.raises(Refused, match="shutting down"):
        await grpc.start(job())
    stop = await told(link, "stop")
    cancelled = TurnEnded(1, 0, 0, (), "t", "cancelled", reason=stop.reason)
    send(link, stop.dispatch, cancelled, ended=True)
    await within(draining)
    assert await within(events) == [cancelled]
    await grpc.close()
    assert grpc.load().workers == ()


async def test_a_dispatch_holds_no_key_and_no_header() -> None:
    grpc, asked = Grpc(), job(context={"tenant": "x"})
    link = attached(grpc.fleet)
    starting = asyncio.create_task(grpc.start(asked))
    dispatch = await told(link, "dispatch")
    assert set(dispatch.DESCRIPTOR.fields_by_name) == {"id", "job", "turn", "credit"}
    assert not {"headers", "extra", "api_key"} & set(Job.__struct_fields__)
    assert Job.load(dispatch.job) == asked
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)


async def test_a_job_that_its_worker_has_not_taken_when_all_is_cancelled_is_refused() -> None:
    grpc = Grpc()
    link = attached(grpc.fleet)
    starting = asyncio.create_task(grpc.start(job()))
    await told(link, "dispatch")
    draining = asyncio.create_task(grpc.drain(0.01))
    with pytest.raises(Refused, match="shutting down") as refused:
        await within(starting)
    assert refused.value.code == "unavailable"
    await within(draining)


async def test_a_turn_that_is_cancelled_as_its_worker_answers_is_stopped_there() -> None:
    grpc = Grpc()
    link = attached(grpc.fleet)
    starting = asyncio.create_task(grpc.start(job()))
    dispatch = await told(link, "dispatch")
    accept(link, dispatch.id)
    await asyncio.sleep(0)  # the answer is there, and `start` has not come to see it
    assert not starting.done()
    await grpc.close()
    await within(starting)
    assert (await told(link, "stop")).reason == "The server is shutting down."


async def test_a_turn_that_is_cancelled_as_its_worker_is_lost_is_given_to_no_other() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    starting = asyncio.create_task(grpc.start(job()))
    await told(one, "dispatch")
    lose(grpc, one)
    await asyncio.sleep(0)
    assert not starting.done()
    await grpc.close()
    with pytest.raises(Refused, match="shutting down"):
        await within(starting)


async def test_draining_lets_a_turn_that_lost_its_worker_wait_for_another_one() -> None:
    grpc = Grpc()
    one = attached(grpc.fleet, "1")
    events = await reading(grpc, one, job(conversation="c"))
    await asyncio.sleep(0)
    lose(grpc, one)
    for _ in range(5):
        await asyncio.sleep(0)
    assert grpc.load().queued == 1
    draining = asyncio.create_task(grpc.drain(10))
    await asyncio.sleep(0)
    two = attached(grpc.fleet, "2")
    dispatch = await told(two, "dispatch")
    accept(two, dispatch.id)
    send(two, dispatch.id, end(1), ended=True)
    assert (await within(events))[-1].status == "completed"
    await within(draining)


async def test_a_worker_that_does_not_end_a_cancelled_turn_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.grpc.running.STOPPING", 0.01)
    grpc = Grpc()
    link = attached(grpc.fleet)
    events = await reading(grpc, link, job(conversation="c"))
    await within(grpc.drain(0.01))
    last = (await within(events))[-1]
    assert isinstance(last, TurnEnded)
    assert (last.status, last.reason) == ("cancelled", "The server is shutting down.")
    assert link.running == 1  # it has its place until the worker says otherwise


def test_a_choice_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_loss='retry'"):
        Grpc(on_loss="retry")  # pyright: ignore[reportArgumentType]
