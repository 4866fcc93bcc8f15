"""`ToolSearch` among other layers: its place, a resume, and arguments that cannot be."""

from typing import Any

import pytest

from bench.headline.caching import many_tools
from retinue import Agent, ConfigError, Layer, ToolContext, tool
from retinue.advisors import Memory, ToolSearch
from retinue.chains import OnionWarning
from retinue.models.scripted import Scripted, call
from tests.advisors.searching import FIND, WEATHER, agent, search, shown
from tests.advisors.talking import sent


@pytest.mark.rule("R-ONION-9")
def test_two_searches_in_one_agent_are_refused() -> None:
    with pytest.raises(ConfigError, match="the inner one would search only what is found"):
        Agent(Scripted(), advisors=[search(), search(search_name="other")])


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (Layer("more", chat=search().chat, traits=frozenset({"changes-tools"})), "as they were"),
        (Memory(), "may cut results"),
    ],
)
def test_layers_that_belong_outside_are_warned_about(inner: Any, why: str) -> None:
    with pytest.warns(OnionWarning, match=f"ToolSearch stands outside .*{why}"):
        Agent(Scripted(), advisors=[search(), inner])
    assert Agent(Scripted(), advisors=[inner, search()]).explain().warnings == ()


@pytest.mark.behaviour("B-LO-17")
async def test_what_inner_layers_add_runs_and_what_outer_ones_remove_is_not_found() -> None:
    @tool
    def extra() -> str:
        """Comes from inside."""
        return "extra ran"

    async def add(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(tools=(*request.tools, extra)))

    async def remove(request: Any, call_next: Any) -> Any:
        left = [one for one in request.tools if one.name != "get_weather"]
        return await call_next(request.with_(tools=left))

    model = Scripted([WEATHER, call("extra")], call("get_weather"), "done")
    layers = [Layer("remove", chat=remove), search(), Layer("add", chat=add)]
    await Agent(model, tools=many_tools(20), advisors=layers).run("?")
    assert shown(model) == [FIND, "extra"]
    assert "tool: extra ran" in sent(model)
    assert "There is no tool 'get_weather'" in sent(model)[-1]


@pytest.mark.rule("R-HITL-4")
@pytest.mark.parametrize("reveal", ["append", "result"])
async def test_a_resumed_turn_shows_what_it_had_found(reveal: Any) -> None:
    before, _ = agent(WEATHER, "one", reveal=reveal)
    first = await before.run("?")
    model = Scripted("two")

    async def resume(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(resumed=True, messages=first.messages[:-1]))

    layers = [Layer("resume", turn=resume), search(reveal="auto")]
    after = Agent(model, tools=many_tools(20), advisors=layers)
    result = await after.run("?", state=first.state)
    assert result.context["tool_search"].way == reveal
    assert result.context["tool_search"].found == ("get_weather",)


async def test_a_name_to_include_that_the_turn_does_not_have_is_warned_about() -> None:
    chat, _ = agent("done", always_include=["get_whether"])
    with pytest.warns(OnionWarning, match="'get_whether', and the turn has no such tool"):
        await chat.run("?")


async def test_an_agent_without_tools_is_sent_none() -> None:
    model = Scripted("done")
    result = await Agent(model, advisors=[search()]).run("?")
    assert shown(model) == []
    assert result.context == {}


async def test_the_search_of_a_tool_with_a_context_keeps_the_caller_s_context() -> None:
    @tool
    def remember(ctx: ToolContext) -> str:
        """Remembers the user."""
        return str(ctx.context["user"])

    model = Scripted(call(FIND, query="remember"), call("remember"), "done")
    chat = Agent(model, tools=[remember, *many_tools(5)], advisors=[search()])
    result = await chat.run("?", context={"user": "Ada"})
    assert "tool: Ada" in sent(model)
    assert result.context["user"] == "Ada"


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"index": "fuzzy"}, "index='fuzzy'"),
        ({"limit": 0}, "limit=0"),
        ({"limit": True}, "limit=True"),
        ({"threshold": -1}, "threshold=-1"),
        ({"mode": "never"}, "mode='never'"),
        ({"reveal": "all"}, "reveal='all'"),
        ({"keep": "ever"}, "keep='ever'"),
        ({"always_include": "get_weather"}, "always_include='get_weather'"),
        ({"always_include": [3]}, r"always_include=\[3\]"),
        ({"search_name": "call_tool"}, "search_name"),
        ({"search_name": "no name"}, "no name"),
        ({"count": 4}, "count=4"),
        ({"prices": 0.1}, "prices=0.1"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Agent(Scripted(), advisors=[ToolSearch(**options)])
