"""The command itself: its entry, its signals, its pipes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import retinue
from retinue.cli import main
from tests.cli.conftest import Agents, Cli
from tests.cli.terminal import COMMAND, PATIENCE, environment

WAITING = """
import sys

@tool
async def wait() -> str:
    "Waits."
    print("waiting", file=sys.stderr, flush=True)
    await asyncio.Event().wait()

@tool
async def stubborn() -> str:
    "Waits, whatever it is told."
    try:
        await wait.function()
    except asyncio.CancelledError:
        await wait.function()

patient = Agent(Scripted(Say(text="One moment.", calls=[call("wait")])), tools=[wait])
deaf = Agent(Scripted(call("stubborn")), tools=[stubborn])
quick = Agent(Scripted("fine"))
long = Agent(Scripted("line\\n" * 100_000))
"""


@contextmanager
def running(
    home: Path, *arguments: str, stdin: int = subprocess.DEVNULL
) -> Iterator["subprocess.Popen[str]"]:
    """A command without a terminal; it is ended at the end, whatever it does."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=home,
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_line(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stderr is not None
    assert process.stderr.readline() == f"{line}\n"


@pytest.mark.rule("R-LOOP-8", "R-STREAM-1")
def test_ctrl_c_cancels_a_run_which_still_ends_in_order(home: Path, agents: Agents) -> None:
    target = f"{agents(WAITING)}:patient"
    with running(home, "run", "x", "--agent", target, "--json") as process:
        wait_for_line(process, "waiting")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["status"], last["text"]) == (
        "turn_ended",
        "cancelled",
        "One moment.",
    )
    assert error == ""


def test_a_second_ctrl_c_does_not_wait_for_what_will_not_stop(home: Path, agents: Agents) -> None:
    with running(home, "run", "x", "--agent", f"{agents(WAITING)}:deaf") as process:
        for _ in range(2):
            wait_for_line(process, "waiting")
            process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert "Abort" not in error


def test_ctrl_c_ends_a_chat_that_waits_for_the_next_line_of_a_pipe(
    home: Path, agents: Agents
) -> None:
    target = f"{agents(WAITING)}:quick"
    with running(home, "chat", target, "--no-memory", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert process.stdout.readline() == "fine\n"
        # The press may still meet the turn, which has ended and needs no cancelling.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_reader_that_leaves_early_is_no_error(home: Path, agents: Agents) -> None:
    with running(home, "run", "x", "--agent", f"{agents(WAITING)}:long") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr is not None
        error = process.stderr.read()
        process.wait(timeout=PATIENCE)
    assert "Traceback" not in error
    assert "BrokenPipe" not in error


def test_a_character_that_the_terminal_lacks_is_replaced(home: Path, agents: Agents) -> None:
    name = agents('agent = Agent(Scripted("snow \\u2603 \\ud800"))')
    done = subprocess.run(
        [*COMMAND, "run", "x", "--agent", f"{name}:agent"],
        cwd=home,
        env=environment(PYTHONIOENCODING="ascii"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "snow ? ?\n"


def test_a_missing_package_is_one_sentence_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "find_spec", lambda name: None if name == "rich" else name)
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "retinue: the command line needs rich; install it with: pip install 'retinue[cli]'\n"
    )


def test_the_entry_needs_none_of_the_packages_of_the_command_line(home: Path) -> None:
    code = "import sys, retinue.cli.main; print({'typer', 'rich'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout == f"{retinue.__version__}\n"


@pytest.mark.parametrize("arguments", [("run",), ("nothing",), ("chat", "--nothing")])
def test_wrong_usage_exits_with_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli(*arguments).exit_code == 2


def test_the_help_tells_the_exit_codes(cli: Cli) -> None:
    told = " ".join(cli("--help").stdout.split())
    assert "0 done, 1 the turn failed, 2 wrong usage or configuration" in told
