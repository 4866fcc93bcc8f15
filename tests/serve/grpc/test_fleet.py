"""Places on workers, jobs that wait for one, and what a link lets a worker do."""

import asyncio
from typing import Any

import pytest

from retinue import ConfigError
from retinue.chains.events import TurnEnded
from retinue.serve.faults import Refused
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.link import CREDIT, Link, WorkerLost
from retinue.serve.grpc.routing import least_loaded
from retinue.serve.grpc.v1 import workers_pb2 as pb
from tests.serve.grpc.stage import accept, attached, chunk, hello, job, send, told
from tests.serve.scenes import within


def fleet(queue: int = 10, patience: float = 10.0) -> Fleet:
    return Fleet(least_loaded, queue=queue, patience=patience)


async def parked(workers: Fleet, asked: Any, count: int) -> "asyncio.Task[Link]":
    """A job that waits for a place; so many wait then."""
    task = asyncio.create_task(workers.place(asked))
    await asyncio.sleep(0)
    assert workers.queued == count
    return task


async def test_a_worker_is_never_given_more_than_it_can_hold() -> None:
    workers = fleet()
    one, two = attached(workers, "1", capacity=2), attached(workers, "2", capacity=1)
    places = [await workers.place(job()) for _ in range(3)]
    assert sorted(link.name for link in places) == ["1", "1", "2"]
    assert (one.running, two.running) == (2, 1)
    waiting = await parked(workers, job(), 1)
    dispatched = two.dispatch("d", job(), "")
    assert not waiting.done()
    send(two, "d", ended=True)
    assert await within(waiting) is two
    assert dispatched.accepted.done()


async def test_jobs_get_places_in_the_order_in_which_they_came() -> None:
    workers = fleet()
    first, second = [await parked(workers_with_agent(workers), job(), n) for n in (1, 2)]
    attached(workers, "1")
    await within(first)
    assert not second.done()
    attached(workers, "2")
    assert (await within(second)).name == "2"


def workers_with_agent(workers: Fleet) -> Fleet:
    """The fleet, where a worker for the agent has been and was lost."""
    if not workers.agents():
        workers.lose(attached(workers, "0"))
    return workers


async def test_past_the_bound_of_the_queue_a_job_is_refused() -> None:
    workers = workers_with_agent(fleet(queue=1))
    waiting = await parked(workers, job(), 1)
    with pytest.raises(Refused, match="1 jobs wait already") as refused:
        await workers.place(job())
    assert refused.value.code == "unavailable"
    assert refused.value.retry_after == 1.0
    waiting.cancel()


async def test_a_job_whose_worker_was_lost_comes_before_all_and_past_the_bound() -> None:
    workers = workers_with_agent(fleet(queue=1))
    other = await parked(workers, job(), 1)
    again = asyncio.create_task(workers.place(job(), again=True))
    await asyncio.sleep(0)
    assert workers.queued == 2
    link = attached(workers, "1")
    assert await within(again) is link
    assert not other.done()
    other.cancel()


async def test_a_wait_that_is_too_long_is_refused() -> None:
    workers = workers_with_agent(fleet(patience=0.01))
    with pytest.raises(Refused, match=r"within 0\.01 seconds"):
        await workers.place(job())
    assert workers.queued == 0


async def test_a_client_that_leaves_the_queue_takes_no_place() -> None:
    workers = workers_with_agent(fleet())
    waiting = await parked(workers, job(), 1)
    link = attached(workers, "1")  # the place comes, and in the same breath the client goes
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (link.running, workers.queued) == (0, 0)


async def test_a_job_for_an_agent_that_nobody_serves_is_not_found() -> None:
    workers = fleet()
    with pytest.raises(Refused, match="No worker is attached") as refused:
        await workers.place(job())
    assert refused.value.code == "unavailable"
    attached(workers, agents=("a", "b"))
    with pytest.raises(Refused, match="no agent 'c'; there are a, b") as refused:
        await workers.place(job("c"))
    assert refused.value.code == "not_found"


