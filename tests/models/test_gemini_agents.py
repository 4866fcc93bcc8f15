"""Whole agents over the Gemini format, with a server that takes nothing amiss."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Image, tool
from retinue.advisors import Memory
from retinue.chains.events import ThinkingChunk
from retinue.chains.settings import Settings
from retinue.messages import Thinking, Usage
from retinue.models import Gemini, Responses, Say, Scripted, call
from retinue.models.base import ModelRetry
from retinue.models.gemini.messages import UNSIGNED
from retinue.stores import InMemory
from tests.models import vendor as responses
from tests.models.calling import BOTH
from tests.models.gemini_rig import KEY, MODEL, Step, Vendor, answer, asks, says, thinks, vendor
from tests.models.talking import (
    PNG,
    break_off,
    cancel_and_go_on,
    talk,
    weather,
)

CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}


def model_of(at: Vendor, **options: Any) -> Gemini:
    return Gemini(MODEL, base_url=at.url, api_key=KEY, **options)


def kinds(turn: dict[str, Any]) -> list[str]:
    """The fields of the parts of a turn."""
    return ["+".join(sorted(part)) for part in turn["parts"]]


@BOTH
@pytest.mark.rule("R-STREAM-7", "R-MEM-2", "R-LOOP-1", "R-TOOL-5")
@pytest.mark.behaviour("B-TH-2", "B-LO-1")
async def test_a_loop_of_many_rounds_and_the_turns_after_it_are_taken_by_a_strict_server(
    stream: bool,
) -> None:
    steps = [
        answer(thinks("Two cities."), says("Let me see."), asks("weather", city="Oslo"),
               asks("weather", city="Oslo"), asks("weather", city="Rome")),
        answer(thinks("One more."), asks("weather", city="Bonn")),
        answer(thinks("Done."), says("Sunny.")),
        answer(says("You are welcome.")),
        answer(thinks("So."), says("Bye.")),
    ]  # fmt: skip
    async with vendor(*steps) as at:
        agent = Agent(
            model_of(at), tools=[weather], advisors=[Memory(InMemory())], instructions="Be brief."
        )
        assert (await talk(agent, "Weather?", stream=stream, conversation="c")).text == "Sunny."
        assert (
            await talk(agent, "Thanks", stream=stream, conversation="c")
        ).text == "You are welcome."
        assert (await talk(agent, "Bye", stream=stream, conversation="c")).text == "Bye."
    assert at.refusals == []
    assert len(at.requests) == 5
    told = {"parts": [{"text": "Be brief."}]}
    assert all(request.body["systemInstruction"] == told for request in at.requests)
    results = [part["functionResponse"]["response"] for part in at.contents(1)[2]["parts"]]
    assert results == [{"output": f"sunny in {city}"} for city in ("Oslo", "Oslo", "Rome")]
    ids = [part["functionResponse"]["id"] for part in at.contents(1)[2]["parts"]]
    assert len(set(ids)) == 3


@BOTH
async def test_every_signature_goes_back_to_its_place_also_from_the_store(stream: bool) -> None:
    steps = [
        answer(thinks("Hm."), says("Wait."), asks("weather", city="Oslo"),
               asks("weather", city="Rome")),
        answer(CODE, RAN, says("Sunny, one.")),
        answer(says("Bye.")),
    ]  # fmt: skip
    store = InMemory()
    async with vendor(*steps) as at:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        assert (
            await talk(agent, "Weather?", stream=stream, conversation="c")
        ).text == "Sunny, one."
        # Another process, so to say: nothing is left but what the store holds.
        again = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        assert (await talk(again, "Thanks", stream=stream, conversation="c")).text == "Bye."
    assert at.refusals == []
    _, first, _, second, _ = at.contents()
    signed = "thoughtSignature"
    assert kinds(first) == [
        "text+thought", "text", f"functionCall+{signed}", "functionCall",
    ]  # fmt: skip
    end = ["text", f"text+{signed}"] if stream else [f"text+{signed}"]
    ran = [f"executableCode+{signed}", f"codeExecutionResult+{signed}"]
    assert kinds(second) == [*ran, *end]


@BOTH
@pytest.mark.rule("R-USAGE-1", "R-USAGE-2")
@pytest.mark.behaviour("B-US-1", "B-US-2", "B-TH-1")
async def test_thinking_is_apart_from_the_text_and_every_round_is_counted(stream: bool) -> None:
    steps = [answer(thinks("Hm."), asks("weather", city="Oslo")), answer(says("Sunny."))]
    async with vendor(*steps) as at:
        agent = Agent(model_of(at, thoughts=True), tools=[weather])
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
    config = at.requests[0].body["generationConfig"]
    assert config == {"thinkingConfig": {"includeThoughts": True}}


async def test_images_of_tools_are_seen_by_the_model() -> None:
    @tool
    def look() -> Image:
        """Takes a picture."""
        return Image(data=PNG)

    async with vendor(answer(asks("look")), answer(says("A dot."))) as at:
        assert (await Agent(model_of(at), tools=[look]).run("Look")).text == "A dot."
    (part,) = at.contents()[-1]["parts"]
    (shown,) = part["functionResponse"]["parts"]
    assert shown["inlineData"]["mimeType"] == "image/png"


# -- another vendor's model ---------------------------------------------------------------------


@pytest.mark.behaviour("B-TH-2")
async def test_the_calls_of_another_model_are_taken_and_its_thoughts_are_not_shown() -> None:
    store = InMemory()
    steps = [Say(text="Let me see.", calls=[call("weather", city="Oslo")]), "Sunny."]
    other = Scripted(*steps)
    await Agent(other, tools=[weather], advisors=[Memory(store)]).run("Weather?", conversation="c")
    async with vendor(answer(asks("weather", city="Rome")), answer(says("Rainy."))) as at:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        assert (await agent.run("And Rome?", conversation="c")).text == "Rainy."
    assert at.refusals == []
    foreign, _, own = (part for turn in at.contents() for part in turn["parts"]
                       if part.keys() & {"functionCall", "functionResponse"}
                       and "Rome" not in str(part.get("functionResponse")))  # fmt: skip
    assert foreign["thoughtSignature"] == UNSIGNED
    assert own["thoughtSignature"] != UNSIGNED


@pytest.mark.behaviour("B-TH-2")
async def test_a_conversation_goes_over_to_another_vendor_and_back() -> None:
    store = InMemory()
    steps = [answer(thinks("Hm."), asks("weather", city="Oslo")), answer(says("One.")),
             answer(says("Three."))]  # fmt: skip
    second = responses.answer(responses.says("Two."))
    async with vendor(*steps) as at, responses.vendor(second) as there:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(store)])
        assert (await agent.run("First?", conversation="c")).text == "One."
        other = Responses("m", base_url=there.url, api_key=responses.KEY)
        between = Agent(other, tools=[weather], advisors=[Memory(store)])
        assert (await between.run("Second?", conversation="c")).text == "Two."
        assert (await agent.run("Third?", conversation="c")).text == "Three."
    assert at.refusals == there.refusals == []
    assert "hought" not in str(there.input())
    assert [kinds(turn) for turn in at.contents()] == [
        ["text"],
        ["text+thought", "functionCall+thoughtSignature"],
        ["functionResponse"],
        ["text+thoughtSignature"],
        ["text"],
        ["text"],
        ["text"],
    ]


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.behaviour("B-ST-9")
@pytest.mark.parametrize("hold", range(1, 9))
async def test_a_turn_cancelled_in_mid_answer_leaves_a_log_that_a_strict_server_takes(
    hold: int,
) -> None:
    held = answer(
        thinks("A thought."), CODE, RAN, says("Let me see."), asks("weather", city="Oslo"),
        hold=hold,
    )  # fmt: skip
    async with vendor(held, answer(says("Fine."))) as at:
        agent = Agent(model_of(at), tools=[weather], advisors=[Memory(InMemory())])
        await cancel_and_go_on(agent, at)
    assert at.refusals == []


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.behaviour("B-ST-12", "B-ST-2")
async def test_an_error_in_mid_stream_keeps_the_partial_text_and_the_words_of_the_vendor() -> None:
    async with vendor(answer(says("Half of an answer"), error=2)) as at:
        await break_off(Agent(model_of(at)), shown="Half of an", told="It broke")
    assert len(at.requests) == 1


@BOTH
@pytest.mark.rule("R-FAIL-2")
async def test_a_refusal_for_the_moment_and_a_call_that_cannot_be_read_are_tried_again(
    stream: bool,
) -> None:
    steps = [Step(status=429), Step(status=503), Step(finish="MALFORMED_FUNCTION_CALL"),
             answer(says("Fine."))]  # fmt: skip
    async with vendor(*steps) as at:
        agent = Agent(model_of(at), retry=ModelRetry(attempts=4, base=0.001))
        assert (await talk(agent, "Go", stream=stream)).text == "Fine."
    assert len(at.requests) == 4


async def test_an_answer_that_was_cut_off_says_so() -> None:
    async with vendor(answer(says("Half of"), finish="MAX_TOKENS")) as at:
        result = await Agent(model_of(at), settings=Settings(max_tokens=16)).run("Go")
    assert result.message is not None
    assert result.message.finish == "length"
    assert at.requests[0].body["generationConfig"] == {"maxOutputTokens": 16}


@pytest.mark.behaviour("B-LO-5")
async def test_an_invented_tool_is_answered_and_the_turn_goes_on() -> None:
    steps = [
        answer(asks("default_api:look"), finish="UNEXPECTED_TOOL_CALL"),
        answer(says("Sorry.")),
    ]
    async with vendor(*steps) as at:
        assert (await Agent(model_of(at), tools=[weather]).run("Go")).text == "Sorry."
    (part,) = at.contents()[-1]["parts"]
    assert part["functionResponse"]["name"] == "default_api:look"
    assert "weather" in part["functionResponse"]["response"]["error"]


async def test_many_turns_at_once_share_one_model() -> None:
    steps = [answer(says("Fine.")) for _ in range(20)]
    async with vendor(*steps) as at:
        agent = Agent(model_of(at))
        results = await asyncio.gather(*(agent.run(f"Question {n}") for n in range(20)))
    assert {result.text for result in results} == {"Fine."}
    assert len({at.requests[n].raw for n in range(20)}) == 20
    assert not any(
        isinstance(part, Thinking) and part.text
        for result in results
        for message in result.messages
        for part in message.parts
    )
