"""`@tool`, its options, and sets of tools."""

import asyncio
from typing import Any, ClassVar

import pytest

from retinue.errors import ConfigError
from retinue.tools import Retry, Tool, Toolset, tool


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(name="look_up", description="Finds.", timeout=5, retry=4, serial=True, tags="web")
async def find(query: str) -> str:
    """Not told."""
    return query


class Client:
    def method(self, x: int) -> int:
        """Does it."""
        return x


@pytest.mark.rule("R-TOOL-1")
def test_a_tool_is_called_like_its_function() -> None:
    assert add(1, b=2) == 3
    assert asyncio.run(find("x")) == "x"
    assert repr(add) == "Tool('add')"


@pytest.mark.rule("R-TOOL-1")
def test_options_are_kept_as_they_were_given() -> None:
    assert (add.name, add.description, add.timeout, add.retries) == (
        "add", "Adds two numbers.", None, None,
    )  # fmt: skip
    assert (find.name, find.description, find.timeout) == ("look_up", "Finds.", 5)
    assert (find.serial, find.return_direct, find.sensitive) == (True, False, False)
    assert (find.tags, find.retries) == (("web",), Retry(4))
    assert tool(retry=True)(lambda: None).retries == Retry()
    assert Tool(add.function, tags=["a", "b"]).tags == ("a", "b")


def test_a_changed_copy_leaves_the_tool_as_it_was() -> None:
    other = add.with_(name="plus", timeout=3)
    assert (other.name, other.timeout, other.spec.name) == ("plus", 3, "plus")
    assert (add.name, add.timeout, add.spec.name) == ("add", None, "add")
    assert other.spec.parameters == add.spec.parameters
    assert find.with_(timeout=1).description == "Finds."
    assert tool(find, name="again").name == "again"  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="The tool 'add' has no option 'timeuot'"):
        add.with_(timeuot=3)


def test_decorating_reads_nothing_yet() -> None:
    def broken(*args: int) -> None:
        """Cannot be a tool."""

    made = tool(broken)
    with pytest.raises(ConfigError, match="'broken' takes \\*args"):
        _ = made.spec


def local() -> None:
    """Is found at the top of this module, where it is no tool."""


@pytest.mark.rule("R-TOOL-1")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 0}, "timeout 0 is not a number of seconds above 0"),
        ({"timeout": -1.5}, "timeout -1.5"),
        ({"timeout": "5"}, "timeout '5'"),
        ({"timeout": True}, "timeout True"),
        ({"timeout": float("inf")}, "timeout inf"),
        ({"retry": 0}, "retry 0 is not True, False, a number of tries"),
        ({"retry": -1}, "retry -1"),
        ({"retry": 1.5}, "retry 1.5"),
        ({"retry": "yes"}, "retry 'yes'"),
        ({"isolation": "thread"}, "isolation 'thread' is not 'process'"),
        ({"isolation": "process", "function": lambda: 1, "name": "x"}, "and it is a lambda"),
        ({"isolation": "process", "function": Client().method}, "is not this function"),
        ({"name": ""}, "name '' is not 1 to 64 letters"),
        ({"name": "a b"}, "name 'a b'"),
        ({"name": "x" * 65}, "name 'xxx"),
        ({"name": "größe"}, "name 'größe'"),
        ({"name": "a\n"}, "name 'a\\\\n'"),
        ({"name": 5}, "name 5"),
        ({"function": lambda: 1}, "name '<lambda>'"),
        ({"function": 5, "name": "five"}, "function 5 is not callable"),
        ({"tags": [1]}, "tags 1 is not a word"),
        ({"tags": 5}, "tags 5 is not a word"),
        ({"tags": [""]}, "tags '' is not a word"),
        ({"serial": "no"}, "serial 'no' is not True or False"),
        ({"return_direct": 1}, "return_direct 1"),
        ({"sensitive": None}, "sensitive None"),
        ({"description": 5}, "description 5 is not text"),
        ({"parameters": "{}"}, "parameters '{}' is no JSON Schema"),
    ],
    ids=range(28),
)
def test_a_wrong_option_is_refused_with_the_tool_and_the_option(
    options: dict[str, Any], told: str
) -> None:
    wrong = Tool(**{"function": local, **options})
    with pytest.raises(ConfigError, match=f"The tool .* cannot be used: .*{told}"):
        wrong.check()