async def test_a_job_for_one_agent_does_not_wait_behind_those_for_another() -> None:
    workers = fleet()
    workers.lose(attached(workers, "0", agents=("a", "b")))
    waiting = await parked(workers, job("a"), 1)
    link = attached(workers, "1", agents=("b",))
    assert await within(workers.place(job("b"))) is link
    waiting.cancel()


async def test_an_agent_whose_worker_was_lost_is_expected_back_and_one_that_left_is_not() -> None:
    workers = fleet()
    lost, left = attached(workers, "1", agents=("a",)), attached(workers, "2", agents=("b",))
    left.hear(pb.FromWorker(leaving=pb.Leaving()))
    for link in (lost, left):
        workers.lose(link)
    assert set(workers.agents()) == {"a"}


async def test_a_worker_that_leaves_gets_no_more_and_keeps_what_it_has() -> None:
    workers = fleet(patience=0.01)
    link = attached(workers, capacity=5)
    await workers.place(job())
    dispatched = link.dispatch("d", job(), "")
    accept(link, "d")
    link.hear(pb.FromWorker(leaving=pb.Leaving()))
    with pytest.raises(Refused):
        await workers.place(job())
    send(link, "d", chunk(1), ended=True)
    assert [event.seq async for event in dispatched.events()] == [1]


async def test_orphans_of_a_lost_gateway_take_places() -> None:
    workers = fleet()
    link = attached(workers, capacity=2, orphans=2)
    waiting = await parked(workers, job(), 1)
    assert workers.loads()[0].running == 2
    link.hear(pb.FromWorker(heartbeat=pb.Heartbeat(orphans=1)))
    assert await within(waiting) is link


async def test_a_worker_that_attaches_again_replaces_the_stream_that_broke() -> None:
    workers = fleet()
    old = attached(workers, "w")
    await workers.place(job())
    dispatched = old.dispatch("d", job(), "")
    new = attached(workers, "w")
    assert [*workers] == [new]
    with pytest.raises(WorkerLost, match="'w' was lost"):
        await dispatched.accepted
    assert await within(old.next()) is not None  # the dispatch that was never sent
    assert await within(old.next()) is None


async def test_credit_is_given_as_the_reader_reads_and_not_before() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    dispatched = link.dispatch("d", job(), "")
    assert (await told(link, "dispatch")).credit == CREDIT
    accept(link, "d")
    send(link, "d", *(chunk(n) for n in range(CREDIT)))
    more = asyncio.create_task(link.next())
    await asyncio.sleep(0)
    assert not more.done()
    stream = dispatched.events()
    for _ in range(CREDIT // 2):
        await anext(stream)
    granted = await within(more)
    assert granted is not None
    assert granted.credit.events == CREDIT // 2


async def test_a_worker_that_sends_more_than_its_credit_breaks_the_protocol() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    link.dispatch("d", job(), "")
    with pytest.raises(Refused, match="more events than it had credit for"):
        send(link, "d", *(chunk(n) for n in range(CREDIT + 1)))


async def test_what_comes_after_the_reader_has_left_is_dropped_and_granted() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    dispatched = link.dispatch("d", job(), "")
    await told(link, "dispatch")
    accept(link, "d")
    send(link, "d", *(chunk(n) for n in range(CREDIT)))
    dispatched.leave("The reader left.")
    assert (await told(link, "stop")).reason == "The reader left."
    assert (await told(link, "credit")).events == CREDIT
    end = TurnEnded(CREDIT + 1, 1, 1, (), "t", "cancelled")
    send(link, "d", end, ended=True)
    assert link.running == 0


async def test_a_worker_that_speaks_of_a_dispatch_that_is_none_breaks_the_protocol() -> None:
    link = attached(fleet())
    with pytest.raises(Refused, match="dispatch 'x', which is none"):
        accept(link, "x")
    with pytest.raises(Refused, match="sent hello where that is not due"):
        link.hear(pb.FromWorker(hello=hello()))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"protocol": 9}, "speaks version 9"),
        ({"capacity": 0}, "needs an instance, a capacity and an agent"),
        ({"agents": ()}, "needs an instance, a capacity and an agent"),
    ],
)
async def test_a_hello_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        attached(fleet(), **fields)


