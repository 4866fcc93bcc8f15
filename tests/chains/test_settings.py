"""Settings over settings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Settings
from retinue.errors import ConfigError

SETTINGS = st.builds(
    Settings,
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 9),
    stop=st.sampled_from([(), ("a",), ("b", "c")]),
    tool_choice=st.sampled_from([None, "none", "required"]),
    extra=st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=2),
    headers=st.dictionaries(st.sampled_from("xyz"), st.text(), max_size=2),
)


def test_what_is_said_wins_and_the_rest_stays() -> None:
    base = Settings(temperature=0.5, max_tokens=100, stop=("END",))
    assert Settings(temperature=0.0).over(base) == Settings(
        temperature=0.0, max_tokens=100, stop=("END",)
    )


def test_extra_fields_and_headers_are_merged_key_by_key() -> None:
    base = Settings(extra={"a": 1, "b": 1}, headers={"x": "1"})
    over = Settings(extra={"b": 2}, headers={"y": "2"}).over(base)
    assert over.extra == {"a": 1, "b": 2}
    assert over.headers == {"x": "1", "y": "2"}
    assert base.extra == {"a": 1, "b": 1}


@given(SETTINGS)
def test_silence_changes_nothing(some: Settings) -> None:
    assert Settings().over(some) == some
    assert some.over(Settings()) == some
    assert some.over(some) == some


@given(SETTINGS, SETTINGS, SETTINGS)
def test_it_does_not_matter_how_three_are_put_together(
    a: Settings, b: Settings, c: Settings
) -> None:
    assert a.over(b).over(c) == a.over(b.over(c))


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"), ("temperature", float("nan")), ("top_p", float("inf")),
        ("max_tokens", 0), ("max_tokens", "100"), ("max_tokens", True), ("seed", 1.5),
        ("stop", "END"), ("stop", ("END", "")), ("stop", (1,)), ("tool_choice", True),
        ("effort", 3), ("parallel_tool_calls", "no"), ("timeout", 0), ("timeout", -1),
        ("timeout", "5"), ("timeout", float("nan")), ("extra", [("a", 1)]), ("extra", {1: "a"}),
        ("headers", "X-A: 1"), ("headers", {"X-A": 1}), ("headers", {"X-A": None}),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_one_is_refused_at_once(name: str, value: Any) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=rf"Settings\({name}=.*; give [^;]+\.$"):
        Settings(**given)


@pytest.mark.rule("R-FAIL-3")
def test_a_header_that_is_refused_is_not_shown() -> None:
    given: dict[str, Any] = {"X-Api-Key": b"hush-hush"}
    with pytest.raises(ConfigError) as caught:
        Settings(headers=given)
    assert "hush" not in str(caught.value)


@pytest.mark.rule("R-FAIL-3")
def test_it_shows_what_it_says_but_for_the_values_of_headers() -> None:
    some = Settings(temperature=0.5, stop=("END",), headers={"Authorization": "Bearer hush"})
    assert (
        repr(some) == "Settings(temperature=0.5, stop=('END',), headers={'Authorization': '...'})"
    )
    assert repr(Settings()) == "Settings()"


def test_a_misspelled_setting_is_refused() -> None:
    misspelled: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="temprature"):
        Settings(**misspelled)
