"""Lists of advisors put together, checked and shown."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Advisor, Agent, ConfigError, Layer, assemble, tool
from retinue.chains import OnionWarning
from retinue.models.scripted import Scripted


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def layer(name: str, order: int | None = None, *traits: str) -> Layer:
    return Layer(name, turn=passing, order=order, traits=frozenset(traits))


def names(advisors: list[Any]) -> list[str]:
    return [advisor.name for advisor in advisors]


@pytest.mark.rule("R-ONION-8")
def test_sources_are_sorted_by_order_the_earlier_source_first_among_equals() -> None:
    defaults = [layer("usage", 350), layer("memory", 200)]
    plugins = [layer("audit", 250), layer("second memory", 200)]
    assert names(assemble(defaults, plugins)) == ["memory", "second memory", "audit", "usage"]


@pytest.mark.rule("R-ONION-8")
def test_an_advisor_without_an_order_keeps_its_place_in_its_own_source() -> None:
    defaults = [layer("memory", 200), layer("usage", 350)]
    application = [layer("first"), layer("guard", 300), layer("behind guard")]
    assert names(assemble(defaults, application)) == [
        "memory", "first", "guard", "behind guard", "usage",
    ]  # fmt: skip


@pytest.mark.rule("R-ONION-8")
def test_a_source_without_any_order_comes_last_as_it_is() -> None:
    application = [layer("b"), layer("a")]
    assert names(assemble(application, [layer("archive", 900)])) == ["archive", "b", "a"]


@pytest.mark.rule("R-ONION-8")
@given(st.lists(st.lists(st.none() | st.integers(0, 600), max_size=5), max_size=4))
def test_assembling_loses_nothing_and_is_stable(sources: list[list[int | None]]) -> None:
    made = [[layer("x", order) for order in source] for source in sources]
    assembled: list[Any] = assemble(*made)
    assert sorted(map(id, assembled)) == sorted(id(one) for source in made for one in source)
    numbered = [one.order for one in assembled if one.order is not None]
    assert numbered == sorted(numbered)
    places = {id(one): at for at, one in enumerate(assembled)}
    for source in made:
        ordered = [one for one in source if one.order is not None]
        if ordered == sorted(ordered, key=lambda one: one.order or 0):
            assert [places[id(one)] for one in source] == sorted(places[id(one)] for one in source)


@pytest.mark.rule("R-ONION-8")
def test_a_list_that_is_given_directly_is_never_sorted() -> None:
    agent = Agent(Scripted(), advisors=[layer("usage", 350), layer("memory", 200)])
    assert agent.explain().chain("turn") == ("usage", "memory")


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("outer", "inner"),
    [("memory", "memory"), ("holds", "validates-stream"), ("forwards", "holds")],
)
def test_pairs_that_cannot_work_are_refused_naming_both(outer: str, inner: str) -> None:
    way_out = "Drop one" if outer == inner else "Change the order"
    with pytest.raises(ConfigError, match=rf"left outside right cannot work: .*\. {way_out}"):
        Agent(Scripted(), advisors=[layer("left", None, outer), layer("right", None, inner)])


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("one", "other"),
    [({"repeats"}, {"repeats"}), ({"retries", "swallows"}, {"retries", "swallows"})],
)
def test_where_another_order_would_not_help_nobody_is_told_to_swap(
    one: set[str], other: set[str]
) -> None:
    with pytest.warns(OnionWarning, match=r"left stands outside right: .*\. Drop one\."):
        Agent(Scripted(), advisors=[layer("left", None, *one), layer("right", None, *other)])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (layer("alone"), r"Layer\('alone'\) alone; write"),
        ([Layer("late", turn=passing, order=cast("Any", "last"))], "late has order='last'; give"),
    ],
)
def test_what_cannot_be_assembled_is_refused_by_name(source: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        assemble([layer("first", 1)], source)


@pytest.mark.rule("R-ONION-9")
def test_the_right_order_of_holding_and_forwarding_is_taken() -> None:
    Agent(Scripted(), advisors=[layer("hold", None, "holds"), layer("send", None, "forwards")])


@pytest.mark.rule("R-ONION-9")
@pytest.mark.behaviour("B-ON-6")
def test_a_retry_outside_a_layer_that_swallows_errors_is_warned_about_where_it_is_built() -> None:
    retry, swallow = layer("again", None, "retries"), layer("soften", None, "swallows")
    with pytest.warns(OnionWarning, match="again stands outside soften: .*Swap them") as caught:
        agent = Agent(Scripted(), advisors=[retry, swallow])
    assert caught[0].filename == __file__
    assert len(agent.explain().warnings) == 1
    with pytest.warns(OnionWarning) as caught:
        agent.with_(name="other")
    assert caught[0].filename == __file__


@pytest.mark.rule("R-ONION-9")
@pytest.mark.behaviour("B-ON-6")
def test_the_right_order_of_retry_and_swallow_is_not_warned_about() -> None:
    swallow, retry = layer("soften", None, "swallows"), layer("again", None, "retries")
    assert Agent(Scripted(), advisors=[swallow, retry]).explain().warnings == ()


class Audit(Advisor):
    """Watches rounds and tools."""

    order = 250

    async def round(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)

    tool = round


@tool
def weather(city: str) -> str:
    """The weather."""
    return city


@tool
def search(words: str) -> str:
    """The search."""
    return words


def an_agent() -> Agent:
    return Agent(
        Scripted(),
        name="support",
        tools=[weather, search],
        advisors=[
            Layer("usage", turn=passing, chat=passing),
            Audit(),
            Layer("redact", stream=lambda request: None),
            Layer("hold", stream=lambda request: None, traits=frozenset({"holds"})),
        ],
    )


@pytest.mark.rule("R-ONION-10")
def test_explain_gives_the_onion_as_data() -> None:
    told = an_agent().explain()
    assert (told.agent, told.model, told.tools) == (
        "support", "scripted:script", ("weather", "search"),
    )  # fmt: skip
    assert [one.name for one in told.layers] == ["usage", "Audit", "redact", "hold"]
    audit = told.layers[1]
    assert audit.hooks == ("round", "tool")
    assert audit.source == f"{__name__}:Audit"
    assert audit.order == 250
    assert told.layers[0].source == f"{__name__}:passing"
    assert told.layers[3].notes == ("holds the stream back: the first token comes late",)
    assert told.chain("chat") == ("usage",)
    assert told.warnings == ()


@pytest.mark.rule("R-ONION-10")
def test_explain_prints_the_onion_as_a_picture() -> None:
    picture = str(an_agent().explain())
    assert picture.splitlines()[:6] == [
        "support",
        "└─ turn             once per user request  usage",
        "   └─ round         once per round         Audit",
        "      ├─ chat       once per model call    usage → scripted:script",
        "      │  └─ stream  what the model sends   hold → redact → reader",
        "      └─ tool       once per tool run      Audit → weather, search",
    ]
    for line in ("order 250", f"{__name__}:Audit", "the first token comes late"):
        assert line in picture


@pytest.mark.rule("R-ONION-10")
def test_the_picture_of_an_agent_without_layers_is_whole_and_no_line_is_too_long() -> None:
    tools = [search.with_(name=f"search_number_{n}") for n in range(40)]
    lines = str(Agent(Scripted(), tools=tools).explain()).splitlines()
    assert lines[1].endswith("once per user request  ·")
    assert max(map(len, lines)) <= 100
    assert all(any(one.name in line for line in lines) for one in tools)
    assert str(Agent(Scripted()).explain()).endswith("no tools")


@pytest.mark.rule("R-ONION-10")
def test_the_picture_shows_the_warnings() -> None:
    with pytest.warns(OnionWarning):
        agent = Agent(
            Scripted(),
            advisors=[layer("again", None, "retries"), layer("soften", None, "swallows")],
        )
    assert str(agent.explain()).splitlines()[-1].startswith("! again stands outside soften")
