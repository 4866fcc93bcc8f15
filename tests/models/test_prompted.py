"""Tools by way of the prompt: what the inner model is asked, and what the loop gets."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains import Output, Settings
from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError, ModelBroken, ModelOverloaded
from retinue.messages import (
    ThinkingDelta,
    Usage,
    UsageDelta,
)
from retinue.models.base import Model
from retinue.models.capabilities import Capabilities
from retinue.models.prompted import PromptedTools
from retinue.models.scripted import Say, Scripted
from retinue.tools import Tool, tool
from tests.models.asking import Answer, answer
from tests.models.calling import chat


@tool
def forecast(city: str, days: int = 3) -> str:
    """The weather forecast of a city."""
    return f"{city}: rain for {days} days"


@tool
def order(item: str) -> str:
    """Orders a thing."""
    return item


@tool
def now() -> str:
    """The time of day."""
    return "noon"


def act(name: str) -> str:
    return json.dumps({"action": name})


def options(request: ChatRequest) -> Sequence[str]:
    """What the model could choose from in this request."""
    assert request.output is not None
    return request.output.schema["properties"]["action"]["enum"]


def prompt(request: ChatRequest) -> str:
    """All that the inner model reads."""
    return "\n".join([*request.instructions, *(m.text for m in request.messages)])


def settings(tool_choice: str | None = None, **fields: Any) -> Settings:
    return Settings(tool_choice=tool_choice, **fields)


OSLO = '{"city": "Oslo", "days": 5}'


async def test_it_is_a_model_with_the_name_of_the_inner_one() -> None:
    model = PromptedTools(Scripted(name="small", provider="shed"))
    assert isinstance(model, Model)
    assert (model.name, model.provider) == ("small", "shed")
    await model.close()


async def test_without_tools_the_request_passes_as_it_is() -> None:
    inner = Scripted(Say(text=["Hel", "lo"], usage=Usage(3, 2)))
    request = chat("Hi", instructions=("Be kind.",), stream=True)
    got = await answer(PromptedTools(inner), request)
    assert (got.text, got.chunks, got.usage, got.finish) == ("Hello", 2, Usage(3, 2), "stop")
    assert inner.requests[0].messages == request.messages
    assert inner.requests[0].instructions == ("Be kind.",)


@pytest.mark.parametrize("choice", ["forecast", "required"])
async def test_a_forced_tool_costs_one_call_and_gives_its_arguments(choice: str) -> None:
    inner = Scripted(Say(text=OSLO, usage=Usage(20, 9)))
    request = chat("Oslo, five days", tools=(forecast,), settings=settings(choice), stream=True)
    got = await answer(PromptedTools(inner), request)
    (call,) = got.calls
    assert (call.name, json.loads(call.arguments)) == ("forecast", {"city": "Oslo", "days": 5})
    assert call.id
    assert (got.text, got.finish, got.usage) == ("", "tool_calls", Usage(20, 9))
    (sent,) = inner.requests
    assert sent.output is not None
    assert sent.output.schema == forecast.spec.parameters
    assert not sent.stream


async def test_the_inner_model_sees_no_tools_and_no_tool_choice() -> None:
    inner = Scripted(act("answer"), "Hello.")
    request = chat(
        "Hi", tools=(forecast,), settings=settings(parallel_tool_calls=False, max_tokens=9)
    )
    await answer(PromptedTools(inner), request)
    for sent in inner.requests:
        assert sent.tools == ()
        assert sent.settings.tool_choice is None
        assert sent.settings.parallel_tool_calls is None
    assert inner.requests[-1].settings.max_tokens == 9


async def test_two_calls_never_have_the_same_id() -> None:
    model = PromptedTools(Scripted(OSLO, repeat=True))
    request = chat("Oslo", tools=(forecast,), settings=settings("required"))
    ids = {(await answer(model, request)).calls[0].id for _ in range(5)}
    assert len(ids) == 5


async def test_required_with_several_tools_offers_their_names_and_no_answer() -> None:
    inner = Scripted(act("order"), '{"item": "lamp"}')
    request = chat("A lamp", tools=(forecast, order), settings=settings("required"))
    got = await answer(PromptedTools(inner), request)
    assert options(inner.requests[0]) == ["forecast", "order"]
    assert [(c.name, c.arguments) for c in got.calls] == [("order", '{"item":"lamp"}')]


async def test_left_free_the_model_may_answer_and_the_answer_streams() -> None:
    inner = Scripted(
        Say(text=act("answer"), usage=Usage(10, 2)), Say(text=["Hel", "lo"], usage=Usage(5, 2, 1))
    )
    request = chat("Hi", tools=(forecast, order), stream=True)
    got = await answer(PromptedTools(inner), request)
    assert options(inner.requests[0]) == ["answer", "forecast", "order"]
    assert (got.text, got.chunks, got.finish) == ("Hello", 2, "stop")
    assert got.calls == ()
    assert got.usage == Usage(15, 4, 1)
    assert [r.stream for r in inner.requests] == [False, True]


async def test_left_free_the_model_may_call() -> None:
    inner = Scripted(act("forecast"), OSLO)
    got = await answer(PromptedTools(inner), chat("Oslo?", tools=(forecast, order)))
    assert [c.name for c in got.calls] == ["forecast"]
    assert (got.text, got.finish) == ("", "tool_calls")


async def test_a_tool_called_answer_is_not_taken_for_the_answer() -> None:
    @tool(name="answer")
    def reply(text: str) -> str:
        """Sends a reply by post."""
        return text

    inner = Scripted(act("answer"), '{"text": "yes"}')
    got = await answer(PromptedTools(inner), chat("Post a yes", tools=(reply,)))
    assert [c.name for c in got.calls] == ["answer"]
    assert len(set(options(inner.requests[0]))) == 2


async def test_tool_choice_none_asks_for_words_only() -> None:
    inner = Scripted("Hello.")
    got = await answer(
        PromptedTools(inner), chat("Hi", tools=(forecast,), settings=settings("none"))
    )
    assert got.text == "Hello."
    assert inner.requests[0].output is None


async def test_a_tool_that_is_not_on_offer_is_refused_before_any_call() -> None:
    inner = Scripted("never")
    request = chat("Hi", tools=(forecast, order), settings=settings("forcast"))
    with pytest.raises(ConfigError, match=r"'forcast'.*forecast, order"):
        await answer(PromptedTools(inner), request)
    assert inner.requests == []


async def test_a_tool_without_parameters_needs_no_arguments_from_the_model() -> None:
    inner = Scripted()
    got = await answer(
        PromptedTools(inner), chat("The time?", tools=(now,), settings=settings("now"))
    )
    assert [(c.name, c.arguments) for c in got.calls] == [("now", "{}")]
    assert inner.requests == []


async def test_arguments_of_a_tool_that_takes_any_field_are_asked_for() -> None:
    schema = {"type": "object", "additionalProperties": True}
    anything = Tool(lambda **fields: "", name="anything", description="", parameters=schema)
    inner = Scripted('{"x": 1}')
    request = chat("x is 1", tools=(anything,), settings=settings("anything"))
    got = await answer(PromptedTools(inner), request)
    assert [c.arguments for c in got.calls] == ['{"x":1}']


async def test_the_form_of_the_answer_binds_the_answer_and_not_the_choice() -> None:
    form = Output.of({"type": "object", "properties": {"n": {"type": "integer"}}})
    inner = Scripted(act("answer"), '{"n": 1}')
    got = await answer(PromptedTools(inner), chat("One", tools=(forecast,), output=form))
    assert got.text == '{"n": 1}'
    assert inner.requests[1].output == form
    assert options(inner.requests[0]) == ["answer", "forecast"]


async def test_json_is_asked_for_at_temperature_0_and_without_stop_sequences() -> None:
    inner = Scripted(act("answer"), "Hello.")
    request = chat("Hi", tools=(forecast,), settings=settings(stop=("}",), seed=3))
    await answer(PromptedTools(inner), request)
    choice, final = (r.settings for r in inner.requests)
    assert (choice.temperature, choice.stop, choice.seed) == (0.0, (), 3)
    assert (final.temperature, final.stop, final.seed) == (None, ("}",), 3)


async def test_a_temperature_that_is_set_holds_for_json_too() -> None:
    inner = Scripted(OSLO)
    request = chat("Oslo", tools=(forecast,), settings=settings("forecast", temperature=0.7))
    await answer(PromptedTools(inner), request)
    assert inner.requests[0].settings.temperature == 0.7


async def test_the_schema_stands_in_the_prompt_unless_it_shall_be_brief() -> None:
    schema = '"type":"integer"'
    for brief in (False, True):
        inner = Scripted(OSLO)
        request = chat("Oslo", tools=(forecast,), settings=settings("forecast"))
        await answer(PromptedTools(inner, brief=brief), request)
        text = prompt(inner.requests[0])
        assert "city, days" in text
        assert (schema in text) is not brief


# -- usage ----------------------------------------------------------------------------------------


@pytest.mark.rule("R-USAGE-2")
async def test_cumulative_reports_of_several_inner_calls_add_up() -> None:
    reports = [UsageDelta(Usage(10)), UsageDelta(Usage(None, 4)), UsageDelta(Usage(10, 6))]
    inner = Scripted(
        Say(text=act("forecast"), deltas=reports),
        Say(text=OSLO, deltas=[UsageDelta(Usage(7, 1)), UsageDelta(Usage(1, 1), additive=True)]),
    )
    got = await answer(PromptedTools(inner), chat("Oslo?", tools=(forecast,)))
    assert got.usage == Usage(18, 8)


@pytest.mark.rule("R-USAGE-1")
async def test_usage_that_nobody_reports_stays_unknown() -> None:
    got = await answer(
        PromptedTools(Scripted(act("forecast"), OSLO)), chat("Oslo?", tools=(forecast,))
    )
    assert got.usage is None


counts = st.none() | st.integers(0, 1000)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


@pytest.mark.rule("R-USAGE-2")
@given(st.lists(usages, max_size=4), st.lists(usages, max_size=4))
async def test_usage_is_the_sum_of_the_last_reports(one: list[Usage], two: list[Usage]) -> None:
    inner = Scripted(
        Say(text=act("answer"), deltas=[UsageDelta(u) for u in one]),
        Say(text="Hi", deltas=[UsageDelta(u) for u in two]),
    )
    got = await answer(PromptedTools(inner), chat("Hi", tools=(forecast,)))
    expected = None
    for reports in (one, two):
        last = None
        for usage in reports:
            last = usage if last is None else last.overlaid(usage)
        if last is not None:
            expected = last if expected is None else expected + last
    assert got.usage == expected


async def test_usage_of_the_choice_is_kept_when_the_arguments_fail() -> None:
    inner = Scripted(
        Say(text=act("forecast"), usage=Usage(10, 2)), ModelOverloaded("busy", status=429)
    )
    taken = Answer()
    with pytest.raises(ModelOverloaded, match="busy"):
        await PromptedTools(inner).generate(chat("Oslo?", tools=(forecast,)), taken)
    assert taken.usage == Usage(10, 2)
    assert taken.calls == ()


# -- what models write that is no JSON ------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        f"```json\n{OSLO}\n```",
        f"Here you are: {OSLO}. Anything else?",
        f"<think>Perhaps {{Bergen}}?</think>\n{OSLO}",
    ],
)
async def test_fences_words_and_thoughts_round_the_json_do_no_harm(written: str) -> None:
    request = chat("Oslo", tools=(forecast,), settings=settings("forecast"))
    got = await answer(PromptedTools(Scripted(written)), request)
    assert [json.loads(c.arguments) for c in got.calls] == [{"city": "Oslo", "days": 5}]


async def test_reasoning_about_a_call_is_no_text_of_the_answer() -> None:
    inner = Scripted(Say(thinking="Which city?", text=OSLO))
    request = chat("Oslo", tools=(forecast,), settings=settings("forecast"))
    got = await answer(PromptedTools(inner), request)
    assert got.text == ""
    assert not any(isinstance(delta, ThinkingDelta) for delta in got.deltas)


@pytest.mark.parametrize("written", ["", "I cannot.", '["Oslo"]', '{"city": "Os', "} {"])
async def test_arguments_that_are_no_json_object_break_the_call(written: str) -> None:
    request = chat("Oslo", tools=(forecast,), settings=settings("forecast"))
    taken = Answer()
    with pytest.raises(ModelBroken, match=r"script.*arguments of forecast"):
        await PromptedTools(Scripted(written)).generate(request, taken)
    assert taken.deltas == []


async def test_arguments_that_were_cut_off_say_what_to_raise() -> None:
    inner = Scripted(Say(text='{"city": "Os', finish="length"))
    request = chat("Oslo", tools=(forecast,), settings=settings("forecast", max_tokens=4))
    with pytest.raises(ModelBroken, match="max_tokens"):
        await answer(PromptedTools(inner), request)


@pytest.mark.parametrize("picked", ['"sing"', "null", '["forecast"]', "{}"])
async def test_a_choice_that_was_not_on_offer_breaks_the_call(picked: str) -> None:
    inner = Scripted(f'{{"action": {picked}}}')
    with pytest.raises(ModelBroken, match="answer, forecast"):
        await answer(PromptedTools(inner), chat("Oslo", tools=(forecast,)))


@pytest.mark.parametrize(
    ("thinking", "given", "most"),
    [(False, None, 256), (None, None, 256), (None, 8_000, 8_000), (True, None, None)],
)
async def test_a_model_that_thinks_has_room_for_it_before_it_chooses(
    thinking: bool | None, given: int | None, most: int | None
) -> None:
    inner = Scripted(act("answer"), "Hi", capabilities=Capabilities(thinking=thinking))
    request = chat("Hi", tools=(forecast,), settings=settings(max_tokens=given))
    await answer(PromptedTools(inner), request)
    assert [r.settings.max_tokens for r in inner.requests] == [most, given]


async def test_a_choice_is_not_bound_by_the_length_of_the_answer() -> None:
    inner = Scripted(act("answer"), "Hi")
    await answer(
        PromptedTools(inner), chat("Hi", tools=(forecast,), settings=settings(max_tokens=1))
    )
    choice, final = (r.settings.max_tokens for r in inner.requests)
    assert choice is not None
    assert choice > 64
    assert final == 1
