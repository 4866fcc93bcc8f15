"""`retinue conversations tree`, `turns`, `fork`, `rollback` and `prune`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Agents, Cli
from tests.cli.till import TILL


@pytest.fixture
def till(agents: Agents) -> str:
    return f"{agents(TILL)}:agent"


@pytest.fixture
def talked(cli: Cli, till: str) -> Cli:
    """A conversation of three turns, the last of which waits."""
    for question in ("first", "second", "one"):
        cli("run", question, "--agent", till, "--conversation", "c")
    return cli


def turns(cli: Cli, conversation: str) -> list[list[str]]:
    """The turns as they are listed: number, id, state, messages, question."""
    listed = cli("conversations", "turns", conversation).stdout.splitlines()
    return [line.split("\t") for line in listed]


def questions(cli: Cli, conversation: str) -> list[str]:
    return [row[-1] for row in turns(cli, conversation)]


def test_the_turns_of_a_conversation_are_listed_with_their_ids(talked: Cli) -> None:
    rows = turns(talked, "c")
    assert [[row[0], *row[2:]] for row in rows] == [
        ["1", "", "2", "first"],
        ["2", "", "2", "second"],
        ["3", "paused", "2", "one"],
    ]
    lines = talked("conversations", "turns", "c", "--json").stdout.splitlines()
    assert [json.loads(line)["turn"] for line in lines] == [row[1] for row in rows]


@pytest.mark.rule("R-MEM-8")
def test_a_fork_prints_its_id_and_goes_its_own_way(talked: Cli, till: str) -> None:
    made = talked("conversations", "fork", "c", "--at", "2").stdout.strip()
    assert made.startswith("c~")
    talked("run", "third", "--agent", till, "--conversation", made)
    assert questions(talked, made) == ["first", "second", "third"]
    assert questions(talked, "c") == ["first", "second", "one"]
    by_id = turns(talked, "c")[0][1]
    assert talked("conversations", "fork", "c", "d", "--at", by_id).stdout == "d\n"
    assert questions(talked, "d") == ["first"]


@pytest.mark.rule("R-MEM-8")
def test_a_fork_of_all_carries_the_pause_and_both_go_on(talked: Cli, till: str, home: Path) -> None:
    assert talked("conversations", "fork", "c", "d").stdout == "d\n"
    assert talked("resume", "c", till, "--all").exit_code == 0
    assert talked("resume", "d", till, "--all").exit_code == 0
    assert (home / "did").read_text() == "paid 1 to Ann\n" * 2


def test_a_fork_at_the_turn_that_waits_carries_the_pause(
    talked: Cli, till: str, home: Path
) -> None:
    talked("conversations", "fork", "c", "d", "--at", "3")
    assert talked("resume", "d", till, "--all").exit_code == 0
    assert (home / "did").read_text() == "paid 1 to Ann\n"


def test_the_tree_is_empty_before_the_first_chat(cli: Cli) -> None:
    done = cli("conversations", "tree")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert cli("conversations", "tree", "--database", "other.db").exit_code == 2


def test_the_tree_shows_forks_below_their_origin(talked: Cli) -> None:
    talked("conversations", "fork", "c", "d", "--at", "1")
    talked("conversations", "fork", "d", "e")
    drawn = talked("conversations", "tree").stdout.splitlines()
    assert drawn == [
        "c  6 messages  paused  first",
        "└── d  2 messages, forked at position 2  first",
        "    └── e  2 messages, forked at position 2  first",
    ]
    (line,) = talked("conversations", "tree", "--json").stdout.splitlines()
    root = json.loads(line)
    assert root["conversation"]["id"] == "c"
    assert root["forks"][0]["forks"][0]["conversation"]["id"] == "e"


@pytest.mark.rule("R-MEM-9")
def test_a_tree_holds_the_owner_s_conversations_and_the_operator_s_all(
    talked: Cli, till: str
) -> None:
    talked("run", "hers", "--agent", till, "--conversation", "h", "--owner", "ann")
    tree = ("conversations", "tree")
    assert talked(*tree, "--owner", "ann").stdout == "h  2 messages  hers\n"
    assert talked(*tree, "--everyone").stdout.count("\n") == 2
    assert talked(*tree, "--everyone", "--owner", "ann").exit_code == 2
    assert talked("conversations", "fork", "h", "mine").exit_code == 1
    assert talked("conversations", "rollback", "h", "--to", "0", "--yes").exit_code == 1


def test_a_rollback_removes_what_came_after_and_the_pause(talked: Cli, till: str) -> None:
    assert talked("conversations", "rollback", "c", "--to", "1", "--yes").exit_code == 0
    assert questions(talked, "c") == ["first"]
    assert talked("resume", "c", till).exit_code == 1
    assert talked("conversations", "rollback", "c", "--to", "0", "--yes").exit_code == 0
    assert talked("conversations", "list").stdout.split("\t")[4] == "0"


def test_a_rollback_to_a_turn_that_waits_removes_the_pause_alone(talked: Cli, till: str) -> None:
    assert talked("conversations", "rollback", "c", "--to", "3").exit_code == 2
    assert talked("conversations", "rollback", "c", "--to", "3", "--yes").exit_code == 0
    assert questions(talked, "c") == ["first", "second", "one"]
    assert talked("resume", "c", till).exit_code == 1


def test_a_cut_that_nobody_can_confirm_is_refused_and_says_what_it_would_remove(
    talked: Cli,
) -> None:
    done = talked("conversations", "rollback", "c", "--to", "2", input="y\n")
    assert done.exit_code == 2
    assert "removes 1 turn with 2 messages of conversation 'c', and the pause" in done.stderr
    assert "--yes" in done.stderr
    assert talked("conversations", "prune", "c", "--keep", "1", input="y\n").exit_code == 2
    assert len(turns(talked, "c")) == 3


def test_a_prune_removes_the_oldest_turns(talked: Cli, till: str) -> None:
    assert talked("conversations", "prune", "c", "--keep", "1", "--yes").exit_code == 0
    assert questions(talked, "c") == ["one"]
    assert talked("resume", "c", till, "--all").exit_code == 0
    assert talked("conversations", "prune", "c", "--keep", "0", "--yes").exit_code == 2


def test_a_cut_that_removes_nothing_asks_nobody(talked: Cli, till: str) -> None:
    talked("resume", "c", till, "--all")
    done = talked("conversations", "rollback", "c", "--to", "3")
    assert (done.exit_code, done.stdout) == (0, "Nothing comes after that turn of c.\n")
    done = talked("conversations", "prune", "c", "--keep", "5")
    assert (done.exit_code, done.stdout) == (0, "c has 3 turns; all stay.\n")


@pytest.mark.parametrize(
    "command", [("fork", "c", "--at", "9"), ("rollback", "c", "--to", "9", "--yes")]
)
def test_a_turn_that_is_not_there_is_refused(talked: Cli, command: tuple[str, ...]) -> None:
    done = talked("conversations", *command)
    assert done.exit_code == 2
    assert "There is no turn '9'; give the id of a turn or its number, 1 to 3" in done.stderr
    assert len(turns(talked, "c")) == 3


def test_a_fork_takes_no_place(talked: Cli) -> None:
    done = talked("conversations", "fork", "c", "c")
    assert done.exit_code == 2
    assert "already" in done.stderr


@pytest.mark.parametrize("command", [("turns",), ("fork",), ("rollback", "--to", "1")])
def test_a_conversation_that_is_not_there_is_told(talked: Cli, command: tuple[str, ...]) -> None:
    done = talked("conversations", command[0], "nobody's", *command[1:])
    assert done.exit_code == 1
    assert "There is no conversation" in done.stderr
