"""`retinue conversations list`, `show` and `rm`."""

import json
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from retinue.stores import SQLite
from tests.cli.conftest import Agents, Cli

TALK = """
@tool
def look(at: str) -> str:
    "Looks."
    return "fog"

def answer(request):
    if request.messages[-1].role == "tool":
        return "There is \\x1b[31mfog."
    return call("look", at="Oslo")

agent = Agent(Scripted(answer, repeat=True), tools=[look])
"""


@pytest.fixture
def talked(cli: Cli, agents: Agents) -> Cli:
    """Two conversations of nobody's, and one of Ann's."""
    target = ("--agent", f"{agents(TALK)}:agent")
    for name, owner in (("first", ()), ("second", ()), ("hers", ("--owner", "ann"))):
        done = cli("run", f"What is in {name}?", *target, "--conversation", name, *owner)
        assert done.exit_code == 0
    return cli


def ids(listed: str) -> list[str]:
    return [line.split("\t")[0] for line in listed.splitlines()]


def test_conversations_are_listed_the_latest_first(talked: Cli) -> None:
    listed = talked("conversations", "list").stdout
    assert ids(listed) == ["second", "first"]
    assert listed.splitlines()[0].endswith("\t4\tWhat is in second?")
    assert ids(talked("conversations", "list", "--limit", "1").stdout) == ["second"]


@pytest.mark.rule("R-MEM-9")
def test_an_owner_sees_their_own_conversations_and_the_operator_all(talked: Cli) -> None:
    assert ids(talked("conversations", "list", "--owner", "ann").stdout) == ["hers"]
    listed = talked("conversations", "list", "--everyone").stdout
    assert ids(listed) == ["hers", "second", "first"]
    assert "\tann\t" in listed
    assert talked("conversations", "show", "hers").exit_code == 1
    assert talked("conversations", "show", "nobody's").exit_code == 1
    assert talked("conversations", "rm", "hers").exit_code == 1
    assert talked("conversations", "list", "--everyone", "--owner", "ann").exit_code == 2


def test_a_list_as_json_is_one_object_a_line(talked: Cli) -> None:
    lines = talked("conversations", "list", "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["second", "first"]
    assert json.loads(lines[0])["messages"] == 4


def test_a_conversation_is_shown_with_its_calls_and_steers_no_terminal(talked: Cli) -> None:
    shown = talked("conversations", "show", "first").stdout
    assert shown.splitlines() == [
        "user: What is in first?",
        'assistant: calls look with {"at":"Oslo"}',
        "tool: look says: fog",
        "assistant: There is \ufffd[31mfog.",
    ]


def test_a_shown_conversation_as_json_holds_whole_messages(talked: Cli) -> None:
    lines = talked("conversations", "show", "first", "--json").stdout.splitlines()
    roles = [json.loads(line)["message"]["role"] for line in lines]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_removed_conversations_are_gone_and_the_others_stay(talked: Cli) -> None:
    assert talked("conversations", "rm", "first", "second", "--yes").exit_code == 0
    assert ids(talked("conversations", "list", "--everyone").stdout) == ["hers"]
    result = talked("conversations", "rm", "first")
    assert result.exit_code == 1
    assert "There is no conversation 'first'" in result.stderr


def test_nothing_is_removed_where_one_of_them_is_not_there(talked: Cli) -> None:
    result = talked("conversations", "rm", "first", "third", "--yes")
    assert result.exit_code == 1
    assert "There is no conversation 'third'" in result.stderr
    assert ids(talked("conversations", "list").stdout) == ["second", "first"]


def test_a_removal_that_nobody_can_confirm_is_refused_and_says_what_it_would_remove(
    talked: Cli,
) -> None:
    result = talked("conversations", "rm", "first", "second", input="y\n")
    assert result.exit_code == 2
    assert "This removes conversations 'first', 'second' with 8 messages." in result.stderr
    assert "--yes" in result.stderr
    assert ids(talked("conversations", "list").stdout) == ["second", "first"]


def test_nothing_kept_yet_is_an_empty_list_and_makes_no_file(cli: Cli, home: Path) -> None:
    result = cli("conversations", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert not (home / "data").exists()


@pytest.mark.parametrize("command", [("list",), ("show", "x"), ("rm", "x")], ids=lambda c: c[0])
@pytest.mark.parametrize("named", ["by option", "by variable"])
def test_a_named_database_that_is_not_there_is_told_and_not_made(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, named: str, command: tuple[str, ...]
) -> None:
    if named == "by variable":
        monkeypatch.setenv("RETINUE_DATABASE", "none.db")
    option = ("--database", "none.db") if named == "by option" else ()
    result = cli("conversations", *command, *option)
    assert result.exit_code == 2
    assert "There is no database none.db" in result.stderr
    assert not (home / "none.db").exists()


def test_the_database_may_be_named_by_a_variable(
    cli: Cli, agents: Agents, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETINUE_DATABASE", "named.db")
    cli("run", "Hi", "--agent", f"{agents(TALK)}:agent", "--conversation", "c")
    assert ids(cli("conversations", "list").stdout) == ["c"]
    assert (home / "named.db").exists()
    assert not (home / "data").exists()


@pytest.mark.rule("R-FAIL-3")
def test_a_file_that_is_no_database_is_one_sentence(cli: Cli, home: Path) -> None:
    (home / "x.db").write_text("I am a letter, not a database. " * 100)
    result = cli("conversations", "list", "--database", "x.db")
    assert result.exit_code == 1
    assert "is not a SQLite database" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_locked_database_is_one_sentence(
    talked: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.cli.keeping.SQLite", partial(SQLite, busy_timeout=0.05))
    file = home / "data" / "retinue" / "conversations.db"
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        result = talked("conversations", "rm", "first", "--yes")
        other.execute("ROLLBACK")
    other.close()
    assert result.exit_code == 1
    assert "is locked by another process" in result.stderr
    assert ids(talked("conversations", "list").stdout) == ["second", "first"]


def test_what_is_kept_is_for_the_user_alone(talked: Cli, home: Path) -> None:
    assert (home / "data" / "retinue").stat().st_mode & 0o077 == 0
