"""The gateway: what it joins and what it refuses, whose is what, and counts that come back to 0."""

import asyncio
import weakref
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, user
from retinue.advisors import Memory
from retinue.chains.events import Event
from retinue.errors import ConversationNotFound
from retinue.messages import File, Image, Message, ToolResult
from retinue.models.scripted import Scripted, call
from retinue.serve.access import Caller
from retinue.serve.bounds import Bounds
from retinue.serve.declared import gateway_of
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.jobs import Answered, Job
from retinue.serve.keeping import Kept, Reader
from retinue.stores import InMemory
from tests.serve.scenes import Stuck, echoing, pay, within
from tests.serve.test_turns import Deck

ANN = Caller("ann", frozenset(["turns"]))
BOB = Caller("bob", frozenset(["turns"]))


def job(text: str = "Hello", **options: Any) -> Job:
    return Job(agent="echo", messages=(user(text),), **options)


def stuck_gateway(stuck: Stuck, **bounds: Any) -> Gateway:
    return gateway_of(Agent(Scripted(stuck), name="echo"), bounds=Bounds(**bounds))


async def test_a_request_that_is_made_again_is_joined_where_no_new_one_would_be_taken() -> None:
    stuck = Stuck()
    gateway = stuck_gateway(stuck, turns=1)
    first = await gateway.start(ANN, job(request="r", detached=True))
    with pytest.raises(Refused, match="1 turns of yours are running"):
        await gateway.start(ANN, job())
    again = await gateway.start(ANN, job(request="r", detached=True))
    draining = asyncio.create_task(gateway.drain(60))
    await within(stuck.asked.wait())
    with pytest.raises(Refused, match="shutting down"):
        await gateway.start(ANN, job())
    last = await gateway.start(ANN, job(request="r", detached=True))
    stuck.go.set()
    ends = [await within(reader.end()) for reader in (first, again, last)]
    assert [end.text for end in ends] == ["at last"] * 3
    await within(draining)


async def test_a_request_that_comes_twice_at_the_same_instant_counts_once() -> None:
    stuck = Stuck()
    gateway = stuck_gateway(stuck, turns=1)
    asked = [job(request="r") for _ in range(2)]
    one, two = await asyncio.gather(*(gateway.start(ANN, each) for each in asked))
    assert one.turn is two.turn
    stuck.go.set()
    assert (await within(one.end())) == (await within(two.end()))


async def test_a_request_that_is_made_again_has_less_time_left_and_is_the_same() -> None:
    gateway = gateway_of(echoing())
    first = await gateway.start(ANN, job(request="r", seconds=9.5, detached=True))
    again = await gateway.start(ANN, job(request="r", seconds=9.1, detached=True))
    assert first.turn is again.turn
    await within(again.end())


async def test_a_request_id_belongs_to_its_owner() -> None:
    gateway = gateway_of(echoing())
    of_ann = await gateway.start(ANN, job("Ann's", request="r"))
    of_bob = await gateway.start(BOB, job("Bob's", request="r"))
    assert (await within(of_ann.end())).text == "Ann's"
    assert (await within(of_bob.end())).text == "Bob's"


async def test_a_turn_of_another_owner_is_told_as_one_that_is_not_there() -> None:
    gateway = gateway_of(echoing())
    reader = await gateway.start(ANN, job(detached=True))
    turn = reader.turn.turn
    with pytest.raises(Refused) as foreign:
        gateway.find(BOB, turn)
    with pytest.raises(Refused) as missing:
        gateway.find(BOB, "nowhere")
    assert (foreign.value.code, missing.value.code) == ("not_found", "not_found")
    assert str(foreign.value).replace(turn, "nowhere") == str(missing.value)
    assert gateway.find(ANN, turn) is reader.turn
    await within(reader.end())


PLACES = ["file:///etc/passwd", "http://169.254.169.254/", "file-abc123", "gs://bucket/x"]


@pytest.mark.parametrize("url", PLACES)
@pytest.mark.parametrize("kind", [Image, File])
async def test_no_part_names_a_place_of_the_servers_however_deep_it_stands(
    url: str, kind: type[Image | File]
) -> None:
    gateway = gateway_of(echoing())
    part = kind(url=url)
    for parts in ((part,), (ToolResult("c", "look", (part,)),)):
        asked = Job(agent="echo", messages=(user("Hello"), Message("user", parts)))
        with pytest.raises(ConfigError, match="begins with https:// or data:"):
            await gateway.start(ANN, asked)


