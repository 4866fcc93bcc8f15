"""`retinue run`: one question, its answer, and the exit code."""

import json

import pytest

from tests.cli.conftest import Agents, Cli

BUTLER = """
@tool
def forecast(city: str, days: int) -> str:
    "The weather."
    return f"rain in {city}"

agent = Agent(
    Scripted(
        Say(text="Let me look.", thinking="Hm.", calls=[call("forecast", city="Oslo", days=3)]),
        Say(text="Take an umbrella.", usage=Usage(input=1200, output=7)),
    ),
    tools=[forecast],
)
"""

ECHO = "agent = Agent(Scripted(lambda r: ascii(r.messages[-1].text), repeat=True))"

COUNT = "agent = Agent(Scripted(lambda r: str(len(r.messages)), repeat=True))"

REFUSING = """
def ends(status):
    async def turn(request, call_next):
        return request.refuse("it is late", answer="Not now.").with_(status=status)
    return Agent(Scripted("x"), advisors=[Layer("doorman", turn=turn)])

blocked, limit = map(ends, ["blocked", "limit"])
failed = Agent(Scripted(ModelError("The wire is cut; mend it.")))
unplanned = Agent(Scripted(ValueError("what")))
"""


def test_the_answer_alone_goes_to_standard_output(cli: Cli, agents: Agents) -> None:
    result = cli("run", "Will it rain?", "--agent", f"{agents(BUTLER)}:agent")
    assert result.exit_code == 0
    assert result.stdout == "Take an umbrella.\n"
    assert 'ok: forecast(city="Oslo", days=3) → rain in Oslo' in result.stderr
    assert "1,200 tokens in · 7 out" in result.stderr
    assert "Hm." not in result.stderr


def test_thinking_is_shown_on_demand(cli: Cli, agents: Agents) -> None:
    result = cli("run", "Will it rain?", "--agent", f"{agents(BUTLER)}:agent", "--thinking")
    assert result.stdout == "Take an umbrella.\n"
    assert result.stderr.startswith("Hm.\n")


def test_thinking_steers_no_terminal(cli: Cli, agents: Agents) -> None:
    agent = agents('agent = Agent(Scripted(Say(text="ok", thinking="A \\x1b[2J\\x07bell")))')
    result = cli("run", "Hi", "--agent", f"{agent}:agent", "--thinking")
    assert result.stderr.startswith("A \ufffd[2J\ufffdbell\n")


def test_a_dash_reads_the_question_from_standard_input(cli: Cli, agents: Agents) -> None:
    result = cli("run", "-", "--agent", f"{agents(ECHO)}:agent", input="one\ntwo")
    assert result.stdout == "'one\\ntwo'\n"


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused(cli: Cli, agents: Agents, question: str) -> None:
    result = cli("run", question, "--agent", f"{agents(ECHO)}:agent")
    assert result.exit_code == 2
    assert "The input is empty" in result.stderr


@pytest.mark.rule("R-STREAM-1")
def test_json_is_one_event_a_line_and_nothing_else(cli: Cli, agents: Agents) -> None:
    result = cli("run", "Will it rain?", "--agent", f"{agents(BUTLER)}:agent", "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found[0]["type"] == "turn_started"
    assert found[-1]["type"] == "turn_ended"
    assert found[-1]["text"] == "Take an umbrella."
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert not result.stderr


@pytest.mark.rule("R-LOOP-4")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("blocked", "Blocked by doorman: it is late"),
        ("limit", "Stopped: it is late"),
    ],
)
def test_a_turn_that_was_stopped_says_why_and_exits_with_3(
    cli: Cli, agents: Agents, name: str, says: str
) -> None:
    result = cli("run", "Hello", "--agent", f"{agents(REFUSING)}:{name}")
    assert result.exit_code == 3
    assert result.stdout == "Not now.\n"
    assert says in result.stderr


@pytest.mark.rule("R-FAIL-3")
def test_a_failed_turn_is_one_sentence_and_exits_with_1(cli: Cli, agents: Agents) -> None:
    name = agents(REFUSING)
    result = cli("run", "Hello", "--agent", f"{name}:failed")
    assert result.exit_code == 1
    assert "retinue: The wire is cut; mend it.\n" in result.stderr
    assert "Traceback" not in result.stderr
    result = cli("run", "Hello", "--agent", f"{name}:unplanned")
    assert result.exit_code == 1
    assert "retinue: ValueError: what (--debug shows where)\n" in result.stderr


def test_debug_shows_the_traceback_and_keeps_the_exit_code(cli: Cli, agents: Agents) -> None:
    result = cli("run", "Hello", "--agent", f"{agents(REFUSING)}:unplanned", "--debug")
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr


def test_a_failed_turn_as_json_still_ends_with_its_last_event(cli: Cli, agents: Agents) -> None:
    result = cli("run", "Hello", "--agent", f"{agents(REFUSING)}:failed", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1])["status"] == "failed"


@pytest.mark.behaviour("B-ME-1")
def test_a_named_conversation_goes_on_and_an_unnamed_one_is_not_kept(
    cli: Cli, agents: Agents
) -> None:
    target = ("--agent", f"{agents(COUNT)}:agent")
    assert cli("run", "One", *target).stdout == "1\n"
    assert cli("run", "Two", *target).stdout == "1\n"
    assert cli("run", "One", *target, "--conversation", "c").stdout == "1\n"
    assert cli("run", "Two", *target, "--conversation", "c").stdout == "3\n"
    assert cli("run", "Two", *target, "--conversation", "c", "--database", "x.db").stdout == "1\n"


@pytest.mark.rule("R-MEM-9")
def test_a_conversation_of_another_owner_is_not_found(cli: Cli, agents: Agents) -> None:
    target = ("--agent", f"{agents(COUNT)}:agent", "--conversation", "c")
    assert cli("run", "One", *target, "--owner", "ann").exit_code == 0
    result = cli("run", "Two", *target, "--owner", "ben")
    assert result.exit_code == 1
    assert "There is no conversation 'c' for this owner" in result.stderr


def test_a_model_given_with_an_agent_takes_the_place_of_its_own(cli: Cli, agents: Agents) -> None:
    result = cli("run", "x", "--agent", f"{agents(BUTLER)}:agent", "--model", "openai:gpt-5-mini")
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr


def test_a_database_without_a_conversation_is_refused(cli: Cli, agents: Agents) -> None:
    result = cli("run", "x", "--agent", f"{agents(ECHO)}:agent", "--database", "x.db")
    assert result.exit_code == 2
    assert "name it with --conversation" in result.stderr


def test_the_memory_of_an_agent_is_not_replaced(cli: Cli, agents: Agents) -> None:
    own = 'agent = Agent(Scripted("x", repeat=True), advisors=[Memory(SQLite("own.db"))])'
    target = ("--agent", f"{agents(own)}:agent", "--conversation", "c")
    assert cli("run", "One", *target).exit_code == 0
    assert "One" in cli("conversations", "list", "--database", "own.db").stdout
    result = cli("run", "Two", *target, "--database", "x.db")
    assert result.exit_code == 2
    assert "keeps its conversations itself, so --database would change nothing" in result.stderr
