"""`retinue run`: one question, one turn."""

import sys
from typing import Final

from rich.console import Console

from retinue.agent import Agent
from retinue.cli.exits import code_of
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
    *,
    conversation: str | None,
    owner: str | None,
    as_json: bool,
    thinking: bool,
) -> int:
    """Runs the turn and shows it, then lets go of all that the agent holds.

    Returns:
        the exit code that fits how it ended.

    Raises:
        Exception: what made the turn fail.
    """
    view = JsonLines() if as_json else view_on(Console(), thinking=thinking)
    try:
        outcome = await run_turn(agent, question, view, conversation=conversation, owner=owner)
        return code_of(outcome.status)
    finally:
        await let_go(agent)