@pytest.mark.rule("R-TOOL-1")
def test_what_works_passes_the_check() -> None:
    for one in (add, find, find.with_(retry=Retry(1, 0, 0)), add.with_(isolation="process")):
        one.check()


def test_parameters_that_no_model_can_fill_are_refused() -> None:
    def positional(x: int, /) -> None:
        """Takes x by position."""

    def many(**kwargs: int) -> None:
        """Takes anything."""

    with pytest.raises(ConfigError, match="'positional' takes 'x' by position only"):
        Tool(positional).check()
    with pytest.raises(ConfigError, match=r"'many' takes \*\*kwargs.*give their JSON Schema"):
        Tool(many).check()


def test_a_function_inside_another_is_not_importable() -> None:
    @tool(isolation="process")
    def inner() -> None:
        """Stands inside a test."""

    with pytest.raises(ConfigError, match=r"'inner'.*it is defined inside another function"):
        inner.check()


@pytest.mark.rule("R-TOOL-10")
def test_waits_grow_with_jitter_up_to_the_cap_and_honour_what_was_asked() -> None:
    retry = Retry(attempts=4, base=1.0, cap=3.0)
    for attempt, most in ((1, 1.0), (2, 2.0), (3, 3.0)):
        waits = [retry.wait(attempt) for _ in range(50)]
        assert all(wait is not None and 0 <= wait <= most for wait in waits)
        assert len(set(waits)) > 1
    assert retry.wait(4) is None
    assert retry.wait(1, 2.5) == 2.5
    assert retry.wait(1, 60) is None


@pytest.mark.rule("R-TOOL-10")
@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attempts": True}, {"base": -1}, {"base": "1"}, {"cap": -0.5}]
)
def test_a_retry_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"Retry\(.*\) cannot be used; give 1 attempt or more"):
        Retry(**wrong)


@pytest.mark.rule("R-TOOL-1")
def test_tools_of_a_class_are_called_on_the_class_and_on_instances() -> None:
    class Shop:
        prices: ClassVar = {"tea": 3}

        @tool
        @classmethod
        def price(cls, article: str) -> int:
            """What it costs."""
            return cls.prices[article]

        @tool
        @staticmethod
        def total(prices: list[int]) -> int:
            """The sum."""
            return sum(prices)

    for shop in (Shop, Shop()):
        assert (shop.price("tea"), shop.total([1, 2])) == (3, 3)
        assert shop.price.spec.description == "What it costs."
        assert list(shop.price.spec.parameters["properties"]) == ["article"]
        shop.price.check()


def test_a_toolset_is_filtered_renamed_and_joined() -> None:
    tools = Toolset([add, find])
    web = tools.filtered(lambda one: "web" in one.tags).prefixed("net_")
    assert [one.name for one in web] == ["net_look_up"]
    assert web[0].spec.description == "Finds."
    joined = tools + web + [Tool(local)]
    assert repr(joined) == "Toolset(['add', 'look_up', 'net_look_up', 'local'])"
    assert joined[1:3] == Toolset([find, web[0]])
    assert add in joined
    assert len(tools) == 2
    assert hash(Toolset([add])) == hash(Toolset([add]))


def test_a_toolset_takes_functions_and_refuses_what_is_no_tool() -> None:
    assert Toolset([local])[0].name == "local"
    with pytest.raises(ConfigError, match="'search' is neither"):
        Toolset(["search"])  # type: ignore[list-item]


@pytest.mark.rule("R-TOOL-1")
def test_two_tools_of_one_name_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="Two tools are called 'add'"):
        _ = Toolset([add, find]) + Toolset([add.with_(timeout=1)])
