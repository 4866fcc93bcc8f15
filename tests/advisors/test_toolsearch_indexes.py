"""How `ToolSearch` finds tools: by words, expressions, meaning, or an index of one's own."""

import asyncio
import math
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, ConfigError, Tool
from retinue.advisors import ToolSearch
from retinue.advisors.toolsearch import KeywordIndex, RegexIndex, Semantic
from retinue.errors import MissingExtraError, RetrievalError
from retinue.models.scripted import Scripted, call
from retinue.tools import ToolSpec
from tests.advisors.talking import WAYS, Way, sent


def specs(**described: str) -> list[ToolSpec]:
    return [ToolSpec(name, text, {}) for name, text in described.items()]


SPECS = specs(
    getWeather="Gets the weather of a city, from the station.",
    send_email="Sends an e-mail to a person, from the office.",
    HTTPServerStatus="Tells how the machine is, from the log.",
    東京の天気="東京の天気予報を調べる from",
    查询订单="查询客户的订单状态 from",
    readUTF8File="Reads a text from the disk.",
    überweisung="Überweist Geld from",
)


@pytest.mark.behaviour("B-TS-4")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("weather", "getWeather"),
        ("getWeather", "getWeather"),
        ("get_weather", "getWeather"),
        ("GETWEATHER", "getWeather"),
        ("\uff37\uff45\uff41\uff54\uff48\uff45\uff52", "getWeather"),
        ("sendEmail", "send_email"),
        ("emails", "send_email"),
        ("http server", "HTTPServerStatus"),
        ("utf 8", "readUTF8File"),
        ("天気予報", "東京の天気"),
        ("東京の weather forecast", "東京の天気"),
        ("订单", "查询订单"),
        ("帮我查询一下订单状态", "查询订单"),
        ("订单 status", "查询订单"),
        ("ÜBERWEISUNG", "überweisung"),
        ("uberweisung", "überweisung"),
    ],
)
def test_a_query_in_any_script_or_spelling_finds_the_tool(query: str, name: str) -> None:
    assert name in KeywordIndex(SPECS).search(query, 2)


@pytest.mark.behaviour("B-TS-4")
def test_a_word_that_is_in_every_description_weighs_nothing() -> None:
    index = KeywordIndex(SPECS)
    assert index.search("from", 5) == []
    assert index.search("from the disk", 1) == ["readUTF8File"]
    assert index.search("from", 7) != []  # where all of them fit, they are better than none


def test_a_name_weighs_twice_a_description_and_a_rare_word_more_than_a_common_one() -> None:
    index = KeywordIndex(
        specs(
            reports="Money.", money="Reports.", other="Money, and more of it.", last="Else.", x="Y."
        )
    )
    assert index.search("money", 3) == ["money", "reports", "other"]
    # ln(6/4) * 2 in the name of one, ln(6/2) in the description of another
    assert 2 * math.log(6 / 4) < math.log(6 / 2)
    assert index.search("money else", 1) == ["last"]


def test_there_is_no_cut_off_below_the_best() -> None:
    index = KeywordIndex(specs(a="storm rain wind", b="storm", c="fog", d="ice", e="hail"))
    assert index.search("storm rain wind", 5) == ["a", "b"]


@given(st.lists(st.text(max_size=20), max_size=12), st.text(max_size=40), st.integers(1, 5))
def test_whatever_is_asked_the_names_are_tools_and_no_more_than_wanted(
    texts: list[str], query: str, limit: int
) -> None:
    tools = [ToolSpec(f"tool_{at}", text, {}) for at, text in enumerate(texts)]
    for index in (KeywordIndex(tools), RegexIndex(tools)):
        names = index.search(query, limit)
        assert len(names) <= limit
        assert len(set(names)) == len(names)
        assert set(names) <= {tool.name for tool in tools}


@pytest.mark.behaviour("B-TS-4")
def test_a_regular_expression_finds_and_a_bad_one_is_taken_literally() -> None:
    index = RegexIndex(specs(get_a="Reads (a.", put_b="Writes b.", get_c="Reads c and get."))
    assert index.search("^get_", 5) == ["get_a", "get_c"]
    assert index.search("WRITES|c$", 5) == ["get_c", "put_b"]
    assert index.search("(a", 5) == ["get_a"]
    assert index.search("(?=x)", 5) == []


