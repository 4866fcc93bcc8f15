"""`retinue resume`: a paused turn goes on with answers of the command line, or asks for them."""

import sys
from functools import partial

from retinue.cli import reader
from retinue.cli.answers import Given, pending_lines
from retinue.cli.asking import answer_all
from retinue.cli.exits import WAITS
from retinue.cli.plain import print_json
from retinue.cli.session import Session
from retinue.errors import PauseNotFound


def go_on(session: Session, given: Given, *, as_json: bool, command: str) -> int:
    """Goes on with the paused turn of the session's conversation.

    Without answers it asks for them at a terminal; elsewhere, and with `as_json`, it prints what
    waits, and that is all.

    Args:
        session: the conversation.
        given: the answers.
        as_json: whether everything is written as JSON.
        command: how it is called again, for where the turn still waits.

    Returns:
        the exit code that fits how the turn ended.

    Raises:
        PauseNotFound: nothing waits.
        ConfigError: an answer fits no call that waits; nothing was done.
        Exception: what made the turn fail.
    """
    pending = session.pending()
    if not pending:
        raise PauseNotFound(
            f"No turn of conversation {session.conversation!r} waits for an answer."
        )
    if given.any:
        code = session.resume(given.answers(pending))
    elif as_json:
        for call in pending:
            print_json(call)
        return WAITS
    elif sys.stdin.isatty() and session.console.is_terminal:
        session.prompt = partial(reader.answer, session.front.wait)
        code = answer_all(session)
    else:
        print("\n".join(pending_lines(pending)))
        return WAITS
    if code == WAITS and not as_json:
        session.tell("\n".join([*pending_lines(session.pending()), f"To go on: {command}"]))
    return code
