"""What can be said to a chat itself: lines that begin with a slash."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from rich.text import Text

from retinue.cli.asking import settle
from retinue.cli.exits import DONE
from retinue.cli.picture import print_onion
from retinue.cli.session import Session
from retinue.cli.transcript import print_transcript
from retinue.cli.wording import cut, safe
from retinue.errors import ConfigError


class Command(Struct, frozen=True):
    """One command: how it is written, what it does, and the function that does it."""

    usage: str
    does: str
    run: Callable[[Session, str], int | None]


def obey(session: Session, line: str) -> int:
    """Does what the line says; gives the exit code that fits what came of it.

    Raises:
        ConfigError: there is no such command.
        RetinueError: it could not be done.
    """
    word, _, argument = line.partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        raise ConfigError(
            f"There is no command {cut(word, 40)}; there are {', '.join(COMMANDS)}. To ask a"
            " question that begins with a slash, put a space before it."
        )
    return command.run(session, argument.strip()) or DONE


def _help(session: Session, _: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        session.console.print(
            Text(f"{command.usage:<{width}}  {command.does}"), highlight=False, soft_wrap=True
        )


def _reset(session: Session, _: str) -> None:
    before = session.conversation
    session.restart()
    _say(session, f"A new conversation: {session.conversation}. The old one was {before}.")


def _explain(session: Session, _: str) -> None:
    print_onion(session.console, session.agent)


def _history(session: Session, _: str) -> None:
    entries = session.entries()
    if not entries:
        _say(session, "Nothing has been said yet.")
    print_transcript(session.console, entries)


def _model(session: Session, name: str) -> None:
    if name:
        session.use_model(name)
    model = session.agent.model
    _say(session, f"The model is {model.provider}:{model.name}.")


def _resume(session: Session, _: str) -> int:
    if not session.pending():
        _say(session, "No call waits for an answer.")
        return DONE
    return settle(session)


def _quit(session: Session, _: str) -> None:
    session.over = True


def _say(session: Session, text: str) -> None:
    session.console.print(Text(safe(text)), highlight=False, soft_wrap=True)


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "/help": Command("/help", "what can be said here", _help),
        "/reset": Command("/reset", "begin a new conversation; the old one is kept", _reset),
        "/explain": Command("/explain", "the layers round the model, as a picture", _explain),
        "/history": Command("/history", "what has been said so far", _history),
        "/model": Command("/model [provider:model]", "which model answers, or another", _model),
        "/resume": Command("/resume", "answer the calls that wait", _resume),
        "/quit": Command("/quit", "leave; so does Ctrl-D", _quit),
    }
)
"""The commands by the word that calls them."""
