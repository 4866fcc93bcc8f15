"""The clients' door: `Run`, `Converse` and `ListAgents`, over loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import msgspec
import pytest
import pytest_asyncio
from grpc import aio

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.serve.access import ApiKeys, new_key
from retinue.serve.bounds import Bounds
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.stores import InMemory
from tests.serve.grpc.stage import Stage, event_of, stage, text_of
from tests.serve.scenes import Stuck, echoing, pay, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def echo() -> Any:
    """A gateway with a worker that says what it is told."""
    async with stage() as one, one.worker(echoing()):
        yield one


class Client:
    """One `Converse` stream."""

    def __init__(self, stub: Any) -> None:
        self.call = stub.Converse()
        self._events = aiter(self.call)

    async def say(self, **message: Any) -> None:
        """Sends a message."""
        await self.call.write(pb.ClientMessage(**message))

    async def next(self) -> pb.Event:
        """The next event."""
        return await within(anext(self._events))

    async def until(self, kind: str, request_id: str = "") -> list[pb.Event]:
        """The events up to one of this kind."""
        seen: list[pb.Event] = []
        while (
            not seen or seen[-1].type != kind or (request_id and seen[-1].request_id != request_id)
        ):
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[pb.Event]:
        """What comes when the client says no more."""
        await self.call.done_writing()
        return [event async for event in self._events]


@asynccontextmanager
async def talking(one: Stage) -> AsyncIterator[Client]:
    client = Client(one.stub)
    yield client
    client.call.cancel()


async def refused(call: Any) -> aio.AioRpcError:
    """The error that the call ends with."""
    with pytest.raises(aio.AioRpcError) as error:
        await within(_read(call))
    return error.value


async def _read(call: Any) -> None:
    if hasattr(call, "__aiter__"):
        async for _ in call:
            pass
    else:
        await call


@pytest.mark.rule("R-STREAM-1")
async def test_run_gives_the_events_of_a_turn_in_json(echo: Stage) -> None:
    events = await echo.run("Hello", request_id="r1")
    assert text_of(events) == "Hello"
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert {event.request_id for event in events} == {"r1"}
    assert {event.turn for event in events} == {event_of(events[0]).turn}
    assert [event.type for event in events if event.type == "text"] == ["text", "text"]
    assert all(event.type == msgspec.json.decode(event.json)["type"] for event in events)


async def test_a_request_that_is_sent_twice_runs_once(echo: Stage) -> None:
    first = await echo.run("Hello", request_id="same")
    second = await echo.run("Hello", request_id="same")
    assert first == second
    error = await refused(echo.stub.Run(pb.Start(text="Other", request_id="same")))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({}, "INVALID_ARGUMENT", "Nothing is asked"),
        ({"text": "x", "agent": "bank"}, "NOT_FOUND", "no agent 'bank'"),
        ({"messages_json": "[{"}, "INVALID_ARGUMENT", "`messages_json` cannot be read"),
        ({"messages_json": "[" * 100_000}, "INVALID_ARGUMENT", "`messages_json` cannot be read"),
        ({"text": "x", "choices_json": '{"headers": {}}'}, "INVALID_ARGUMENT", "`choices_json`"),
        ({"text": "x", "timeout_seconds": -1}, "INVALID_ARGUMENT", "-1.0 seconds"),
        ({"text": "x", "timeout_seconds": float("nan")}, "INVALID_ARGUMENT", "nan seconds"),
        ({"text": "x", "conversation": "../etc"}, "INVALID_ARGUMENT", "id of a conversation"),
        ({"text": "x" * 1_000_001}, "RESOURCE_EXHAUSTED", "over 1000000 bytes"),
    ],
)
async def test_what_cannot_be_is_refused_with_its_code_and_a_sentence(
    echo: Stage, fields: dict[str, Any], code: str, said: str
) -> None:
    error = await refused(echo.stub.Run(pb.Start(**fields)))
    assert error.code().name == code
    assert said in (error.details() or "")


async def test_without_a_worker_the_refusal_says_when_to_try_again() -> None:
    async with stage() as one:
        error = await refused(one.stub.Run(pb.Start(text="x")))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert ("grpc-retry-pushback-ms", "1000") in tuple(error.trailing_metadata())


@pytest.mark.rule("R-LOOP-8")
async def test_a_client_that_leaves_ends_the_turn_down_to_the_model() -> None:
    stuck = Stuck()
    async with stage() as one, one.worker(Agent(Scripted(stuck), name="a")):
        call = one.stub.Run(pb.Start(text="x"))
        await within(anext(aiter(call)))
        await within(stuck.asked.wait())
        call.cancel()
        await within(stuck.stopped.wait())


async def test_a_detached_turn_goes_on_without_its_client() -> None:
    stuck = Stuck()
    async with stage() as one, one.worker(Agent(Scripted(stuck), name="a")):
        call = one.stub.Run(pb.Start(text="x", detached=True))
        turn = (await within(anext(aiter(call)))).turn
        await within(stuck.asked.wait())
        call.cancel()
        stuck.go.set()
        async with talking(one) as client:
            await client.say(follow=pb.Follow(turn=turn))
            assert text_of(await client.until("turn_ended")) == "at last"
        assert not stuck.stopped.is_set()


async def test_the_deadline_of_the_call_is_that_of_the_turn() -> None:
    stuck = Stuck()
    async with stage() as one, one.worker(Agent(Scripted(stuck), name="a")):
        error = await refused(one.stub.Run(pb.Start(text="x"), timeout=0.5))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await within(stuck.stopped.wait())


async def test_a_turn_that_takes_longer_than_it_was_given_ends_by_its_limit() -> None:
    async with stage() as one, one.worker(Agent(Scripted(Stuck()), name="a")):
        end = event_of((await one.run("x", timeout_seconds=0.2))[-1])
        assert end.status == "limit"


async def test_a_model_that_fails_is_a_typed_end_and_not_an_answer() -> None:
    agent = Agent(Scripted(Say(text="So", error=ValueError("sk-secret at db7"))), name="a")
    async with stage() as one, one.worker(agent):
        end = event_of((await one.run("x"))[-1])
        assert (end.status, end.error) == ("failed", "ValueError")
        assert "secret" not in end.reason
        assert "db7" not in end.reason


async def test_one_stream_starts_several_turns_and_says_which_event_is_whose(echo: Stage) -> None:
    async with talking(echo) as client:
        for n in range(3):
            await client.say(start=pb.Start(text=f"number {n}", request_id=f"r{n}"))
        events = await within(client.rest())
    for n in range(3):
        own = [event for event in events if event.request_id == f"r{n}"]
        assert text_of(own) == f"number {n}"
        assert [event.seq for event in own] == [*range(1, len(own) + 1)]


async def test_a_message_that_cannot_be_is_refused_and_the_others_go_on(echo: Stage) -> None:
    async with talking(echo) as client:
        await client.say(start=pb.Start(request_id="empty"))
        await client.say()
        await client.say(cancel=pb.Cancel(turn="none"))
        await client.say(start=pb.Start(text="fine", request_id="fine"))
        events = await within(client.rest())
    no = {(e.request_id, e.turn, e.refused.code) for e in events if e.type == "refused"}
    invalid, missing = (code.value[0] for code in _codes("INVALID_ARGUMENT", "NOT_FOUND"))
    assert no == {("empty", "", invalid), ("", "", invalid), ("", "none", missing)}
    assert text_of([event for event in events if event.request_id == "fine"]) == "fine"


def _codes(*names: str) -> list[grpc.StatusCode]:
    return [grpc.StatusCode[name] for name in names]


@pytest.mark.rule("R-HITL-3")
async def test_a_pause_is_answered_on_the_stream_that_it_came_on() -> None:
    agent = Agent(
        Scripted(call("pay", amount=5), "Paid."),
        tools=[pay], gate="sensitive", advisors=[Memory(InMemory())], name="a",
    )  # fmt: skip
    async with stage() as one, one.worker(agent), talking(one) as client:
        await client.say(start=pb.Start(text="pay", conversation="c", request_id="ask"))
        events = await client.until("turn_ended")
        (paused,) = [event_of(event) for event in events if event.type == "paused"]
        (waiting,) = paused.pending
        answers = {waiting.id: {"kind": "approve", "args": {"amount": 3}}}
        await client.say(
            answer=pb.Answer(
                conversation="c",
                answers_json=msgspec.json.encode(answers).decode(),
                request_id="yes",
            )
        )
        answered = await client.until("turn_ended")
        assert text_of(answered) == "Paid."
        assert {event.turn for event in answered} == {events[0].turn}
        results = [event_of(event).text for event in answered if event.type == "tool_finished"]
        assert results == ["paid 3"]


async def test_an_answer_to_nothing_is_refused(echo: Stage) -> None:
    async with talking(echo) as client:
        await client.say(answer=pb.Answer(answers_json="{}"))
        await client.say(answer=pb.Answer(conversation="c", answers_json='{"x": 1}'))
        await client.say(answer=pb.Answer(conversation="c", answers_json="{}"))
        said = [event.refused.message for event in await within(client.rest())]
    assert len(said) == 3
    assert any("Say in which `conversation`" in one for one in said)
    assert any("`answers_json` cannot be read" in one for one in said)


async def test_a_turn_is_cancelled_by_a_message_and_still_ends() -> None:
    stuck = Stuck()
    async with stage() as one, one.worker(Agent(Scripted(stuck), name="a")):
        async with talking(one) as client:
            await client.say(start=pb.Start(text="x"))
            turn = (await client.next()).turn
            await within(stuck.asked.wait())
            await client.say(cancel=pb.Cancel(turn=turn))
            end = event_of((await client.until("turn_ended"))[-1])
            assert end.status == "cancelled"
        await within(stuck.stopped.wait())


@pytest.mark.rule("R-STREAM-6")
async def test_no_more_events_than_the_window_are_on_their_way_without_an_ack() -> None:
    agent = Agent(Scripted(Say(text=["x"] * 100)), name="a")
    async with stage() as one, one.worker(agent), talking(one) as client:
        await client.say(start=pb.Start(text="x", window=5))
        got = [await client.next() for _ in range(5)]
        sixth = asyncio.create_task(client.next())
        done, _ = await asyncio.wait({sixth}, timeout=0.1)
        assert not done
        await client.say(ack=pb.Ack(turn=got[0].turn, seq=3))
        got.append(await within(sixth))
        got += [await client.next() for _ in range(2)]
        assert [event.seq for event in got] == [*range(1, 9)]
        await client.say(ack=pb.Ack(turn=got[0].turn, seq=1_000))
        assert (await client.until("turn_ended"))[0].seq == 9


async def test_a_client_that_says_no_more_is_not_waited_for() -> None:
    agent = Agent(Scripted(Say(text=["x"] * 100)), name="a")
    async with stage() as one, one.worker(agent), talking(one) as client:
        await client.say(start=pb.Start(text="x", window=5))
        got = [await client.next() for _ in range(5)]
        assert text_of([*got, *await within(client.rest())]) == "x" * 100


async def test_a_cancel_is_taken_from_a_client_that_is_over_its_rate() -> None:
    stuck, bounds = Stuck(), {"bounds": Bounds(rate=0.01, burst=3)}
    async with (
        stage(gateway=bounds) as one,
        one.worker(Agent(Scripted(stuck), name="a")),
        talking(one) as client,
    ):
        await client.say(start=pb.Start(text="x"))
        turn = (await client.next()).turn
        await within(stuck.asked.wait())
        await client.say(cancel=pb.Cancel(turn=turn))
        end = event_of((await client.until("turn_ended"))[-1])
        assert end.status == "cancelled"


@pytest.mark.rule("R-STREAM-5")
async def test_a_reader_that_returns_gets_the_rest_without_gap_or_double(echo: Stage) -> None:
    whole = await echo.run("Hello")
    async with talking(echo) as client:
        await client.say(follow=pb.Follow(turn=whole[0].turn, after=whole[2].seq))
        rest = await client.until("turn_ended")
    assert [event.json for event in whole[:3]] + [event.json for event in rest] == [
        event.json for event in whole
    ]


async def test_agents_declare_themselves(echo: Stage) -> None:
    (info,) = (await within(echo.stub.ListAgents(pb.ListAgentsRequest()))).agents
    card = msgspec.json.decode(info.card_json)
    assert (info.name, card["model"], card["keeps"]) == ("echo", "scripted:script", True)


@pytest.mark.rule("R-MEM-9")
async def test_owners_come_from_keys_and_do_not_find_what_is_not_theirs() -> None:
    keys = {name: new_key(name) for name in ("ann", "bob")}
    worker_key, kept = new_key("w", ["work"])
    access = ApiKeys([*(key for _, key in keys.values()), kept])
    store = InMemory()
    agent = Agent(Scripted("one", repeat=True), advisors=[Memory(store)], name="a")
    ann, bob = ((("authorization", f"Bearer {keys[name][0]}"),) for name in ("ann", "bob"))
    async with (
        stage(gateway={"access": access, "stores": [store]}) as one,
        one.worker(agent, token=worker_key),
    ):
        call = one.stub.Run(pb.Start(text="x", conversation="c"), metadata=ann)
        turn = (await within(anext(aiter(call)))).turn
        error = await refused(one.stub.Run(pb.Start(text="x", conversation="c"), metadata=bob))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        follow = one.stub.Converse(
            iter([pb.ClientMessage(follow=pb.Follow(turn=turn))]), metadata=bob
        )
        (event,) = [event async for event in follow]
        assert event.refused.code == grpc.StatusCode.NOT_FOUND.value[0]
        for metadata, code in (
            ((), "UNAUTHENTICATED"),
            ((("authorization", "Bearer rk-wrong"),), "UNAUTHENTICATED"),
            ((("authorization", "Basic x"),), "UNAUTHENTICATED"),
            ((("authorization", f"Bearer {worker_key}"),), "PERMISSION_DENIED"),
        ):
            for refusing in (
                one.stub.Run(pb.Start(text="x"), metadata=metadata),
                one.stub.Converse(iter([]), metadata=metadata),
                one.stub.ListAgents(pb.ListAgentsRequest(), metadata=metadata),
            ):
                assert (await refused(refusing)).code().name == code


async def test_a_rate_counts_each_turn_of_a_stream() -> None:
    bounds = {"bounds": Bounds(rate=0.01, burst=3)}
    async with (
        stage(gateway=bounds) as one,
        one.worker(echoing()),  # this has taken one already, and so does the stream
        talking(one) as client,
    ):
        for n in range(2):
            await client.say(start=pb.Start(text="x", request_id=str(n)))
        events = await within(client.rest())
    (no,) = [event for event in events if event.type == "refused"]
    assert no.refused.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert no.refused.retry_after_seconds > 0
