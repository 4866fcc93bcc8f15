"""What a model is told of a failure: by tool, by error, cleaned; all else stays as it was."""

import asyncio
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, ConfigError, Layer, Retry, ToolError, tool
from retinue.advisors import ToolErrors
from retinue.chains import OnionWarning
from retinue.chains.events import ToolFinished, ToolRetried
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.tools.schema import ArgumentsError
from tests.advisors.talking import WAYS, Way, by_parent, by_run
from tests.agent.reading import read


class Closed(TimeoutError):
    """Nearer to the matter than its base."""


def tool_that(fails: BaseException, **options: Any) -> Any:
    async def search(query: str = "") -> str:
        """Searches."""
        raise fails

    return tool(**options)(search)


async def told(
    rules: Any = None,
    error: BaseException | None = None,
    *,
    way: Way = by_run,
    asked: Any = None,
    tools: Any = (),
    **options: Any,
) -> str:
    """What the model is told of a call of `search`."""
    model = Scripted(asked or call("search"), "done")
    tools = tools or [tool_that(error or ValueError("wrong"), tags="web")]
    agent = Agent(model, tools=tools, advisors=[ToolErrors(rules, **options)])
    await way(agent, "Go.")
    (result,) = model.requests[-1].messages[-1].tool_results
    assert not result.ok
    return result.text


@pytest.mark.parametrize("way", [*WAYS, by_parent])
async def test_without_rules_it_is_the_name_of_the_error_and_its_message(way: Way) -> None:
    assert await told(way=way) == "ValueError: wrong"


@pytest.mark.parametrize(
    ("rules", "error", "expected"),
    [
        ({"search": "by name", TimeoutError: "x"}, TimeoutError(), "by name"),
        ({"tag:web": "by tag", "semantic": "x"}, ValueError(), "by tag"),
        ({"search": "by name", "tag:web": "x"}, ValueError(), "by name"),
        ({TimeoutError: "base", Closed: "nearest"}, Closed(), "nearest"),
        ({TimeoutError: "base", OSError: "x"}, Closed(), "base"),
        ({"transient": "later"}, TimeoutError(), "later"),
        ({"environment": "a person", "semantic": "x"}, PermissionError(), "a person"),
        ({"semantic": "yours"}, ValueError(), "yours"),
        ({"search": {TimeoutError: "both"}, TimeoutError: "x"}, Closed(), "both"),
        ({"search": {"transient": "both"}}, TimeoutError(), "both"),
        ({"search": {"transient": "both"}, ValueError: "else"}, ValueError(), "else"),
        ({"tag:web": {ValueError: "both"}}, ValueError(), "both"),
        ({"other": "x", "tag:other": "x", KeyError: "x"}, ValueError("w"), "ValueError: w"),
        ({LookupError: "in it"}, ExceptionGroup("g", [ExceptionGroup("h", [KeyError()])]), "in it"),
    ],
)
async def test_the_first_rule_that_fits_words_it(rules: Any, error: Any, expected: str) -> None:
    assert await told(rules, error) == expected


async def test_a_tool_itself_may_be_the_key_also_where_its_name_is_a_failure_class() -> None:
    async def transient() -> str:
        """Fails."""
        raise ValueError("x")

    one = tool(transient)
    assert await told({one: "mine"}, asked=call("transient"), tools=[one]) == "mine"


async def test_a_function_sees_request_and_response_and_may_leave_it_to_the_next_rule() -> None:
    def by_name(request: Any, response: Any) -> str | None:
        return f"{request.call.name}: {response.error}" if str(response.error) == "mine" else None

    async def later(request: Any, response: Any) -> str:
        await asyncio.sleep(0)
        return f"later {response.failure}"

    rules = {"search": by_name, ValueError: later}
    assert await told(rules, ValueError("mine")) == "search: mine"
    assert await told(rules, ValueError("other")) == "later semantic"
    assert await told({"search": by_name}, default=later) == "later semantic"
    assert await told({}, default="No.") == "No."


