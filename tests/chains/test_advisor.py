"""What may stand in the list of advisors, and what is refused there, by name."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from retinue import Advisor, Agent, ConfigError, Layer, Slot, tool
from retinue.chains import hooks_of, name_of
from retinue.models.scripted import Scripted


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def not_async(request: Any, call_next: Any) -> Any:
    return call_next(request)


async def too_short(request: Any) -> Any:
    return request


async def async_stream(request: Any) -> None:
    return None


Loose: Any = Layer  # what the type checker would refuse is what is tested here


def build(*advisors: object) -> Agent:
    return Agent(Scripted(), advisors=advisors)


@pytest.mark.rule("R-ONION-1")
def test_any_object_with_a_hook_is_an_advisor() -> None:
    class Plain:
        async def chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request)

    agent = build(Plain())
    assert hooks_of(agent.advisors[0]) == ("chat",)
    assert name_of(agent.advisors[0]) == "Plain"


@pytest.mark.rule("R-ONION-1")
def test_a_layer_has_the_hooks_that_it_is_given() -> None:
    layer = Layer("mine", turn=passing, tool=passing, stream=lambda request: None, order=7)
    assert hooks_of(layer) == ("turn", "tool", "stream")
    assert (name_of(layer), layer.order, repr(layer)) == ("mine", 7, "Layer('mine')")


def test_an_advisor_is_called_what_it_says_or_after_its_class() -> None:
    class Silent(Advisor):
        async def chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request)

    class Named(Silent):
        name = "spoken"

    class Below(Named):
        pass

    assert [name_of(one()) for one in (Silent, Named, Below)] == ["Silent", "spoken", "Below"]


@pytest.mark.rule("R-ONION-9")
@pytest.mark.behaviour("B-ON-8")
@pytest.mark.parametrize(
    ("advisor", "message"),
    [
        (None, "Advisor 1 is None"),
        (Layer, "the class Layer, not an object"),
        (passing, r"is a function: say which hook it is, as in Layer\('function', chat=passing"),
        (object(), "none of the hooks turn, round, chat, tool, stream"),
        (Layer("empty"), r"\(empty\) has none of the hooks"),
        (Loose("sync", chat=not_async), r"\(sync\): `chat` must be `async def chat"),
        (Loose("short", tool=too_short), r"\(short\): `tool` must take \(request, call_next\)"),
        (Loose("flow", stream=async_stream), r"\(flow\): `stream` is a plain function"),
        (Loose("flow", stream=lambda: None), r"\(flow\): `stream` must take \(request\)"),
        (Loose("text", turn="hello"), r"\(text\): its `turn` is no function but str"),
        (Layer("odd", chat=passing, traits=frozenset({"memori"})), "unknown traits.*memori"),
    ],
)
def test_what_cannot_be_a_layer_is_refused_by_name(advisor: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(advisor)


@pytest.mark.behaviour("B-ON-8")
def test_the_message_says_which_place_in_the_list_it_is() -> None:
    with pytest.raises(ConfigError, match="Advisor 3 is None"):
        build(Layer("a", chat=passing), Layer("b", chat=passing), None)


@pytest.mark.rule("R-ONION-9")
@pytest.mark.behaviour("B-ON-8")
def test_the_same_object_twice_is_refused_and_two_of_a_kind_are_not() -> None:
    layer = Layer("twice", chat=passing)
    with pytest.raises(ConfigError, match="twice stands in the list twice"):
        build(layer, Layer("between", chat=passing), layer)
    build(Layer("twice", chat=passing), Layer("twice", chat=passing))


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class _Callable:
    async def __call__(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


async def _with_more(extra: str, request: Any, call_next: Any) -> Any:
    return await call_next(request)


@pytest.mark.rule("R-ONION-1")
@pytest.mark.parametrize(
    "hook",
    [passing, _decorated(passing), _Callable(), functools.partial(_with_more, "x")],
    ids=["function", "decorated", "callable object", "partial"],
)
async def test_whatever_can_be_called_and_awaited_is_a_hook(hook: Any) -> None:
    agent = Agent(Scripted("hi"), advisors=[Layer("any", chat=hook)])
    assert (await agent.run("?")).text == "hi"


@pytest.mark.rule("R-ONION-11")
async def test_tools_and_slots_come_with_their_advisor() -> None:
    @tool
    def note(text: str) -> str:
        """Notes it."""
        return text

    model = Scripted("done")
    layer = Layer("notebook", turn=passing, tools=[note], slots=[Slot("notes", default=())])
    agent = Agent(model, advisors=[layer])
    result = await agent.run("?")
    assert [one.name for one in agent.tools] == ["note"]
    assert [one.name for one in model.requests[0].tools] == ["note"]
    assert result.state == {"notes": ()}


@pytest.mark.rule("R-ONION-11")
def test_a_tool_that_two_advisors_bring_is_refused_naming_both() -> None:
    def look() -> str:
        """Looks."""
        return ""

    def bringing(name: str) -> Layer:
        return Layer(name, turn=passing, tools=[tool(look)])

    with pytest.raises(ConfigError, match="'look', one of left and one of right"):
        build(bringing("left"), bringing("right"))


@pytest.mark.rule("R-ONION-11")
def test_two_different_slots_of_one_name_are_refused() -> None:
    one = Layer("one", turn=passing, slots=[Slot("seen", default=0)])
    same = Layer("same", turn=passing, slots=[Slot("seen", default=0)])
    other = Layer("other", turn=passing, slots=[Slot("seen", default=())])
    build(one, same)
    with pytest.raises(ConfigError, match="Two different slots are called 'seen'"):
        build(one, other)
