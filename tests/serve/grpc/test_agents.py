"""The clients' door: `Run` and `ListAgents`, and who may come in, over loopback."""

from typing import Any

import grpc
import msgspec
import pytest
from grpc import aio

from retinue import Agent
from retinue.advisors import Memory
from retinue.errors import StoreError
from retinue.models.scripted import Say, Scripted
from retinue.serve.access import ApiKeys, new_key
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.keeping import Keeping
from retinue.stores import InMemory
from tests.serve.grpc.stage import Stage, event_of, stage, talking, text_of
from tests.serve.scenes import Stuck, all_of, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


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


async def test_a_request_that_is_sent_again_with_less_time_left_is_the_same(echo: Stage) -> None:
    calls = [
        echo.stub.Run(pb.Start(text="Hello", request_id="timed"), timeout=seconds)
        for seconds in (20, 10)
    ]
    first, second = [[event async for event in call] for call in calls]
    assert first == second


async def test_the_words_of_a_store_that_fails_are_not_told_in_the_middle_of_a_turn() -> None:
    store = InMemory()
    agent = Agent(Scripted("Hello", repeat=True), advisors=[Memory(store)], name="a")
    options = {"stores": [store], "keeping": Keeping(events=2)}
    async with stage(gateway=options) as one, one.worker(agent):
        start = pb.Start(text="x", conversation="c", request_id="r", detached=True)
        turn = (await all_of(one.stub.Run(start)))[0].turn

        async def fail(*_: Any, **__: Any) -> Any:
            raise StoreError("no route to db7")

        store.turn = store.tail = store.messages = fail  # pyright: ignore[reportAttributeAccessIssue]
        error = await refused(one.stub.Run(start))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "db7" not in (error.details() or "")
        async with talking(one) as client:
            await client.say(follow=pb.Follow(turn=turn, request_id="f"))
            (no,) = await within(client.rest())
    assert (no.turn, no.request_id, no.type) == (turn, "f", "refused")
    assert no.refused.code == grpc.StatusCode.UNAVAILABLE.value[0]
    assert "db7" not in no.refused.message


async def test_a_client_that_takes_nothing_is_given_up_and_its_turn_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.grpc.agents.STALLED", 0.1)
    agent = Agent(Scripted(Say(text=["x" * 10_000] * 10_000)), name="a")
    async with stage() as one, one.worker(agent):
        call = one.stub.Run(pb.Start(text="x"))
        await within(anext(aiter(call)))
        await within(one.dispatcher.drain(60), 30)  # it does not run any more
        call.cancel()


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