def test_no_regular_expression_takes_long() -> None:
    index = RegexIndex(specs(a="a" * 5_000 + "!"))
    began = time.process_time()
    index.search("(a+)+$", 5)
    index.search("(((a{1,100}){1,100}){1,100}){1,100}", 5)
    assert time.process_time() - began < 1.0


@pytest.mark.rule("R-FAIL-3")
def test_without_its_package_the_regular_expression_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.advisors.toolsearch.indexes.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[re2\]'"):
        ToolSearch(index="regex")


def test_nothing_heavy_is_loaded_with_the_advisors() -> None:
    assert "numpy" not in sys.modules


# -- by meaning ---------------------------------------------------------------------------------

NEAR = {"weather": (1.0, 0.1), "rain": (0.9, 0.2), "money": (0.0, 1.0)}


def embedding(texts: list[str]) -> list[tuple[float, float]]:
    return [next((NEAR[word] for word in NEAR if word in text), (0.5, 0.5)) for text in texts]


def tools() -> list[Tool]:
    def ran(name: str) -> Tool:
        return Tool(lambda: f"{name} ran", name=name, description=f"About {name}.")

    return [ran("weather"), ran("money")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("awaited", [True, False])
async def test_an_embedder_finds_by_meaning(way: Way, awaited: bool) -> None:
    async def embed(texts: list[str]) -> Any:
        return embedding(texts)

    model = Scripted(call("search_tools", query="rain"), call("weather"), "done")
    semantic = Semantic(embed if awaited else embedding)
    layer = ToolSearch(index=semantic, mode="always", limit=1)
    await way(Agent(model, tools=tools(), advisors=[layer]), "?")
    assert sent(model)[-1] == "tool: weather ran"


async def test_tools_are_embedded_once_however_many_turns_search_them_at_once() -> None:
    asked: list[str] = []

    async def embed(texts: list[str]) -> Any:
        asked.extend(texts)
        await asyncio.sleep(0)
        return embedding(texts)

    layer = ToolSearch(index=Semantic(embed), mode="always")
    model = Scripted(
        lambda request: "done" if request.round == 2 else call("search_tools", query="rain"),
        repeat=True,
    )
    chat = [Agent(model, tools=tools(), advisors=[layer]) for _ in range(5)]  # made anew each
    await asyncio.gather(*(one.run("?") for one in chat))
    assert asked.count("weather: About weather.") == 1
    assert asked.count("rain") == 5


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    "given", [[], [(1.0, 2.0)], [(1.0, 2.0), (1.0,)]], ids=["none", "too few", "uneven"]
)
async def test_an_embedder_that_gives_something_else_is_told_so(given: Any) -> None:
    with pytest.raises(RetrievalError, match=r"must give one for each|use one embedder"):
        await Semantic(lambda texts: given)(SPECS[:2]).search("x", 1)


def test_an_embedder_that_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="give a function that takes a list of texts"):
        Semantic("model")  # pyright: ignore[reportArgumentType]


async def test_an_index_of_one_s_own_finds_and_what_it_invents_is_left_out() -> None:
    class Last:
        def __init__(self, specs: Any) -> None:
            self.names = [spec.name for spec in specs]

        async def search(self, query: str, limit: int) -> list[str]:
            return ["invented", self.names[-1], self.names[-1], *self.names]

    model = Scripted(call("search_tools", query="any"), "done")
    layer = ToolSearch(index=Last, mode="always", limit=1)
    await Agent(model, tools=tools(), advisors=[layer]).run("?")
    assert [one.name for one in model.requests[-1].tools] == ["search_tools", "money"]


async def test_an_index_that_fails_is_a_failed_call_and_not_the_end_of_the_turn() -> None:
    def broken(texts: list[str]) -> Any:
        raise ConnectionError("the embedding service is away")

    model = Scripted(call("search_tools", query="rain"), "done")
    layer = ToolSearch(index=Semantic(broken), mode="always")
    result = await Agent(model, tools=tools(), advisors=[layer]).run("?")
    assert result.text == "done"
    assert "the embedding service is away" in sent(model)[-1]


def test_a_query_over_a_thousand_tools_is_quick() -> None:
    many = [
        ToolSpec(f"get_thing_{at}", f"Gets thing number {at} of {at % 90}.", {})
        for at in range(1_000)
    ]
    index = KeywordIndex(many)
    took: list[float] = []
    for at in range(20):
        began = time.process_time()
        index.search(f"get the thing number {at} of all", 5)
        took.append(time.process_time() - began)
    assert min(took) < 0.01  # five times what is promised, for a busy machine
