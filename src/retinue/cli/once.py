"""`retinue run`: one question, one turn."""

import sys
from typing import Final

from rich.console import Console

from retinue.agent import Agent
from retinue.cli.answers import pending_lines
from retinue.cli.exits import code_of
from retinue.cli.foreground import Foreground
from retinue.cli.keeping import let_go
from retinue.cli.plain import JsonLines
from retinue.cli.session import view_on
from retinue.cli.turns import run_turn

FROM_STDIN: Final = "-"


def question_of(text: str) -> str:
    """The question itself; `-` stands for all of standard input."""
    return sys.stdin.read() if text == FROM_STDIN else text


async def ask_once(
    agent: Agent,
    question: str,
    front: Foreground,
    *,
    conversation: str | None,
    owner: str | None,
    as_json: bool,
    thinking: bool,
    resume: str,
) -> int:
    """Runs the turn and shows it, then lets go of all that the agent holds.

    Args:
        agent, question, conversation, owner: the turn.
        front: where it runs.
        as_json: whether it is shown as events.
        thinking: whether reasoning is shown.
        resume: the command that goes on with the conversation, for a turn that pauses.

    Returns:
        the exit code that fits how it ended.

    Raises:
        Exception: what made the turn fail.
    """
    view = JsonLines() if as_json else view_on(Console(), thinking=thinking)
    try:
        outcome = await run_turn(
            agent, question, view, front, conversation=conversation, owner=owner
        )
        if outcome.status == "paused":
            view.note("\n".join([*pending_lines(outcome.pending), _advice(conversation, resume)]))
        return code_of(outcome.status)
    finally:
        await let_go(agent)


def _advice(conversation: str | None, resume: str) -> str:
    if conversation is None:
        return "It cannot be gone on with, since it is not kept; name a --conversation."
    return f"To go on: {resume}"
