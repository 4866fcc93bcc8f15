"""`Converse`: many turns on one stream, over loopback."""

import asyncio

import grpc
import msgspec
import pytest

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.serve.bounds import Bounds
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.stores import InMemory
from tests.serve.grpc.stage import Stage, event_of, stage, talking, text_of
from tests.serve.scenes import Stuck, echoing, pay, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


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
async def test_a_pause_is_answered_on_its_stream_and_what_came_before_it_can_be_read_again() -> (
    None
):
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
        follow = pb.Follow(turn=events[0].turn, after=2, stream=events[0].stream)
        await client.say(follow=follow)
        again = await client.until("turn_ended")
        assert [event.json for event in again] == [event.json for event in events[2:]]


async def test_an_answer_has_a_context_and_choices_for_what_is_left_of_the_turn() -> None:
    model = Scripted(call("pay", amount=5), "Paid.")
    agent = Agent(
        model, tools=[pay], gate="sensitive", advisors=[Memory(InMemory())], name="a"
    )  # fmt: skip
    async with stage() as one, one.worker(agent), talking(one) as client:
        await client.say(start=pb.Start(text="pay", conversation="c"))
        paused = next(e for e in await client.until("turn_ended") if e.type == "paused")
        answers = {event_of(paused).pending[0].id: {"kind": "approve"}}
        answer = pb.Answer(
            conversation="c",
            answers_json=msgspec.json.encode(answers).decode(),
            choices_json='{"temperature": 0.5}',
            context_json='{"retinue.x": 1}',
        )
        await client.say(answer=answer)
        (no,) = await client.until("refused")
        assert "The context cannot hold 'retinue.x'" in no.refused.message
        answer.context_json = '{"tenant": "x"}'
        await client.say(answer=answer)
        assert text_of(await client.until("turn_ended")) == "Paid."
    assert model.requests[-1].settings.temperature == 0.5


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
    stuck, bounds = Stuck(), {"bounds": Bounds(rate=0.01, burst=2)}
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


async def test_a_rate_counts_each_turn_of_a_stream() -> None:
    bounds = {"bounds": Bounds(rate=0.01, burst=2)}
    async with (
        stage(gateway=bounds) as one,
        one.worker(echoing()),  # this takes none, and the stream takes one
        talking(one) as client,
    ):
        for n in range(2):
            await client.say(start=pb.Start(text="x", request_id=str(n)))
        events = await within(client.rest())
    (no,) = [event for event in events if event.type == "refused"]
    assert no.refused.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert no.refused.retry_after_seconds > 0
