"""Turns that wait for answers, on the command line without a terminal."""

import asyncio
import json
from pathlib import Path

import pytest

from retinue.stores import SQLite
from tests.cli.conftest import Agents, Cli
from tests.cli.till import TILL


@pytest.fixture
def till(agents: Agents) -> str:
    return f"{agents(TILL)}:agent"


def did(home: Path) -> list[str]:
    file = home / "did"
    return file.read_text().splitlines() if file.exists() else []


def asked(cli: Cli, till: str, question: str, conversation: str = "c") -> list[str]:
    """Runs a turn that pauses; gives the ids of the calls that wait."""
    done = cli("run", question, "--agent", till, "--conversation", conversation)
    assert done.exit_code == 4
    listed = cli("resume", conversation, till, "--json")
    assert listed.exit_code == 4
    return [json.loads(line)["id"] for line in listed.stdout.splitlines()]


# -- run and resume ---------------------------------------------------------------------------


@pytest.mark.rule("R-HITL-2")
def test_a_run_that_pauses_says_what_waits_and_how_to_go_on(
    cli: Cli, till: str, home: Path
) -> None:
    done = cli("run", "one", "--agent", till, "--conversation", "c", "--owner", "ann")
    assert (done.exit_code, done.stdout, did(home)) == (4, "", [])
    assert "pay waits (approval): This call needs approval." in done.stderr
    assert '"amount": 1' in done.stderr
    assert "--approve ID [--args JSON], --reject ID=REASON or --reply ID=TEXT" in done.stderr
    assert f"To go on: retinue resume c {till} --owner ann\n" in done.stderr


def test_a_pause_that_is_not_kept_says_so(cli: Cli, till: str) -> None:
    done = cli("run", "one", "--agent", till)
    assert done.exit_code == 4
    assert "cannot be gone on with, since it is not kept; name a --conversation" in done.stderr


def test_as_json_a_paused_run_is_its_events_and_no_words(cli: Cli, till: str) -> None:
    done = cli("run", "one", "--agent", till, "--conversation", "c", "--json")
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert types[-2:] == ["paused", "turn_ended"]
    assert (done.exit_code, done.stderr) == (4, "")


@pytest.mark.behaviour("B-PA-4")
def test_a_call_is_approved_with_other_arguments(cli: Cli, till: str, home: Path) -> None:
    (name,) = asked(cli, till, "one")
    done = cli(
        "resume", "c", till, "--approve", name, "--args", '{"amount": 7, "to": "Zoe"}', "--json"
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout.splitlines()[-1])["text"] == "Done: paid 7 to Zoe"
    assert did(home) == ["paid 7 to Zoe"]


@pytest.mark.behaviour("B-PA-1")
@pytest.mark.rule("R-HITL-3")
def test_calls_may_be_answered_one_command_at_a_time(cli: Cli, till: str, home: Path) -> None:
    first, second = asked(cli, till, "two")
    done = cli("resume", "c", till, "--reject", f"{second}=not Bob")
    assert (done.exit_code, done.stdout, did(home)) == (4, "", [])
    assert first in done.stderr
    assert second not in done.stderr
    done = cli("resume", "c", till, "--all")
    assert (done.exit_code, done.stdout) == (0, "Done: paid 1 to Ann, not Bob\n")
    assert did(home) == ["paid 1 to Ann"]


@pytest.mark.behaviour("B-PA-5")
def test_a_pause_is_used_up_once(cli: Cli, till: str, home: Path) -> None:
    (name,) = asked(cli, till, "one")
    assert cli("resume", "c", till, "--approve", name).exit_code == 0
    done = cli("resume", "c", till, "--approve", name)
    assert done.exit_code == 1
    assert "No turn of conversation 'c' waits for an answer" in done.stderr
    assert did(home) == ["paid 1 to Ann"]


@pytest.mark.behaviour("B-PA-8")
def test_a_call_of_a_sub_agent_is_answered_by_its_path(cli: Cli, till: str, home: Path) -> None:
    (name,) = asked(cli, till, "help")
    assert "/" in name
    assert "pay of a sub-agent waits" in cli("resume", "c", till).stdout
    done = cli("resume", "c", till, "--approve", name)
    assert (done.exit_code, did(home)) == (0, ["paid 1 to Ann"])


@pytest.mark.behaviour("B-PA-9")
def test_a_failure_that_was_mended_is_tried_again(cli: Cli, till: str, home: Path) -> None:
    (name,) = asked(cli, till, "write")
    assert cli("resume", "c", till, "--retry", name).exit_code == 4
    (home / "writable").touch()
    done = cli("resume", "c", till, "--retry", name)
    assert (done.exit_code, done.stdout, did(home)) == (0, "Done: wrote x\n", ["wrote x"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--approve", "nobody"), "No call 'nobody' waits for an answer; those that do: "),
        (("--approve", "x", "--retry", "x"), "'x' is answered twice"),
        (("--args", "{}"), "give each --approve its --args"),
        (("--retry", "{name}"), "takes Approve, Reject, Reply, not Retry"),
        (("--approve", "{name}", "--args", '{"amount": "x"}'), "do not fit"),
    ],
)
def test_answers_that_cannot_be_meant_are_refused_and_the_pause_stands(
    cli: Cli, till: str, home: Path, options: tuple[str, ...], says: str
) -> None:
    (name,) = asked(cli, till, "one")
    filled = [option.replace("{name}", name) for option in options]
    done = cli("resume", "c", till, *filled)
    assert done.exit_code == 2
    assert says in done.stderr
    assert did(home) == []
    assert cli("resume", "c", till, "--approve", name).exit_code == 0


