"""`retinue chat` in a terminal: what is typed, pasted, drawn and interrupted."""

from pathlib import Path

import pytest

from tests.cli.conftest import Agents
from tests.cli.terminal import Terminal, environment

ECHO = "agent = Agent(Scripted(lambda r: ascii(r.messages[-1].text), repeat=True))"

BUSY = """
@tool
async def wait(hours: int) -> str:
    "Waits."
    await asyncio.Event().wait()

def answer(request):
    if request.messages[-1].text == "wait":
        return Say(text="I wait.", calls=[call("wait", hours=3)])
    return f"You have said {sum(m.role == 'user' for m in request.messages)} things."

agent = Agent(Scripted(answer, repeat=True), tools=[wait])
"""

DEAF = """
@tool
async def wait() -> str:
    "Waits, whatever it is told."
    for _ in range(2):
        try:
            print("I wait")
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            last = error
    raise last

agent = Agent(Scripted(call("wait")), tools=[wait])
"""

CTRL_D = "\x04"
UP = "\x1b[A"


def chat(home: Path, *arguments: str) -> Terminal:
    return Terminal(["chat", *arguments], cwd=home, env=environment())


def test_a_question_is_answered_and_the_chat_can_be_gone_on_with(
    home: Path, agents: Agents
) -> None:
    with chat(home, f"{agents(ECHO)}:agent", "--conversation", "c-1") as terminal:
        terminal.prompt()
        assert "scripted:script · conversation c-1 · /help" in terminal.text
        terminal.send("hello\r")
        terminal.prompt()
        assert "'hello'" in terminal.text
        assert "cost unknown" in terminal.text
        terminal.send(CTRL_D)
        assert terminal.end() == 0
        assert "To go on: --conversation c-1" in terminal.text
    with chat(home, f"{agents(ECHO)}:agent", "--conversation", "c-1") as terminal:
        terminal.prompt()
        assert "2 messages so far" in terminal.text
        terminal.send("/quit\r")
        assert terminal.end() == 0


def test_what_is_pasted_in_several_lines_is_one_question(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(ECHO)}:agent") as terminal:
        terminal.prompt()
        terminal.send("\x1b[200~one\ntwo\x1b[201~\r")
        terminal.until(r"'one\ntwo'")


def test_alt_enter_makes_a_new_line(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(ECHO)}:agent") as terminal:
        terminal.prompt()
        terminal.send("one\x1b\rtwo\r")
        terminal.until(r"'one\ntwo'")


@pytest.mark.parametrize(("options", "kept"), [((), True), (("--no-memory",), False)])
def test_what_was_typed_comes_back_in_the_next_chat_unless_nothing_is_kept(
    home: Path, agents: Agents, options: tuple[str, ...], kept: bool
) -> None:
    target = f"{agents(ECHO)}:agent"
    with chat(home, target, *options) as terminal:
        terminal.prompt()
        terminal.send("hello\r")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.end() == 0
    with chat(home, target, *options) as terminal:
        terminal.prompt()
        terminal.send(f"{UP}, again\r")
        terminal.until("'hello, again'" if kept else "', again'")
    assert (home / "data").exists() == kept


@pytest.mark.rule("R-LOOP-8")
def test_ctrl_c_cancels_the_turn_and_the_chat_goes_on(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(BUSY)}:agent") as terminal:
        terminal.prompt()
        terminal.send("wait\r")
        terminal.until("wait(hours=3)")
        terminal.interrupt()
        terminal.prompt()
        assert "Cancelled." in terminal.text
        terminal.send("go on\r")
        terminal.until("You have said 2 things.")
        terminal.prompt()
        terminal.send("/history\r")
        terminal.until("wait failed: ")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text


def test_a_second_ctrl_c_leaves_a_turn_that_will_not_stop_and_shows_the_cursor_again(
    home: Path, agents: Agents
) -> None:
    with chat(home, f"{agents(DEAF)}:agent") as terminal:
        terminal.prompt()
        terminal.send("wait\r")
        for n in (1, 2):
            terminal.until("I wait", times=n)
            terminal.interrupt()
        assert terminal.end() == 130
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")
    assert "Traceback" not in terminal.text


def test_at_the_prompt_the_second_ctrl_c_leaves(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(ECHO)}:agent") as terminal:
        terminal.prompt()
        terminal.interrupt()
        terminal.until("Press Ctrl-C again, or Ctrl-D, to leave.")
        terminal.prompt()
        terminal.send("hello\r")  # what comes between counts as staying
        terminal.prompt()
        terminal.interrupt()
        terminal.prompt()
        terminal.interrupt()
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text


def test_ctrl_c_on_a_written_line_only_drops_the_line(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(ECHO)}:agent") as terminal:
        terminal.prompt()
        terminal.send("hell")
        terminal.until("hell")
        for _ in range(2):
            terminal.send("o")
            terminal.interrupt()
            terminal.prompt()
        assert "Press Ctrl-C again" not in terminal.text
        terminal.send("hello\r")
        terminal.until("'hello'")


def test_an_error_is_told_and_the_chat_goes_on(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents('agent = Agent(Scripted())')}:agent") as terminal:
        terminal.prompt()
        terminal.send("hello\r")
        terminal.until("retinue: The script has 0 steps")
        terminal.prompt()
        terminal.send("/model nowhere:at-all\r")
        terminal.until("There is no provider 'nowhere'")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.end() == 0


def test_the_prompt_completes_commands(home: Path, agents: Agents) -> None:
    with chat(home, f"{agents(ECHO)}:agent") as terminal:
        terminal.prompt()
        terminal.send("/mod\t\r")
        terminal.until("The model is scripted:script.")


def test_tables_on_a_terminal_have_headers(home: Path) -> None:
    with Terminal(["models"], cwd=home, env=environment(), columns=200) as terminal:
        assert terminal.end() == 0
        assert terminal.text.startswith("provider")
        assert "OPENAI_API_KEY" in terminal.text
