"""Where the questions of a chat come from: somebody at a terminal, or the lines of a pipe."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from retinue.cli import places
from retinue.cli.foreground import Wait
from retinue.errors import ConfigError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

PROMPT: Final = "> "
_LEAVING: Final = "Press Ctrl-C again, or Ctrl-D, to leave."


def lines(wait: Wait) -> Iterator[str]:
    """The lines of standard input that are not blank.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    while line := wait(sys.stdin.readline):
        if line.strip():
            yield line.rstrip("\r\n")


def typed(commands: Iterable[str], wait: Wait, *, keep: bool) -> Iterator[str]:
    """What is typed, until Ctrl-D, or Ctrl-C twice on an empty line.

    Enter sends; Alt-Enter, and line breaks in what is pasted, make new lines.

    Args:
        commands: words that Tab completes.
        wait: what waits for the lines.
        keep: whether what is typed is remembered for the next time, in the user's data folder.
    """
    prompt = _prompt(commands, keep)
    leaving = False
    while True:
        try:
            text = wait(prompt.prompt)
        except EOFError:
            return
        except KeyboardInterrupt:
            if prompt.default_buffer.text:
                leaving = False  # it only dropped the line
            elif leaving:
                return
            else:
                leaving = True
                print(_LEAVING)
            continue
        leaving = False
        if text.strip():
            yield text.rstrip()


class NotNow(Exception):
    """Whoever was asked pressed Ctrl-C in place of an answer."""


def answer(wait: Wait, prompt: str, default: str) -> str:
    """One answer that is typed; it is not remembered.

    Args:
        wait: what waits for it.
        prompt: what stands before it.
        default: what stands there already, to be edited; Alt-Enter makes new lines in it.

    Raises:
        EOFError: Ctrl-D.
        NotNow: Ctrl-C.
    """
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession(
        prompt,
        multiline=True,
        prompt_continuation=" " * len(prompt),
        key_bindings=_keys(),
        reserve_space_for_menu=0,
    )
    try:
        return wait(lambda: session.prompt(default=default))
    except KeyboardInterrupt:
        raise NotNow from None


def _prompt(commands: Iterable[str], keep: bool) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.shortcuts import CompleteStyle

    return PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=" " * len(PROMPT),
        key_bindings=_keys(),
        history=_history(keep),
        completer=WordCompleter(sorted(commands), sentence=True),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        reserve_space_for_menu=0,  # or the prompt would push the answer up by eight lines
    )


def _keys() -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.insert_text("\n")

    return keys


def _history(keep: bool) -> "History":
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if not keep:
        return InMemoryHistory()
    try:
        file = places.made_data_folder() / "history"
        file.touch(mode=0o600)
    except (ConfigError, OSError):
        return InMemoryHistory()  # no reason not to chat
    return FileHistory(file)