def test_without_answers_and_a_terminal_resume_lists_what_waits(cli: Cli, till: str) -> None:
    (name,) = asked(cli, till, "one")
    done = cli("resume", "c", till)
    assert done.exit_code == 4
    assert done.stdout.startswith(f"The turn waits for 1 answer:\n{name}\n")


def test_a_conversation_of_another_owner_is_not_found(cli: Cli, till: str) -> None:
    asked(cli, till, "one")
    done = cli("resume", "c", till, "--owner", "ben")
    assert done.exit_code == 1
    assert "There is no conversation 'c' for this owner" in done.stderr


# -- show and list ----------------------------------------------------------------------------


def test_a_shown_conversation_says_what_it_waits_for(cli: Cli, till: str) -> None:
    (name,) = asked(cli, till, "one")
    shown = cli("conversations", "show", "c").stdout
    assert shown.startswith("user: one\nassistant: calls pay")
    assert f"The turn waits for 1 answer:\n{name}\n" in shown
    last = json.loads(cli("conversations", "show", "c", "--json").stdout.splitlines()[-1])
    assert [one["id"] for one in last["pending"]] == [name]
    assert "\tpaused\t" in cli("conversations", "list").stdout


def test_a_pause_of_a_later_version_is_told_after_what_was_said(
    cli: Cli, till: str, home: Path
) -> None:
    asked(cli, till, "one")

    async def pause_anew() -> None:
        store = SQLite(home / "data" / "retinue" / "conversations.db")
        await store.hold("c", "p", b'{"format": 99}')
        await store.close()

    asyncio.run(pause_anew())
    done = cli("conversations", "show", "c")
    assert done.stdout.startswith("user: one\n")
    assert done.exit_code == 1
    assert "upgrade retinue" in done.stderr


# -- chat -------------------------------------------------------------------------------------


def chat(cli: Cli, till: str, said: str, conversation: str = "c") -> tuple[int, str, str]:
    done = cli("chat", till, "--conversation", conversation, input=said)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize(
    ("said", "answer", "done"),
    [
        ("one\napprove\n", "Done: paid 1 to Ann\n", ["paid 1 to Ann"]),
        ('one\napprove {"amount": 3, "to": "Eve"}\n', "Done: paid 3 to Eve\n", ["paid 3 to Eve"]),
        ("one\nreject too dear\n", "Done: too dear\n", []),
        ("one\nreply paid by hand\n", "Done: paid by hand\n", []),
        ("ask\nOslo\n", "Done: Oslo\n", []),
        ("ask\n/reject I do not know\n", "Done: I do not know\n", []),
        ("measure\nresult 3 mm\n", "Done: 3 mm\n", []),
        ("measure\ncancel broken\n", "Done: broken\n", []),
        ("write\nproceed\n", "Done: PermissionError: read-only\n", []),
    ],
)
def test_the_next_lines_of_a_pipe_answer_what_waits(
    cli: Cli, till: str, home: Path, said: str, answer: str, done: list[str]
) -> None:
    code, out, _ = chat(cli, till, said)
    assert code == 0
    assert out == answer
    assert did(home) == done


def test_a_line_that_is_no_answer_is_told_and_the_next_one_is_read(
    cli: Cli, till: str, home: Path
) -> None:
    code, out, error = chat(
        cli, till, 'one\nwhat?\napprove {"amount": "x", "to": "A"}\napprove\nhello\n'
    )
    assert (code, out) == (0, "Done: paid 1 to Ann\nHello.\n")
    assert "'what?' is no answer; say approve, approve JSON" in error
    assert "expected `int`, got `str`" in error
    assert did(home) == ["paid 1 to Ann"]


def test_a_pipe_that_ends_leaves_the_rest_waiting(cli: Cli, till: str, home: Path) -> None:
    code, out, error = chat(cli, till, "two\napprove\n")
    assert (code, out, did(home)) == (4, "", [])
    assert "1 call left waiting. /resume asks again" in error
    assert "--conversation c" in error
    code, out, error = chat(cli, till, "reject no\n")
    assert "A turn of this conversation waits for 1 answer." in error
    assert (code, out) == (0, "Done: paid 1 to Ann, no\n")
    assert did(home) == ["paid 1 to Ann"]


def test_what_was_put_off_is_asked_again_on_demand(cli: Cli, till: str) -> None:
    code, out, error = chat(cli, till, "one\nlater\n/resume\napprove\n/resume\n")
    assert (code, out) == (4, "Done: paid 1 to Ann\nNo call waits for an answer.\n")
    assert error.count("pay waits (approval)") == 2


@pytest.mark.rule("R-HITL-5")
def test_a_new_message_cancels_what_was_put_off(cli: Cli, till: str, home: Path) -> None:
    code, out, _ = chat(cli, till, "one\nlater\nhello\n/resume\n")
    assert (code, out) == (4, "Hello.\nNo call waits for an answer.\n")
    assert did(home) == []


@pytest.mark.behaviour("B-PA-8")
def test_a_chat_asks_for_a_sub_agent_too(cli: Cli, till: str, home: Path) -> None:
    code, _, error = chat(cli, till, "help\napprove\n")
    assert code == 0
    assert "pay of a sub-agent waits (approval)" in error
    assert did(home) == ["paid 1 to Ann"]


def test_a_failed_retry_asks_again_until_it_is_mended_or_put_up_with(cli: Cli, till: str) -> None:
    code, out, error = chat(cli, till, "write\nretry\nproceed\n")
    assert (code, out) == (0, "Done: PermissionError: read-only\n")
    assert error.count("write waits (environment): PermissionError: read-only") == 2


def test_a_chat_that_keeps_nothing_offers_no_later_chat(cli: Cli, till: str) -> None:
    done = cli("chat", till, "--no-memory", input="one\nlater\n")
    assert "/resume asks again; a new message cancels what waits." in done.stderr
