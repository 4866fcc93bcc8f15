"""`retinue chat`: one question after another, from a terminal or a pipe."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial

from rich.text import Text

from retinue.cli import reader
from retinue.cli.asking import settle
from retinue.cli.commands import COMMANDS, obey
from retinue.cli.exits import DONE, FAILED, WAITS, tell
from retinue.cli.keeping import store_of
from retinue.cli.session import Prompt, Session
from retinue.cli.wording import count_words, safe


def converse(session: Session, *, keep: bool, debug: bool) -> int:
    """Chats until there are no more questions.

    Where a turn waits for answers, now or from an earlier chat, the next lines are the answers.

    Args:
        session: the chat.
        keep: whether the conversation and what is typed outlive the process.
        debug: whether errors come with a traceback.

    Returns:
        the exit code: of the first turn in a pipe that did not complete, and 0 at a terminal,
        where the user has seen how each one ended.

    Raises:
        StoreError: the conversation cannot be read.
        KeyboardInterrupt: Ctrl-C, but for those presses that cancel a turn.
    """
    if not (sys.stdin.isatty() and session.console.is_terminal):
        if store_of(session.agent) is not None:
            session.entries()  # a database that cannot be read is told before the first question
        lines = reader.lines(session.front.wait)
        session.prompt = _piped(lines)
        codes = [code for code in _answers(session, lines, debug) if code != DONE]
        return codes[0] if codes else DONE
    session.prompt = partial(reader.answer, session.front.wait)
    _greet(session)
    for _ in _answers(session, reader.typed(COMMANDS, session.front.wait, keep=keep), debug):
        pass
    _take_leave(session, keep)
    return DONE


def _answers(session: Session, questions: Iterable[str], debug: bool) -> Iterable[int]:
    yield _answer(session, None, debug)
    for question in questions:
        yield _answer(session, question, debug)
        if session.over:
            return


def _answer(session: Session, question: str | None, debug: bool) -> int:
    """Answers one line; None stands for the start, where an earlier turn may wait."""
    try:
        if question is None:
            return _offer(session)
        if question.startswith("/"):
            return obey(session, question)
        code = session.ask(question.strip())
        return settle(session) if code == WAITS else code
    except Exception as error:
        tell(error, debug=debug)
        return FAILED


def _offer(session: Session) -> int:
    """An earlier chat may have left calls waiting."""
    waiting = session.pending()
    if not waiting:
        return DONE
    session.tell(f"A turn of this conversation waits for {count_words(len(waiting), 'answer')}.")
    return settle(session)


def _piped(lines: Iterator[str]) -> Prompt:
    def prompt(text: str, default: str) -> str:
        line = next(lines, None)
        if line is None:
            raise EOFError
        return line

    return prompt


def _greet(session: Session) -> None:
    model = session.agent.model
    said = [f"{model.provider}:{model.name}", f"conversation {session.conversation}"]
    if store_of(session.agent) is not None and (before := len(session.entries())):
        said.append(f"{count_words(before, 'message')} so far")
    _whisper(session, " · ".join([*said, "/help"]))


def _take_leave(session: Session, keep: bool) -> None:
    if keep:
        _whisper(session, f"To go on: --conversation {session.conversation}")


def _whisper(session: Session, text: str) -> None:
    session.console.print(Text(safe(text), style="dim"), highlight=False, soft_wrap=True)
