"""Calls that wait are asked about in a terminal; each command here is a process of its own."""

from pathlib import Path

import pytest

from tests.cli.conftest import Agents
from tests.cli.terminal import Terminal, environment
from tests.cli.till import TILL

CTRL_D = "\x04"
BACKSPACE = "\x7f"


@pytest.fixture
def till(agents: Agents) -> str:
    return f"{agents(TILL)}:agent"


def command(home: Path, *arguments: str) -> Terminal:
    return Terminal(arguments, cwd=home, env=environment())


def chat(home: Path, till: str) -> Terminal:
    return command(home, "chat", till, "--conversation", "c")


def did(home: Path) -> list[str]:
    file = home / "did"
    return file.read_text().splitlines() if file.exists() else []


def say(terminal: Terminal, text: str) -> None:
    terminal.prompt()
    terminal.send(f"{text}\r")


@pytest.mark.rule("R-HITL-1", "R-HITL-3")
def test_a_chat_asks_for_approval_and_goes_on(home: Path, till: str) -> None:
    with chat(home, till) as terminal:
        say(terminal, "one")
        terminal.until("pay waits (approval): This call needs approval.")
        terminal.until('"amount": 1')
        terminal.until("(approve, edit, reject REASON, reply TEXT or later)")
        assert did(home) == []
        say(terminal, "maybe")
        terminal.until("'maybe' is no answer; say approve")
        say(terminal, "approve")
        terminal.until("Done: paid 1 to Ann")
        say(terminal, "ask")
        terminal.until("Which city?")
        say(terminal, "Oslo")
        terminal.until("Done: Oslo")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.end() == 0
    assert did(home) == ["paid 1 to Ann"]


@pytest.mark.behaviour("B-PA-4")
def test_arguments_are_edited_where_they_stand(home: Path, till: str) -> None:
    with chat(home, till) as terminal:
        say(terminal, "one")
        say(terminal, "edit")
        terminal.prompt()
        terminal.send(f"{BACKSPACE * 2}, extra\r")  # the brace and the line break before it
        terminal.until("The arguments are no JSON")
        say(terminal, "edit")
        terminal.prompt()
        terminal.send(f'{BACKSPACE * 6}Zoe"' + "}\r")
        terminal.until("Done: paid 1 to Zoe")
    assert did(home) == ["paid 1 to Zoe"]


@pytest.mark.behaviour("B-PA-2", "B-PA-8")
def test_ctrl_c_leaves_the_pause_and_the_next_chat_offers_it(home: Path, till: str) -> None:
    with chat(home, till) as terminal:
        say(terminal, "help")
        terminal.until("pay of a sub-agent waits (approval)")
        terminal.prompt()
        terminal.interrupt()
        terminal.until("1 call left waiting. /resume asks again")
        terminal.until("--conversation c")
        say(terminal, "/resume")
        terminal.until("pay of a sub-agent waits (approval)", times=2)
        terminal.prompt()
        terminal.send(CTRL_D)
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text
    assert did(home) == []
    with chat(home, till) as terminal:
        terminal.until("A turn of this conversation waits for 1 answer.")
        say(terminal, "a")
        terminal.until("Done: Done: paid 1 to Ann")
        terminal.prompt()
    assert did(home) == ["paid 1 to Ann"]


@pytest.mark.behaviour("B-PA-1")
def test_ctrl_c_takes_back_the_answers_before_it_and_ctrl_d_keeps_them(
    home: Path, till: str
) -> None:
    with chat(home, till) as terminal:
        say(terminal, "two")
        say(terminal, "approve")
        terminal.prompt()
        terminal.interrupt()
        terminal.until("2 calls left waiting")
        say(terminal, "/resume")
        say(terminal, "approve")
        terminal.prompt()
        terminal.send(CTRL_D)
        terminal.until("1 call left waiting")
        say(terminal, "/resume")
        say(terminal, "reject not Bob")
        terminal.until("Done: paid 1 to Ann, not Bob")
    assert did(home) == ["paid 1 to Ann"]


def test_resume_asks_at_a_terminal(home: Path, till: str) -> None:
    with command(home, "run", "two", "--agent", till, "--conversation", "c") as terminal:
        assert terminal.end() == 4
    with command(home, "resume", "c", till) as terminal:
        say(terminal, "approve")
        say(terminal, "later")
        terminal.until(f"To go on: retinue resume c {till}")
        assert terminal.end() == 4
    with command(home, "resume", "c", till) as terminal:
        say(terminal, "reply paid by hand")
        terminal.until("Done: paid 1 to Ann, paid by hand")
        assert terminal.end() == 0
    assert did(home) == ["paid 1 to Ann"]


NOT_YES = ("n\r", "\x03", CTRL_D)


def test_a_rollback_asks_first(home: Path, till: str) -> None:
    for question in ("Hello", "Hello again"):
        with command(home, "run", question, "--agent", till, "--conversation", "c") as terminal:
            assert terminal.end() == 0
    for said in (*NOT_YES, "y\r"):
        with command(home, "conversations", "rollback", "c", "--to", "1") as terminal:
            terminal.until("This removes 1 turn with 2 messages of conversation 'c'. Go on? [y/N]")
            terminal.send(said)
            assert terminal.end() == (130 if said in NOT_YES else 0)
            assert "Abort" not in terminal.text
    with command(home, "conversations", "turns", "c", "--json") as terminal:
        terminal.end()
        assert terminal.text.count('"turn"') == 1


def test_a_removal_asks_first(home: Path, till: str) -> None:
    with command(home, "run", "Hello", "--agent", till, "--conversation", "c") as terminal:
        assert terminal.end() == 0
    for said in (*NOT_YES, "y\r"):
        with command(home, "conversations", "rm", "c") as terminal:
            terminal.until("This removes conversation 'c' with 2 messages. Go on? [y/N]")
            terminal.send(said)
            assert terminal.end() == (130 if said in NOT_YES else 0)
    with command(home, "conversations", "list", "--json") as terminal:
        terminal.end()
        assert '"id":"c"' not in terminal.text