@pytest.mark.rule("R-MEM-9")
async def test_a_conversation_of_another_owner_is_refused_before_anything_runs() -> None:
    model = Scripted("one", "two")
    gateway = gateway_of(Agent(model, advisors=[Memory(InMemory())], name="echo"))
    await within((await gateway.start(ANN, job(conversation="c"))).end())
    with pytest.raises(ConversationNotFound):
        await gateway.start(BOB, job(conversation="c"))
    assert len(model.requests) == 1


async def test_whatever_becomes_of_a_turn_its_place_is_free_again() -> None:
    """Each of these would fill the one place for good, if it did not give it back."""
    deck = Deck(ends=False)
    gateway = Gateway(deck, bounds=Bounds(turns=1))
    deck.cards = {"echo": gateway_of(Agent(Scripted(), name="echo")).agent("echo")}

    with pytest.raises(ConfigError, match="keeps no conversations"):
        await gateway.start(ANN, job(conversation="c"))
    deck.refusal = Refused("unavailable", "full")
    with pytest.raises(Refused, match="full"):
        await gateway.start(ANN, job(request="r"))
    deck.refusal = None

    deck.held.clear()
    starting = asyncio.create_task(gateway.start(ANN, job(request="r")))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    deck.held.set()

    left = await gateway.start(ANN, job())
    left.close()  # before the first event
    assert (await within(left.end())).status == "cancelled"

    lost = await gateway.start(ANN, job())
    deck.tapes[-1].error = RuntimeError("gone")
    deck.tapes[-1].finish()
    assert (await within(lost.end())).status == "failed"

    last = await gateway.start(ANN, job())
    deck.tapes[-1].finish()
    assert (await within(last.end())).status == "completed"


@pytest.mark.rule("R-MEM-8")
async def test_forks_of_a_pause_that_go_on_at_once_are_both_known_and_both_ended() -> None:
    stuck = Stuck()
    model = Scripted(call("pay", amount=5), stuck, stuck)
    memory = Memory(InMemory())
    agent = Agent(model, tools=[pay], gate="sensitive", advisors=[memory], name="echo")
    gateway = gateway_of(agent)
    paused = await gateway.start(ANN, job(conversation="c"))
    await within(paused.end())
    await gateway.conversations.fork("c", "ann", new="fork", at=None)
    readers: list[Reader] = []
    for conversation in ("c", "fork"):
        answers = {paused.turn.pending[0].id: Answered("approve")}
        asked = Job(
            agent="echo", kind="resume", conversation=conversation, answers=answers, detached=True
        )
        readers.append(await gateway.start(ANN, asked))
    assert [gateway.running(ANN, c) for c in ("c", "fork")] == [r.turn.turn for r in readers]
    await within(gateway.close())
    assert [(await within(reader.end())).status for reader in readers] == ["cancelled"] * 2


async def test_one_who_listens_and_fails_does_not_harm_the_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = gateway_of(echoing())
    heard: list[Event] = []

    def deaf(turn: Kept, event: Event) -> None:
        raise ValueError("the listener broke")

    gateway.watch(deaf)
    gateway.watch(lambda turn, event: heard.append(event))
    reader = await gateway.start(ANN, job())
    assert (await within(reader.end())).text == "Hello"
    assert [event.seq for event in heard] == [*range(1, reader.turn.last + 1)]
    assert "the listener broke" in caplog.text


async def test_what_was_asked_is_let_go_when_the_turn_has_ended() -> None:
    deck = Deck()
    gateway = Gateway(deck)
    deck.cards = {"echo": gateway_of(Agent(Scripted(), name="echo")).agent("echo")}
    reader = await gateway.start(ANN, job("x" * 500_000, request="r", context={"y": "z" * 9_999}))
    await within(reader.end())
    tape = weakref.ref(deck.tapes.pop())
    await asyncio.sleep(0)
    assert tape() is None
    assert len(reader.turn.job.dump()) < 500
    assert await gateway.start(ANN, job("x" * 500_000, request="r", context={"y": "z" * 9_999}))


async def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    gateway = gateway_of(echoing())
    with pytest.raises(Refused, match="nested too deeply") as refused:
        await gateway.start(ANN, job(request="r", context={"deep": deep}))
    assert refused.value.code == "invalid"


async def test_a_layer_that_recurses_without_end_is_not_blamed_on_the_client() -> None:
    async def endless(request: Any, call_next: Any) -> Any:
        return await endless(request, call_next)

    gateway = gateway_of(Agent(Scripted(), advisors=[Layer("endless", chat=endless)], name="echo"))
    end = await within((await gateway.start(ANN, job())).end())
    assert (end.status, end.reason) == ("failed", "The server failed; its log says why.")