async def test_a_card_that_is_none_is_refused() -> None:
    said = hello()
    said.agents[0].card = b"{}"
    with pytest.raises(Refused, match="card of agent 'a' is none"):
        Link(said, lambda link: None)


@pytest.mark.parametrize("values", [{"queue": -1}, {"queue": True}, {"patience": 0}])
def test_a_value_that_cannot_be_one_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(values))}="):
        Fleet(least_loaded, **{"queue": 1, "patience": 1.0, **values})


async def test_a_job_waits_for_a_place_no_longer_than_it_may_take() -> None:
    workers = workers_with_agent(fleet(patience=30))
    with pytest.raises(Refused, match=r"within 0\.01 seconds"):
        await within(workers.place(job(seconds=0.01)))


async def test_without_a_queue_a_job_that_finds_no_place_is_refused_at_once() -> None:
    workers = workers_with_agent(fleet(queue=0))
    with pytest.raises(Refused, match="taken and none may wait; try again later"):
        await workers.place(job())


async def test_of_two_jobs_whose_workers_were_lost_the_first_comes_first() -> None:
    workers = workers_with_agent(fleet())
    asked = [job(), job()]
    tasks = [asyncio.create_task(workers.place(one, again=True)) for one in asked]
    await asyncio.sleep(0)
    attached(workers, "1")
    await within(tasks[0])
    assert not tasks[1].done()
    tasks[1].cancel()


@pytest.mark.parametrize("wrong", ["raises", "chooses another"])
async def test_a_route_that_fails_fails_the_job_and_no_worker(wrong: str) -> None:
    def route(workers: Any, asked: Any) -> Any:
        if wrong == "raises":
            raise ValueError("no idea")
        return "w"

    workers = Fleet(route, queue=10, patience=10)
    workers.lose(attached(workers, "0"))
    waiting = [await parked(workers, job(), n) for n in (1, 2)]
    link = attached(workers, "1")
    for task in waiting:
        with pytest.raises(ValueError, match=r"no idea|chose 'w', which is none"):
            await within(task)
    assert [*workers] == [link]
    assert (link.running, workers.queued) == (0, 0)


async def test_a_dispatch_that_crosses_its_workers_leaving_goes_to_another_one() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    dispatched = link.dispatch("d", job(), "")
    link.hear(pb.FromWorker(leaving=pb.Leaving()))
    no = pb.Declined(dispatch="d", code="unavailable", message="The server is shutting down.")
    link.hear(pb.FromWorker(declined=no))
    with pytest.raises(WorkerLost):
        await dispatched.accepted
    assert link.running == 0


async def test_a_job_that_is_too_large_for_a_message_is_refused_and_breaks_no_stream() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    with pytest.raises(Refused, match="over 16 MB for a worker") as refused:
        link.dispatch("d", job(text="x" * 17_000_000), "")
    assert refused.value.code == "too_large"
    assert (link.running, link.dispatches) == (0, {})


async def test_a_turn_that_its_worker_does_not_end_is_given_up_and_its_events_are_dropped() -> None:
    workers = fleet()
    link = attached(workers)
    await workers.place(job())
    dispatched = link.dispatch("d", job(), "")
    accept(link, "d")
    dispatched.give_up("It hangs.")
    send(link, "d", chunk(1), ended=True)
    with pytest.raises(WorkerLost, match="It hangs"):
        await anext(aiter(dispatched.events()))
    assert link.running == 0
