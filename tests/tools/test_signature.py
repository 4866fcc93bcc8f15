"""What a tool reads from its function: annotations, docstring, and what kind of callable it is."""

import functools
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import Field

from retinue.errors import ConfigError
from retinue.tools import Tool, ToolContext, tool
from tests.tools import annotated_late

pytestmark = pytest.mark.rule("R-TOOL-1")


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return Tool(function).spec.parameters["properties"]


@pytest.mark.rule("R-TOOL-3")
@pytest.mark.parametrize(
    "annotation",
    [
        ToolContext,
        ToolContext | None,
        "ToolContext",
        "ToolContext | None",
        Annotated[ToolContext, 1],
    ],
    ids=["type", "optional", "text", "optional as text", "annotated"],
)
def test_the_context_is_hidden_whatever_its_name_is(annotation: Any) -> None:
    def f(x: int, where: Any = None) -> None:
        """Knows its turn."""

    f.__annotations__["where"] = annotation
    assert list(properties(f)) == ["x"]
    assert Tool(f).signature.context == ("where",)


@pytest.mark.behaviour("B-LO-19")
def test_annotations_may_be_text_and_name_what_comes_later() -> None:
    place = annotated_late.place
    assert list(place.spec.parameters["properties"]) == ["at"]
    assert place.signature.context == ("ctx",)
    assert place.bind({"at": {"x": 1}}) == {"at": annotated_late.Later(1)}


def test_a_local_type_is_found_where_the_function_uses_it() -> None:
    class Local(msgspec.Struct):
        x: int

    def f(at: "Local") -> Any:
        """Uses it."""
        return Local(at.x + 1)

    assert f(**Tool(f).bind({"at": {"x": 1}})) == Local(2)


def test_an_annotation_that_cannot_be_resolved_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'lost' annotates 'amount' as 'Decimal', which cannot"):
        annotated_late.lost.check()


@pytest.mark.parametrize("style", ["google", "numpy", "rest"])
def test_notes_on_parameters_come_from_the_docstring(style: str) -> None:
    def f(query: str, limit: int = 3, at: dict[str, int] | None = None) -> None: ...

    f.__doc__ = {
        "google": """Look things up.

        It takes a while.

        Args:
            query: what to look for,
                in a few words
            limit (int): how many
            at: from where

        Returns:
            nothing
        """,
        "numpy": """Look things up.

        It takes a while.

        Parameters
        ----------
        query : str
            what to look for,
            in a few words
        limit : int
            how many
        at : Place
            from where
        """,
        "rest": """Look things up.

        It takes a while.

        :param query: what to look for,
            in a few words
        :param limit: how many
        :param at: from where
        """,
    }[style]
    spec = Tool(f).spec
    assert spec.description == "Look things up.\n\nIt takes a while."
    told = spec.parameters["properties"]
    assert told["query"]["description"] == "what to look for, in a few words"
    assert told["limit"]["description"] == "how many"
    assert told["at"]["description"] == "from where"


def test_directives_beside_the_notes_do_not_hide_them() -> None:
    def f(query: str) -> None:
        """Look things up.

        Args:
            query: what to look for

        .. deprecated:: 1.0
            Slow.
        .. deprecated:: 1.1
            Slower.
        """

    spec = Tool(f).spec
    assert spec.description == "Look things up."
    assert spec.parameters["properties"]["query"]["description"] == "what to look for"


@pytest.mark.parametrize(
    "said", ["words", msgspec.Meta(description="words"), Field(description="words")]
)
def test_annotated_goes_before_the_docstring(said: Any) -> None:
    def f(x: int) -> None:
        """Does.

        Args:
            x: other words
        """

    f.__annotations__["x"] = Annotated[int, said]
    assert properties(f)["x"]["description"] == "words"


@pytest.mark.parametrize(
    "text", ["Adds: two numbers.", "Sum.\n\nThe result: a number.\n  - one\n  - two", "Returns it."]
)
def test_prose_stays_whole(text: str) -> None:
    def f(x: int) -> None: ...

    f.__doc__ = text
    assert Tool(f).spec.description == text


@pytest.mark.parametrize("text", ["Args:", ":x", "\n", "Args:\n", ":param", "Parameters\n---"])
def test_a_docstring_that_makes_no_sense_does_no_harm(text: str) -> None:
    def f(x: int) -> None: ...

    f.__doc__ = text
    assert properties(f) == {"x": {"type": "integer"}}


def test_partials_methods_and_objects_are_tools_too() -> None:
    class Client:
        """A client of a service."""

        def fetch(self, key: str) -> str:
            """Fetches a value."""
            return f"{self.__class__.__name__} {key}"

        async def __call__(self, key: str) -> str:
            return key

    def search(index: str, token: str, query: str) -> str:
        """Searches."""
        return f"{index} {token} {query}"

    bound = Tool(Client().fetch)
    assert (bound.name, bound.description) == ("fetch", "Fetches a value.")
    assert bound(**bound.bind({"key": "k"})) == "Client k"
    called = Tool(Client())
    assert (called.name, called.description) == ("Client", "A client of a service.")
    assert called.signature.is_async
    filled = Tool(functools.partial(search, "web", token="secret"))
    assert (filled.name, filled.description) == ("search", "Searches.")
    assert list(filled.spec.parameters["properties"]) == ["query"]
    assert filled(**filled.bind({"query": "q"})) == "web secret q"


def test_a_method_that_is_decorated_in_its_class_knows_its_object() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool(timeout=5, tags="shop")
        def price(self, item: str) -> str:
            """What it costs."""
            return f"{item} at {self.name}"

        @tool
        @staticmethod
        def hours(day: str) -> str:
            """When it is open."""
            return day

    mine, other = Shop("mine").price, Shop("other").price
    assert list(mine.spec.parameters["properties"]) == ["item"]
    assert (mine.timeout, mine.tags) == (5, ("shop",))
    assert mine("tea") == "tea at mine"
    assert other(**other.bind({"item": "tea"})) == "tea at other"
    assert Shop("x").hours("today") == Shop.hours("today") == "today"
