"""Answers in words: what a line, or the options of a command, say of the calls that wait."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Approve, ConfigError, Proceed, Reject, Reply, Retry, tool
from retinue.cli.answers import (
    Given,
    check_edited,
    choices,
    pending_lines,
    read_answer,
    resume_command,
    waiting_lines,
)
from retinue.tools import Answer, PendingCall
from retinue.tools.asking import TAKES, Kind

KINDS: list[Kind] = list(TAKES)


def waiting(kind: Kind = "approval", id: str = "c1", **arguments: Any) -> PendingCall:
    return PendingCall(id=id, tool="pay", kind=kind, why="Really?", arguments=arguments)


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize(
    ("kind", "line", "answer"),
    [
        ("approval", "approve", Approve()),
        ("approval", "  a ", Approve()),
        ("approval", 'approve {"amount": 3}', Approve({"amount": 3})),
        ("approval", "reject too much", Reject("too much")),
        ("approval", "rej", Reject("A person rejected this call.")),
        ("approval", "reply paid by hand", Reply("paid by hand")),
        ("approval", "later", None),
        ("question", "reject", Reply("reject")),
        ("question", "/reject none of your business", Reject("none of your business")),
        ("question", "/later", None),
        ("external", "result 42 mm", Reply("42 mm")),
        ("external", "cancel", Reject("This call was not run: it was cancelled.")),
        ("environment", "retry", Retry()),
        ("environment", "p", Proceed()),
    ],
)
def test_a_line_is_an_answer(kind: Kind, line: str, answer: Answer | None) -> None:
    assert read_answer(waiting(kind), line) == answer


@pytest.mark.parametrize(
    ("kind", "line", "says"),
    [
        ("approval", "re", "'re' is no answer; say approve, approve JSON, reject REASON"),
        ("approval", "", "'' is no answer"),
        ("approval", "yes", "'yes' is no answer"),
        ("approval", "approve [1]", "a JSON object"),
        ("approval", "approve {", "no JSON"),
        ("approval", "reply", "A reply says something"),
        ("approval", "retry", "'retry' is no answer"),
        ("question", "", "A reply says something"),
        ("question", "/quit", "'/quit' is no answer; say the answer, /reject REASON or /later"),
        ("environment", "retry now", "Nothing comes after retry; 'now' was given"),
        ("environment", "approve", "say retry, proceed or later"),
    ],
)
def test_a_line_that_is_no_answer_says_what_is(kind: Kind, line: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_answer(waiting(kind), line)
    assert says in str(refused.value)


@given(st.sampled_from(KINDS), st.text(max_size=40))
def test_any_line_is_an_answer_that_the_kind_takes_or_is_refused(kind: Kind, line: str) -> None:
    try:
        answer = read_answer(waiting(kind), line)
    except ConfigError:
        return
    assert answer is None or isinstance(answer, TAKES[kind])


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), max_size=4))
def test_edited_arguments_are_taken_as_they_are_written(arguments: dict[str, Any]) -> None:
    line = f"approve {msgspec.json.encode(arguments).decode()}"
    answer = read_answer(waiting(), line)
    assert isinstance(answer, Approve)
    assert answer.args == arguments


@pytest.mark.behaviour("B-PA-4")
def test_edited_arguments_that_the_tool_would_refuse_are_refused_at_once() -> None:
    @tool
    def pay(amount: int) -> str:
        """Pays."""
        return str(amount)

    check_edited(waiting(), Approve({"amount": 1}), [pay])
    check_edited(waiting(), Approve({"amount": "much"}), [])  # it is checked when it runs
    # A sub-agent may have another tool of the same name.
    check_edited(waiting(id="c0/c1"), Approve({"amount": "much"}), [pay])
    with pytest.raises(ConfigError, match="'amount': expected `int`"):
        check_edited(waiting(), Approve({"amount": "much"}), [pay])


def test_choices_name_editing_where_there_is_a_terminal() -> None:
    assert choices(waiting(), edits=True) == "approve, edit, reject REASON, reply TEXT or later"
    assert choices(waiting("external")) == "result TEXT, cancel REASON or later"


def test_a_waiting_call_steers_no_terminal_and_names_a_sub_agent() -> None:
    call = waiting(id="a/b", note="\x9b2J\x1b[2J")
    lines = waiting_lines(call)
    assert lines[0] == "pay of a sub-agent waits (approval): Really?"
    assert not any("\x1b" in line or "\x9b" in line for line in lines)
    question = waiting("question", question="Which\ncity?")
    assert waiting_lines(question)[1:] == ["    Which", "    city?"]


def test_pending_calls_stand_with_their_ids_and_the_options_that_answer_them() -> None:
    lines = pending_lines([waiting(), waiting("environment", "c2")])
    assert lines[0] == "The turn waits for 2 answers:"
    assert "c1" in lines
    assert "    --retry ID or --proceed ID" in lines


@pytest.mark.rule("R-HITL-3")
def test_options_answer_calls_by_their_ids() -> None:
    calls = [waiting(id=name) for name in ("a", "b", "c=", "d", "e")]
    given = Given(
        approve=["a", "b"],
        args=['{"amount": 1}', '{"amount": 2}'],
        reject=["c==no=way"],
        reply=["d=42"],
        every=True,
    )
    assert given.any
    assert given.answers(calls) == {
        "a": Approve({"amount": 1}),
        "b": Approve({"amount": 2}),
        "c=": Reject("no=way"),
        "d": Reply("42"),
        "e": Approve(),
    }
    assert not Given().any
    assert Given(retry=["x"], proceed=["y"]).answers([]) == {"x": Retry(), "y": Proceed()}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Given(approve=["a"], retry=["a"]), "'a' is answered twice"),
        (Given(approve=["a"], args=["{}", "{}"]), "--args stands 2 times and --approve 1 times"),
        (Given(args=["{}"]), "give each --approve its --args"),
        (Given(approve=["a"], args=["[]"]), "a JSON object"),
        (Given(reply=["a"]), "A reply says something"),
        (Given(every=True), "none waits for approval"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(given: Given, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        given.answers([waiting("environment", "a")])
    assert says in str(refused.value)


def test_the_command_that_goes_on_can_be_typed_into_a_shell() -> None:
    command = resume_command("a b", target="m:agent", model=None, database=None, owner="o'n")
    assert command == """retinue resume 'a b' m:agent --owner 'o'"'"'n'"""
