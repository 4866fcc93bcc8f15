"""`ToolSearch`: what the model is shown, what it may call, and what is kept between rounds."""

import asyncio
import itertools
from typing import Any

import pytest

from bench.headline.caching import many_tools
from retinue import Agent, Layer, Settings, Tool
from retinue.advisors import Memory
from retinue.models import GATEWAYS
from retinue.models.anthropic.abilities import abilities_of
from retinue.models.anthropic.encode import RequestEncoder as AnthropicEncoder
from retinue.models.capabilities import UNKNOWN
from retinue.models.openai.encode import RequestEncoder as OpenAIEncoder
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory, SQLite
from tests.advisors.searching import EMAIL, FIND, WEATHER, agent, search, shown
from tests.advisors.talking import WAYS, Way, by_parent, sent, strictly


def openai_tools(request: Any) -> bytes:
    """The tools as the Chat Completions format sends them, without the closing bracket."""
    body = OpenAIEncoder("gpt-5", GATEWAYS["openai"], UNKNOWN).encode(request)
    return body.partition(b'"tools":[')[2].partition(b"}}]")[0]


def anthropic_tools(request: Any) -> bytes:
    """The same of the Messages format, without the marks for the cache, which move."""
    model = "claude-sonnet-4-6"
    encoder = AnthropicEncoder(model, abilities_of(model), "2023-06-01", "none")
    return encoder.encode(request).content.partition(b'"tools":[')[2].partition(b'],"messages')[0]


@pytest.mark.behaviour("B-TS-1")
@pytest.mark.parametrize("way", [*WAYS, by_parent])
async def test_a_found_tool_is_shown_in_the_next_round_and_stays_for_the_turn(way: Way) -> None:
    chat, model = agent(
        WEATHER, call("get_weather", city="Oslo"), EMAIL, "done", always_include=["archive_7"]
    )
    result = await way(chat, "?")
    assert result.text == "done"
    assert [shown(model, at) for at in range(4)] == [
        [FIND, "archive_7"],
        [FIND, "archive_7", "get_weather"],
        [FIND, "archive_7", "get_weather"],
        [FIND, "archive_7", "get_weather", "sendEmail"],
    ]
    assert "tool: get_weather ran for Oslo" in sent(model)
    strictly(model)


@pytest.mark.behaviour("B-TS-1")
@pytest.mark.parametrize("keep", ["turn", "conversation"])
@pytest.mark.parametrize("reveal", ["append", "result"])
async def test_what_a_conversation_has_found_is_kept_by_choice(
    keep: Any, reveal: Any, tmp_path: Any
) -> None:
    model = Scripted(WEATHER, "one", "two")
    store = SQLite(tmp_path / "chat.db")
    for question in ("first", "second"):  # another object, as another process would have
        advisors = [Memory(store), search(keep=keep, reveal=reveal)]
        chat = Agent(model, tools=many_tools(20), advisors=advisors)
        result = await chat.run(question, conversation="c")
    await store.close()
    found = ("get_weather",) if keep == "conversation" else ()
    assert result.context["tool_search"].found == found
    own = [FIND] if reveal == "append" else [FIND, "call_tool"]
    assert shown(model) == [*own, *(found if reveal == "append" else ())]


@pytest.mark.behaviour("B-TS-1")
@pytest.mark.parametrize("reveal", ["append", "result"])
async def test_a_tool_of_an_earlier_search_that_the_model_still_sees_can_be_called(
    reveal: Any,
) -> None:
    asked = call("get_weather", city="Rome")
    wrapped = call("call_tool", name="get_weather", arguments={"city": "Rome"})
    model = Scripted(WEATHER, "one", asked if reveal == "append" else wrapped, "two")
    advisors = [Memory(InMemory()), search(reveal=reveal)]
    chat = Agent(model, tools=many_tools(20), advisors=advisors)
    await chat.run("first", conversation="c")
    await chat.run("second", conversation="c")
    assert "tool: get_weather ran for Rome" in sent(model)
    if reveal == "append":
        assert shown(model) == [FIND, "get_weather"]


@pytest.mark.behaviour("B-TS-2")
@pytest.mark.rule("R-TOOL-4", "R-ONION-11")
@pytest.mark.parametrize("way", WAYS)
async def test_two_searches_of_one_round_both_count_in_call_order(way: Way) -> None:
    chat, model = agent([EMAIL, WEATHER], [call("sendEmail"), call("get_weather")], "done")
    result = await way(chat, "?")
    assert shown(model) == [FIND, "sendEmail", "get_weather"]
    assert result.state == {"found_tools": ("sendEmail", "get_weather")}
    assert result.context["tool_search"].searches == 2


