"""Somebody is asked about the calls of a paused turn, at a terminal or line by line from a pipe."""

from collections.abc import Mapping, Sequence
from typing import Final

from retinue.cli.answers import (
    EDIT,
    arguments_in,
    check_edited,
    choices,
    read_answer,
    waiting_lines,
    written,
)
from retinue.cli.exits import WAITS
from retinue.cli.keeping import store_of
from retinue.cli.reader import NotNow
from retinue.cli.session import Session
from retinue.cli.wording import count_words
from retinue.errors import ConfigError
from retinue.stores import InMemory
from retinue.tools import Answer, Approve, PendingCall

_PROMPT: Final = "answer> "
_EDITING: Final = "args> "


def settle(session: Session) -> int:
    """`answer_all` in a chat: says how to go on where calls are left waiting."""
    code = answer_all(session)
    if code == WAITS and (waiting := session.pending()):
        session.tell(_how_to_go_on(session, len(waiting)))
    return code


def answer_all(session: Session) -> int:
    """Asks about each call that waits and goes on with the turn, until nothing waits any more or
    whoever is asked has no more answers.

    Returns:
        the exit code that fits how the turn ended; `WAITS` where it still waits.

    Raises:
        Exception: what made the turn fail.
    """
    code, left = WAITS, frozenset[str]()
    while calls := [call for call in session.pending() if call.id not in left]:
        answers = _collect(session, calls)
        left |= {call.id for call in calls} - answers.keys()
        if not answers:
            break
        code = session.resume(answers)
    return code


def _collect(session: Session, calls: Sequence[PendingCall]) -> Mapping[str, Answer]:
    """Answers to calls, one after another. Ctrl-C takes back those that were given."""
    answers: dict[str, Answer] = {}
    try:
        for call in calls:
            session.tell("\n".join(waiting_lines(call)))
            answer = _ask(session, call)
            if answer is not None:
                answers[call.id] = answer
    except NotNow:
        return {}
    except EOFError:
        pass
    return answers


def _ask(session: Session, call: PendingCall) -> Answer | None:
    edits = session.console.is_terminal and call.kind == "approval"
    session.tell(f"({choices(call, edits=edits)})")
    while True:
        line = session.prompt(_PROMPT, "").strip()
        try:
            if edits and line and EDIT.startswith(line):
                answer = Approve(arguments_in(session.prompt(_EDITING, written(call.arguments))))
            else:
                answer = read_answer(call, line)
            check_edited(call, answer, session.agent.tools)
        except ConfigError as error:
            session.tell(str(error))
            continue
        return answer


def _how_to_go_on(session: Session, count: int) -> str:
    later = ""
    if not isinstance(store_of(session.agent), InMemory):
        later = f", here or in a later chat with --conversation {session.conversation}"
    return (
        f"{count_words(count, 'call')} left waiting. /resume asks again{later}; a new message"
        " cancels what waits."
    )
