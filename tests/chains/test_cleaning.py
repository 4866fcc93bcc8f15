"""The JSON in an answer: what is taken off, what is mended, and what is left to be asked again."""

import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains.cleaning import json_of, mended

OBJECT = frozenset({"object"})
LIST = frozenset({"array"})


@pytest.mark.behaviour("B-VA-3")
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('```\n{"a": 1}\n```', '{"a": 1}'),
        ('```JSON {"a": 1}```', '{"a": 1}'),
        ('<think>a {"b": 2}?</think>\n{"a": 1}', '{"a": 1}'),
        ('<thinking>x</thinking><think>y</think> {"a": 1}', '{"a": 1}'),
        ('so {"b": 2}.</think>{"a": 1}', '{"a": 1}'),
        ('Sure, here it is: {"a": 1}. Anything else?', '{"a": 1}'),
        ('\ufeff {"a": 1}', '{"a": 1}'),
        ('{"a": 1,}', '{"a": 1}'),
        ('{"a": [1, 2, ], }', '{"a": [1, 2 ] }'),
        ('{"a": "one\ntwo\t"}', '{"a": "one\\ntwo\\t"}'),
        ("null", "null"),
        ("```json\nnull\n```", "null"),
        ("<think>no</think> null", "null"),
        ("[1, 2]", "[1, 2]"),
        ("-4.5e3", "-4.5e3"),
        ('"yes"', '"yes"'),
        ("```42```", "42"),
        ("```json 42```", "42"),
        ("```yaml \n42\n```", "42"),
    ],
)
def test_what_stands_round_the_json_is_taken_off(answer: str, found: str) -> None:
    assert json_of(answer) == found


@pytest.mark.parametrize(
    ("answer", "kinds", "found"),
    [
        ('First {"a": 1}, no: {"a": 2}', OBJECT, '{"a": 2}'),
        ('{"a": 1} (see [1] and [2])', OBJECT, '{"a": 1}'),
        ('[1] for {"a": 1}', LIST, "[1]"),
        ('[{"a": 1}]', OBJECT, '[{"a": 1}]'),
        ('```json\n{"a": 1}\n``` or {"a": 2}', OBJECT, '{"a": 1}'),
        ('a [note], a {thing} and {"a": 1}', OBJECT, '{"a": 1}'),
        ('Put it in {"a": "</think>"}.', OBJECT, '{"a": "</think>"}'),
        ('```json\n{"a": "```py\\nx```"}\n```', OBJECT, '{"a": "```py\\nx```"}'),
        ('{"a": "\\"} not the end"}', OBJECT, '{"a": "\\"} not the end"}'),
    ],
)
def test_of_several_values_the_last_of_the_wanted_kind_counts(
    answer: str, kinds: frozenset[str], found: str
) -> None:
    assert json_of(answer, kinds) == found


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": {"a": 1}',  # cut short: what it holds is no answer
        '{"a": {"a": 1}, b}',
        "{'a': 1}",
        '{"a": 1} {"a": 2',
        '{"a": "x}',
        '{"a": True}',
        '{"a": 1 "b": 2}',
    ],
)
def test_a_broken_value_stays_broken_and_no_part_of_it_is_taken(answer: str) -> None:
    found = json_of(answer)
    assert found is not None
    with pytest.raises(ValueError):  # noqa: PT011
        json.loads(found)


@pytest.mark.parametrize(
    "answer",
    ["", "   ", "I cannot.", "It is 42.", "the null", '<think>{"a": 1}', "```json\n```", "a [b] c"],
)
def test_where_there_is_no_value_there_is_none(answer: str) -> None:
    assert json_of(answer) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
ANSWERS = st.dictionaries(st.text(), VALUES) | st.lists(VALUES)
PROSE = st.text(st.characters(exclude_characters='{}[]`"\\<>', codec="utf-8"))


WRAPPINGS = {
    "prose": "{0}{1}{2}",
    "a fence": "{0}\n```json\n{1}\n```\n{2}",
    "reasoning": "<think>{0}{1}</think>{1}",
    "reasoning without its opening tag": "{0}</think>{1}{2}",
}


@pytest.mark.behaviour("B-VA-3")
@given(ANSWERS, PROSE, PROSE, st.sampled_from(list(WRAPPINGS)))
def test_any_value_is_found_in_any_wrapping(value: Any, before: str, after: str, how: str) -> None:
    answer = WRAPPINGS[how].format(before, json.dumps(value), after)
    found = json_of(answer, OBJECT if isinstance(value, dict) else LIST)
    assert found is not None
    assert json.loads(found) == value


@given(VALUES)
def test_json_that_is_right_is_not_mended(value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    assert json.loads(mended(text)) == value


@given(st.text('{}[]",:\\ \n1a`<>/think', max_size=60))
def test_no_text_is_too_odd_to_be_looked_through(text: str) -> None:
    found = json_of(text)
    assert found is None or isinstance(found, str)


@pytest.mark.parametrize(
    "text",
    [
        *(unit * 20_000 for unit in ("[", '["\\', '{"a":', '"[', "[1,", '[ "', "[[1],", '{"\\"')),
        *(unit * 20_000 for unit in ("<think>", "<think></think>", "</think>[]")),
        *(f"```{blank * 20_000}x" for blank in (" ", "\n", "\t")),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    began = perf_counter()
    json_of(text)
    assert perf_counter() - began < 2.0  # some 0.02 s; by the square of the length it would be 20