@pytest.mark.behaviour("B-TS-3")
@pytest.mark.parametrize("encode", [openai_tools, anthropic_tools])
@pytest.mark.parametrize("reveal", ["append", "result"])
async def test_the_tools_of_a_request_begin_with_those_of_the_one_before(
    encode: Any, reveal: Any
) -> None:
    again = call(FIND, query="the weather once more")
    steps = [[EMAIL, WEATHER], again, call(FIND, query="number7"), [again, EMAIL], "done"]
    chat, model = agent(*steps, reveal=reveal, always_include=["archive_3", "archive_1"])
    await chat.run("?")
    written = [encode(request) for request in model.requests]
    assert len(written) == 5
    assert all(b"search_tools" in one for one in written)
    for before, after in itertools.pairwise(written):
        assert after.startswith(before)
    assert (written[0] == written[-1]) == (reveal == "result")


@pytest.mark.behaviour("B-TS-5")
@pytest.mark.rule("R-ONION-12")
async def test_a_hundred_turns_at_once_with_different_tools_find_their_own_alone() -> None:
    ready = asyncio.Event()

    def mine(number: int) -> Tool:
        return Tool(lambda: f"ran {number}", name=f"report_{number}", description="Makes a report.")

    async def narrow(request: Any, call_next: Any) -> Any:
        number = int(request.turn.messages[0].text)
        one = [mine(number), *many_tools(6)]
        return await call_next(request.with_(tools=[*request.tools, *one]))

    async def answer(request: Any) -> Any:
        results = [one for m in request.messages for one in m.tool_results]
        if not results:
            if request.messages[0].text == "99":
                ready.set()
            await ready.wait()
            return call(FIND, query="report")
        number = request.messages[0].text
        return call(f"report_{number}") if len(results) == 1 else results[-1].text

    model = Scripted(answer, repeat=True)
    layers = [Layer("own tools", chat=narrow, traits=frozenset({"changes-tools"})), search()]
    chat = Agent(model, advisors=layers)
    turns = await asyncio.gather(*(chat.run(str(number)) for number in range(100)))
    assert [turn.text for turn in turns] == [f"ran {number}" for number in range(100)]
    found = [turn.context["tool_search"].found for turn in turns]
    assert found == [(f"report_{number}",) for number in range(100)]


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_that_was_not_found_does_not_run_and_the_model_is_told_to_search(
    way: Way,
) -> None:
    chat, model = agent(call("get_weather", city="Oslo"), call("no_such_tool"), "done")
    await way(chat, "?")
    hidden, invented = sent(model)[2], sent(model)[4]
    assert "There is no tool 'get_weather'. The tools are: search_tools." in hidden
    assert hidden.endswith("Find others with search_tools first.")
    assert "There is no tool 'no_such_tool'" in invented


@pytest.mark.rule("R-FAIL-3")
async def test_searches_that_find_nothing_or_ask_nothing_say_what_to_do() -> None:
    chat, model = agent(call(FIND, query="zebra"), call(FIND, query="  "), call(FIND), "done")
    result = await chat.run("?")
    nothing, empty, missing = sent(model)[2], sent(model)[4], sent(model)[6]
    assert "Nothing fits. Use other words" in nothing
    assert "The query is empty" in empty
    assert "query" in missing
    assert shown(model) == [FIND]
    assert result.context["tool_search"].found == ()


async def test_a_search_finds_no_more_than_its_limit_and_none_that_is_shown_anyway() -> None:
    chat, model = agent(
        call(FIND, query="number1 number2 number3 number4 number5"),
        "done",
        limit=2,
        always_include=["archive_1"],
    )
    await chat.run("?")
    assert shown(model) == [FIND, "archive_1", "archive_2", "archive_3"]


async def test_a_forced_tool_is_shown_and_stays() -> None:
    for reveal in ("append", "result"):
        chat, model = agent(call("archive_5"), "done", reveal=reveal)
        result = await chat.run("?", settings=Settings(tool_choice="archive_5"))
        assert result.text == "done"
        assert shown(model, 0)[-1] == shown(model, 1)[-1] == "archive_5"


async def test_the_caller_may_say_what_is_found_already() -> None:
    chat, model = agent("done")
    await chat.run("?", state={"found_tools": ["sendEmail", "no_such_tool"]})
    assert shown(model) == [FIND, "sendEmail"]
