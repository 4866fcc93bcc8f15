"""Whole agents over the Responses format, with a server that takes nothing amiss."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Image, tool
from retinue.advisors import Memory
from retinue.chains.events import ThinkingChunk
from retinue.chains.settings import Settings
from retinue.messages import Thinking, Usage
from retinue.models import Responses
from retinue.models.base import ModelRetry
from retinue.stores import InMemory
from tests.models.calling import BOTH
from tests.models.talking import (
    PNG,
    break_off,
    cancel_and_go_on,
    talk,
    weather,
)
from tests.models.vendor import KEY, MODEL, Step, Vendor, answer, asks, says, thinks, vendor


def model_of(at: Vendor, **options: Any) -> Responses:
    return Responses(MODEL, base_url=at.url, api_key=KEY, gateway="openai", **options)


STORING = pytest.mark.parametrize(
    "options",
    [{}, {"store": True}, {"store": True, "previous_response_id": True}],
    ids=["encrypted", "stored", "chained"],
)


@STORING
@BOTH
@pytest.mark.rule("R-STREAM-7", "R-MEM-2", "R-LOOP-1", "R-TOOL-5")
@pytest.mark.behaviour("B-TH-2", "B-LO-1")
async def test_a_loop_of_many_rounds_and_the_turn_after_it_are_taken_by_a_strict_server(
    stream: bool, options: dict[str, Any]
) -> None:
    steps = [
        answer(thinks("Two cities."), says("Let me see.", phase="commentary"),
               asks("weather", "call_a", city="Oslo"), asks("weather", "call_b", city="Rome")),
        answer(thinks(), asks("weather", "call_c", city="Bonn")),
        answer(thinks("Done."), says("Sunny.", phase="final_answer")),
        answer(says("You are welcome.", phase="final_answer")),
        answer(thinks(), says("Bye.")),
    ]  # fmt: skip
    async with vendor(*steps) as at:
        agent = Agent(
            model_of(at, **options), tools=[weather], advisors=[Memory(InMemory())],
            instructions="Be brief.",
        )  # fmt: skip
        assert (await talk(agent, "Weather?", stream=stream, conversation="c")).text == "Sunny."
        assert (
            await talk(agent, "Thanks", stream=stream, conversation="c")
        ).text == "You are welcome."
        assert (await talk(agent, "Bye", stream=stream, conversation="c")).text == "Bye."
    assert at.refusals == []
    assert len(at.requests) == 5
    assert all(request.body["instructions"] == "Be brief." for request in at.requests)
    results = [item for item in at.input(1) if item.get("type") == "function_call_output"]
    assert [(item["call_id"], item["output"]) for item in results] == [
        ("call_a", "sunny in Oslo"), ("call_b", "sunny in Rome"),
    ]  # fmt: skip


async def test_the_log_holds_the_items_of_the_conversation_as_they_came() -> None:
    steps = [
        answer(thinks("Hm."), says("Wait.", phase="commentary"), asks("weather", "a", city="Oslo")),
        answer(thinks(), says("Sunny.", phase="final_answer")),
        answer(says("Bye.")),
    ]
    store = InMemory()
    async with vendor(*steps) as at:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        await agent.run("Weather?", conversation="c")
        # Another process, so to say: nothing is left but what the store holds.
        again = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        await again.run("Thanks", conversation="c")
    assert [(item.get("type"), item.get("phase")) for item in at.input()] == [
        (None, None), ("reasoning", None), ("message", "commentary"), ("function_call", None),
        ("function_call_output", None), ("reasoning", None), ("message", "final_answer"),
        (None, None),
    ]  # fmt: skip
    assert at.input()[1]["encrypted_content"].startswith("gAAAA")


async def test_a_stored_answer_is_named_and_only_what_came_after_it_is_sent() -> None:
    steps = [answer(thinks(), asks("weather", "a", city="Oslo")), answer(says("Sunny.")),
             answer(says("Bye."))]  # fmt: skip
    async with vendor(*steps) as at:
        model = model_of(at, store=True, previous_response_id=True)
        agent = Agent(model, tools=[weather], advisors=[Memory(InMemory())])
        await agent.run("Weather?", conversation="c")
        await agent.run("Thanks", conversation="c")
    assert at.refusals == []
    first, second, third = (request.body for request in at.requests)
    assert "previous_response_id" not in first
    assert [item["type"] for item in second["input"]] == ["function_call_output"]
    assert third["input"] == [{"role": "user", "content": "Thanks"}]
    assert second["previous_response_id"] != third["previous_response_id"]


@pytest.mark.behaviour("B-TH-2")
async def test_what_was_stored_once_is_not_asked_for_where_nothing_is_stored() -> None:
    steps = [answer(thinks("Hm."), says("One.")), answer(thinks("Hm."), says("Two."))]
    store = InMemory()
    async with vendor(*steps) as at:
        stored = Agent(model_of(at, store=True), advisors=[Memory(store)])
        await stored.run("First?", conversation="c")
        fresh = Agent(model_of(at), advisors=[Memory(store)])
        assert (await fresh.run("Second?", conversation="c")).text == "Two."
    assert at.input()[1:-1] == [{"type": "message", "role": "assistant", "content": "One."}]


@BOTH
@pytest.mark.rule("R-USAGE-1", "R-USAGE-2")
@pytest.mark.behaviour("B-US-2", "B-TH-1")
async def test_thinking_is_apart_from_the_text_and_every_round_is_counted(stream: bool) -> None:
    steps = [answer(thinks("Hm."), asks("weather", "a", city="Oslo")), answer(says("Sunny."))]
    async with vendor(*steps) as at:
        agent = Agent(model_of(at, summary="auto"), tools=[weather])
        if stream:
            turn = agent.stream("Weather?")
            events = [event async for event in turn]
            result = await turn.result()
            assert "".join(e.text for e in events if isinstance(e, ThinkingChunk)) == "Hm."
        else:
            result = await agent.run("Weather?")
    assert result.text == "Sunny."
    assert result.messages[1].thinking == "Hm."
    assert result.usage == Usage(input=20, output=12, cache_read=8, reasoning=4)
    assert at.requests[0].body["reasoning"] == {"summary": "auto"}


async def test_images_of_tools_are_seen_by_the_model() -> None:
    @tool
    def look() -> Image:
        """Takes a picture."""
        return Image(data=PNG)

    async with vendor(answer(asks("look", "a")), answer(says("A dot."))) as at:
        assert (await Agent(model_of(at), tools=[look]).run("Look")).text == "A dot."
    (result,) = [item for item in at.input() if item.get("type") == "function_call_output"]
    assert [part["type"] for part in result["output"]] == ["input_image"]


async def test_what_the_provider_ran_goes_back_as_it_came() -> None:
    searched = {
        "type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "weather oslo"},
    }  # fmt: skip
    steps = [answer(thinks(), searched, thinks(), says("Rain.")), answer(says("Bye."))]
    async with vendor(*steps) as at:
        settings = Settings(extra={"tools": [{"type": "web_search"}]})
        agent = Agent(model_of(at), advisors=[Memory(InMemory())], settings=settings)
        await agent.run("Weather?", conversation="c")
        await agent.run("Thanks", conversation="c")
    assert at.refusals == []
    assert at.requests[0].body["tools"] == [{"type": "web_search"}]
    kinds = [item.get("type") for item in at.input()]
    assert kinds == [None, "reasoning", "web_search_call", "reasoning", "message", None]
    assert at.input()[2] | searched == at.input()[2]


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.behaviour("B-ST-9")
@pytest.mark.parametrize("hold", [1, 4, 6, 9, 12, 14, 17, 20])
async def test_a_turn_cancelled_in_mid_answer_leaves_a_log_that_a_strict_server_takes(
    hold: int,
) -> None:
    held = answer(
        thinks("A thought."), says("Let me see.", phase="commentary"),
        asks("weather", "a", city="Oslo"), hold=hold,
    )  # fmt: skip
    async with vendor(held, answer(thinks(), says("Fine."))) as at:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(InMemory())])
        await cancel_and_go_on(agent, at)
    assert at.refusals == []


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.behaviour("B-ST-12", "B-ST-2")
async def test_an_error_in_mid_stream_keeps_the_partial_text_and_the_words_of_the_vendor() -> None:
    async with vendor(answer(says("Half of an answer"), error=5)) as at:
        await break_off(Agent(model_of(at)), shown="Half of an", told="It broke")
    assert len(at.requests) == 1


@pytest.mark.rule("R-FAIL-2")
async def test_a_refusal_for_the_moment_is_tried_again() -> None:
    async with vendor(Step(status=429), Step(status=503), answer(says("Fine."))) as at:
        agent = Agent(model_of(at), retry=ModelRetry(base=0.001))
        assert (await agent.run("Go")).text == "Fine."
    assert len(at.requests) == 3


async def test_an_answer_that_was_cut_off_says_so() -> None:
    async with vendor(answer(says("Half of"), incomplete="max_output_tokens")) as at:
        result = await Agent(model_of(at), settings=Settings(max_tokens=16)).run("Go")
    assert result.message is not None
    assert result.message.finish == "length"
    assert at.requests[0].body["max_output_tokens"] == 16


@pytest.mark.behaviour("B-TH-2")
async def test_reasoning_of_one_provider_is_not_shown_to_another() -> None:
    store = InMemory()
    async with vendor(answer(thinks("Hm."), says("One."))) as first:
        await Agent(model_of(first), advisors=[Memory(store)]).run("Q", conversation="c")
    async with vendor(answer(says("Two."))) as second:
        other = Responses(MODEL, base_url=second.url, api_key=KEY)
        agent = Agent(other, advisors=[Memory(store)])
        result = await agent.run("And?", conversation="c")
    assert result.text == "Two."
    assert second.input()[1] == {"role": "assistant", "content": "One."}
    assert all(
        part.provider != "openai"
        for message in result.messages
        for part in message.parts
        if isinstance(part, Thinking)
    )


async def test_many_turns_at_once_share_one_model() -> None:
    steps = [answer(says("Fine.")) for _ in range(20)]
    async with vendor(*steps) as at:
        agent = Agent(model_of(at))
        results = await asyncio.gather(*(agent.run(f"Question {n}") for n in range(20)))
    assert {result.text for result in results} == {"Fine."}
    assert sorted(at.input(n)[0]["content"] for n in range(20)) == sorted(
        f"Question {n}" for n in range(20)
    )