@pytest.mark.parametrize(
    "wrong",
    [lambda q, r: 1 / 0, lambda q, r: 7, lambda q, r: " "],
    ids=["raises", "a number", "blank"],
)
async def test_a_wording_that_fails_is_logged_and_passed_over(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await told({"search": wrong, ValueError: "next"}) == "next"
    assert await told({"search": wrong}) == "ValueError: wrong"
    assert "A wording of ToolErrors for 'search' failed." in caplog.text


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("rules", [None, {"search": lambda q, r: f"It said: {r.error}"}])
async def test_secrets_are_masked_and_texts_are_cut(rules: Any) -> None:
    text = await told(rules, ValueError("cannot use token=abcdefgh " + "x" * 5000), longest=40)
    assert "abcdefgh" not in text
    assert "token=***" in text
    assert len(text) == 40 + len("… [cut]")


async def test_secrets_of_another_shape_are_taken_out_by_a_function_of_your_own() -> None:
    hide = lambda text: text.replace("wrong", "?")  # noqa: E731
    assert await told(masks=hide) == "ValueError: ?"


def trace(error: Exception) -> str:
    try:
        raise error
    except Exception:
        return traceback.format_exc()


@pytest.mark.parametrize("error", [ValueError("the end"), ExceptionGroup("g", [KeyError("x")])])
async def test_no_traceback_is_told(error: Exception) -> None:
    text = await told(None, RuntimeError(trace(error)))
    assert "Traceback" not in text
    assert "test_toolerrors.py" not in text
    assert text.startswith("RuntimeError")
    if isinstance(error, ValueError):
        assert text == "RuntimeError: ValueError: the end"


async def test_a_traceback_alone_leaves_the_name_of_the_error() -> None:
    def only(request: Any, response: Any) -> str:
        return "Traceback (most recent call last):\n  File x, line 1\n"

    assert await told({"search": only}) == "ValueError"


@given(text=st.text(), longest=st.integers(1, 50))
def test_whatever_an_error_says_what_is_told_is_short(text: str, longest: int) -> None:
    said = asyncio.run(told(None, ValueError(text), longest=longest))
    assert 0 < len(said) <= longest + len("… [cut]")


@pytest.mark.behaviour("B-LO-5", "B-LO-6")
@pytest.mark.parametrize("rules", [{}, {"semantic": "x", "search": "x", Exception: "x"}])
async def test_a_call_that_never_ran_keeps_the_words_that_help_the_model(rules: Any) -> None:
    async def search(query: str) -> str:
        """Searches."""
        return query

    tools = [tool(search)]
    assert "query" in await told(rules, asked=call("search"), tools=tools)
    assert "The tools are: search" in await told(rules, asked=call("find"), tools=tools)
    own = {**rules, ArgumentsError: "Read the schema."}
    assert await told(own, asked=call("search"), tools=tools) == "Read the schema."


@pytest.mark.behaviour("B-LO-5", "B-LO-6")
async def test_what_helps_the_model_is_neither_cut_nor_taken_for_a_secret() -> None:
    async def login(password: str) -> str:
        """Logs in."""
        return password

    tools = [tool(login).with_(name=f"login_at_the_office_number_{n}") for n in range(50)]
    for asked in (call("invented"), call(tools[0].name, password=7)):
        plain = Scripted(asked, "done")
        await Agent(plain, tools=tools).run("Go.")
        right = plain.requests[-1].messages[-1].tool_results[0].text
        assert tools[-1].name in right or "'password': " in right
        assert await told(asked=asked, tools=tools) == right


async def test_what_a_layer_refused_keeps_its_words_and_a_success_its_result() -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        if request.arguments:
            return request.refuse("Not allowed: token=abcdefgh")
        return await call_next(request)

    async def search(query: str = "") -> str:
        """Searches."""
        return "token=abcdefgh"

    asked = [call("search", query="x"), call("search")]
    model = Scripted(asked, "done")
    advisors = [ToolErrors({"search": "x", "semantic": "x"}), Layer("refuse", tool=refuse)]
    await Agent(model, tools=[search], advisors=advisors).run("Go.")
    results = [m.tool_results[0].text for m in model.requests[-1].messages[-2:]]
    assert results == ["Not allowed: token=abcdefgh", "token=abcdefgh"]


@pytest.mark.rule("R-TOOL-10")
async def test_the_class_the_retries_and_the_events_stay_right() -> None:
    tries: list[int] = []

    @tool(retry=Retry(3, base=0.0))
    async def search() -> str:
        """Searches."""
        tries.append(1)
        raise ToolError("the line, token=abcdefgh", failure="transient")

    agent = Agent(
        Scripted(call("search"), "done"),
        tools=[search],
        advisors=[ToolErrors({"transient": "It did not answer; ask for less."})],
    )
    events = await read(agent.stream("Go."))
    assert len(tries) == 3
    texts = [e.error for e in events if isinstance(e, ToolRetried)]
    texts += [e.text for e in events if isinstance(e, ToolFinished)]
    assert texts == ["It did not answer; ask for less."] * 3
    assert "abcdefgh" not in repr(events)


async def test_a_layer_outside_sees_the_failure_itself() -> None:
    seen: list[Any] = []

    async def look(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        seen.append((response.failure, response.error, response.retry_after))
        return response

    error = ToolError("x", failure="environment", retry_after=3.0)
    advisors = [Layer("look", tool=look), ToolErrors({"environment": "Wait."})]
    await Agent(Scripted(call("search"), ""), tools=[tool_that(error)], advisors=advisors).run(
        "Go."
    )
    assert seen == [("environment", error, 3.0)]


def test_two_of_them_are_warned_about() -> None:
    with pytest.warns(OnionWarning, match="words anew"):
        Agent(Scripted(), advisors=[ToolErrors(), ToolErrors()])


@pytest.mark.parametrize(
    ("rules", "options", "match"),
    [
        (["x"], {}, "give a mapping"),
        ({7: "x"}, {}, "7 is no key for words"),
        ({int: "x"}, {}, "is no key for words"),
        ({"": "x"}, {}, "'' is no key"),
        ({"search": 7}, {}, "'search' has 7 for words"),
        ({"search": ""}, {}, "'search' has '' for words"),
        ({"search": {"other": "x"}}, {}, "'other' is no key for words"),
        ({ValueError: {KeyError: "x"}}, {}, "for words; give a text"),
        ({"search": lambda error: "x"}, {}, "must take the request and"),
        ({}, {"default": 7}, "'default' has 7"),
        ({}, {"longest": 0}, "longest=0"),
        ({}, {"masks": "x"}, "masks='x'"),
    ],
)
def test_what_words_nothing_is_refused_by_name(rules: Any, options: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        ToolErrors(rules, **options)
