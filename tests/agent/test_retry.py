"""A failed model call is tried again below all layers: when, how often, and what is seen of it."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, ModelError, RetinueError, TurnRequest, Usage
from retinue.advisors import Memory
from retinue.chains.events import ModelRetried, TextChunk, TurnEnded
from retinue.errors import (
    ModelBroken,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from retinue.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta, UsageDelta
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted
from retinue.stores import InMemory
from tests.agent.reading import by_hand, kinds, read
from tests.virtual_time import virtual_time

HOUR = 3600.0
BUSY = ModelOverloaded("The provider is busy.", status=529)


def waits(events: Any) -> list[float]:
    return [event.wait for event in events if isinstance(event, ModelRetried)]


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("kind", [ModelOverloaded, ModelUnreachable, ModelTimeout])
@virtual_time
async def test_a_failure_before_the_first_token_is_tried_again_and_told(
    kind: type[ModelError],
) -> None:
    model = Scripted(kind("one"), kind("two"), "answer")
    turn = Agent(model).stream("q")
    events = await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.text == "answer"
    assert [e.error for e in events if isinstance(e, ModelRetried)] == ["one", "two"]
    assert kinds(events).count("AttemptStarted") == 1
    assert len({id(request) for request in model.requests}) == 1


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("kind", [ModelRefused, ModelBroken, ValueError])
async def test_what_no_repetition_mends_fails_at_once(kind: type[Exception]) -> None:
    model = Scripted(kind("no"), "never")
    with pytest.raises(kind, match="no"):
        await Agent(model).run("q")
    assert len(model.requests) == 1


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    "token", [TextDelta("a"), ThinkingDelta("a"), ToolCallDelta(0, "id", "t", "{")]
)
async def test_after_a_token_there_is_no_retry_and_what_came_is_kept(token: Delta) -> None:
    model = Scripted(Say(deltas=[token], error=BUSY), "never")
    turn = Agent(model).stream("q")
    events = await read(turn)
    assert len(model.requests) == 1
    assert not waits(events)
    assert turn.outcome is not None
    assert turn.outcome.status == "failed"
    assert turn.outcome.error is BUSY
    assert turn.outcome.reason == "The provider is busy."


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.behaviour("B-ST-12")
async def test_a_stream_that_breaks_off_leaves_a_partial_message_in_result_and_log() -> None:
    store = InMemory()
    model = Scripted(Say(text=["Hel", "lo"], error=ModelBroken("The stream was cut short.")))
    agent = Agent(model, advisors=[Memory(store)])
    with pytest.raises(ModelBroken, match="cut short"):
        await agent.run("q", conversation="c")
    _, answer = [entry.message for entry in await store.tail("c")]
    assert (answer.text, answer.partial) == ("Hello", True)
    turn = agent.with_(model=Scripted("fine")).stream("again", conversation="c")
    await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.text == "fine"


@pytest.mark.rule("R-FAIL-2")
@virtual_time
async def test_the_tries_are_counted_and_the_last_error_says_how_many_there_were() -> None:
    model = Scripted(*(ModelOverloaded(f"busy {n}") for n in range(1, 5)))
    with pytest.raises(ModelOverloaded, match="busy 3") as failed:
        await Agent(model).run("q")
    assert len(model.requests) == 3
    assert failed.value.__notes__ == ["Tried 3 times."]


@pytest.mark.rule("R-FAIL-3")
@virtual_time
async def test_the_end_of_a_failed_turn_says_what_happened_and_what_was_tried() -> None:
    turn = Agent(Scripted(*(ModelOverloaded("The provider is busy.") for _ in range(3)))).stream(
        "q"
    )
    with pytest.raises(ModelOverloaded):
        await turn.result()
    assert turn.outcome is not None
    assert turn.outcome.reason == "The provider is busy. Tried 3 times."


@pytest.mark.rule("R-FAIL-2")
@virtual_time
async def test_the_waits_are_random_below_a_bound_that_doubles() -> None:
    agent = Agent(Scripted(BUSY, repeat=True), retry=ModelRetry(attempts=7, base=1.0, cap=8.0))
    seen: list[list[float]] = []
    for _ in range(50):
        seen.append(waits(await read(agent.stream("q"), HOUR)))
    for number, bound in enumerate([1.0, 2.0, 4.0, 8.0, 8.0, 8.0]):
        own = [row[number] for row in seen]
        assert all(0 <= wait <= bound for wait in own)
        assert max(own) > bound / 2 > min(own), "full jitter spreads over the whole range"


@pytest.mark.rule("R-FAIL-2")
@virtual_time
async def test_the_provider_s_own_wait_is_kept_to_the_second() -> None:
    began = asyncio.get_running_loop().time()
    model = Scripted(ModelOverloaded("later", retry_after=17.0), "answer")
    events = await read(Agent(model).stream("q"), HOUR)
    assert waits(events) == [17.0]
    assert asyncio.get_running_loop().time() - began == pytest.approx(17.0)


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(("asked", "tries"), [(30.0, 2), (30.5, 1)])
@virtual_time
async def test_a_wait_beyond_the_cap_is_not_waited_for(asked: float, tries: int) -> None:
    model = Scripted(ModelOverloaded("later", retry_after=asked), "answer")
    turn = Agent(model, retry=ModelRetry(cap=30.0)).stream("q")
    await read(turn, HOUR)
    assert len(model.requests) == tries
    assert turn.outcome is not None
    assert turn.outcome.status == ("completed" if tries == 2 else "failed")


@pytest.mark.rule("R-FAIL-2")
@virtual_time
async def test_layers_and_transforms_see_one_call_whatever_was_tried() -> None:
    seen: list[str] = []

    async def chat(request: Any, call_next: Any) -> Any:
        seen.append("in")
        answer = await call_next(request)
        seen.append("out")
        return answer

    class Watching:
        def __init__(self) -> None:
            seen.append("made")

        def feed(self, delta: Delta) -> tuple[Delta]:
            seen.append("fed")
            return (delta,)

        def flush(self) -> tuple[()]:
            seen.append("flushed")
            return ()

    layer = Layer("watch", chat=chat, stream=lambda request: Watching())
    reported = Say(deltas=[UsageDelta(Usage(input=3))], error=BUSY, finish="")
    await Agent(Scripted(reported, BUSY, "answer"), advisors=[layer]).run("q")
    assert seen == ["in", "made", "fed", "flushed", "out"]


@pytest.mark.rule("R-USAGE-2", "R-USAGE-3")
@pytest.mark.behaviour("B-US-3")
@virtual_time
async def test_tokens_of_failed_tries_count_in_the_turn_and_not_in_the_answer() -> None:
    def script() -> Scripted:
        failed = Say(deltas=[UsageDelta(Usage(input=10, output=0))], error=BUSY, finish="")
        return Scripted(failed, failed, Say(text="a", usage=Usage(input=10, output=2)))

    answers: list[Usage | None] = []

    async def chat(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        answers.append(answer.usage)
        return answer

    ran = await Agent(script(), advisors=[Layer("l", chat=chat)]).run("q")
    turn = Agent(script(), advisors=[Layer("l", chat=chat)]).stream("q")
    events = await read(turn)
    assert ran.usage == Usage(input=30, output=2)
    assert [one.usage.input for one in ran.spent] == [10, 10, 10]
    assert answers == [Usage(input=10, output=2)] * 2
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].usage == ran.usage


@pytest.mark.rule("R-USAGE-4", "R-USAGE-2")
@virtual_time
async def test_a_call_on_the_side_is_tried_again_by_the_same_rules() -> None:
    side = Scripted(
        Say(deltas=[UsageDelta(Usage(input=10))], error=BUSY, finish=""),
        Say(text="yes", usage=Usage(input=10, output=1)),
    )

    async def turn(request: TurnRequest, call_next: Any) -> Any:
        assert (await request.consult("is it so?", model=side)).text == "yes"
        return await call_next(request)

    result = await Agent(Scripted("answer"), advisors=[Layer("asks", turn=turn)]).run("q")
    assert result.text == "answer"
    assert result.usage == Usage(input=20, output=1)
    broken = Scripted(Say(text="ye", error=BUSY), "yes")

    async def fails(request: TurnRequest, call_next: Any) -> Any:
        with pytest.raises(ModelOverloaded):
            await request.consult("is it so?", model=broken)
        return await call_next(request)

    await Agent(Scripted("answer"), advisors=[Layer("asks", turn=fails)]).run("q")
    assert len(broken.requests) == 1


@pytest.mark.rule("R-STREAM-5")
@pytest.mark.behaviour("B-ST-2")
async def test_after_a_layer_s_retry_a_reader_can_rebuild_exactly_the_final_text() -> None:
    async def chat(request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except ModelError:
            return await call_next(request)

    store = InMemory()
    model = Scripted(Say(text=["The ", "cat"], error=BUSY), Say(text=["The ", "dog."]))
    agent = Agent(model, advisors=[Layer("retry", chat=chat), Memory(store)])
    turn = agent.stream("q", conversation="c")
    events = await read(turn)
    assert [e.text for e in events if isinstance(e, TextChunk)] == ["The ", "cat", "The ", "dog."]
    assert by_hand(events) == "The dog."
    assert [e.message.text for e in await store.tail("c") if e.message.role == "assistant"] == [
        "The dog."
    ]


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.behaviour("B-ST-12", "B-ST-13")
async def test_the_last_event_of_a_failed_turn_carries_the_provider_s_words() -> None:
    turn = Agent(Scripted(Say(text="Hel", error=ModelRefused("Acme says: no such model.")))).stream(
        "q"
    )
    events = await read(turn)
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.error, end.reason) == (
        "failed",
        "ModelRefused",
        "Acme says: no such model.",
    )
    assert end.text == "Hel"
    assert end.message is not None
    assert end.message.partial


@pytest.mark.rule("R-FAIL-3")
async def test_an_error_of_the_caller_s_own_reaches_the_reader_unwrapped_and_last() -> None:
    class Mine(Exception):
        pass

    async def chat(request: Any, call_next: Any) -> Any:
        raise Mine("mine")

    turn = Agent(Scripted("never"), advisors=[Layer("l", chat=chat)]).stream("q")
    seen: list[str] = []

    async def to_the_end() -> None:
        async for event in turn:
            seen.append(type(event).__name__)

    with pytest.raises(Mine, match="mine"):
        await to_the_end()
    assert seen[-1] == "TurnEnded"
    with pytest.raises(Mine, match="mine"):
        await turn.result()


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("streamed", [False, True])
@virtual_time
async def test_a_transform_that_asks_for_it_is_told_of_each_retry(streamed: bool) -> None:
    class Told:
        def __init__(self) -> None:
            self.errors: list[str] = []

        def feed(self, delta: Delta) -> tuple[Delta]:
            return (delta,)

        def flush(self) -> tuple[Delta, ...]:
            return ()

        def retried(self, error: ModelError, wait: float) -> None:
            assert wait >= 0
            self.errors.append(str(error))

    told = Told()
    model = Scripted(ModelOverloaded("one"), ModelTimeout("two"), "answer")
    agent = Agent(model, advisors=[Layer("told", stream=lambda request: told)])
    if streamed:
        await read(agent.stream("q"))
    else:
        await agent.run("q")
    assert told.errors == ["one", "two"]


@pytest.mark.rule("R-FAIL-3")
async def test_an_error_is_raised_although_the_log_could_not_be_written_and_says_so() -> None:
    class Full(InMemory):
        async def append(self, *args: Any, **options: Any) -> None:
            if any(message.role == "assistant" for message in args[1]):
                raise RetinueError("the disk is full")
            await super().append(*args, **options)

    agent = Agent(Scripted(Say(text="Hel", error=BUSY)), advisors=[Memory(Full())])
    turn = agent.stream("q", conversation="c")
    events = await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.error is BUSY
    assert "the disk is full" in BUSY.__notes__[-1]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].text == "Hel"
