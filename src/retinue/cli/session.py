"""A chat's state: the agent, the conversation, and the event loop that turns run in.

The loop runs while a turn does, and stands still while somebody types.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence

from rich.console import Console

from retinue.agent import Agent
from retinue.cli.exits import code_of
from retinue.cli.keeping import let_go, store_of
from retinue.cli.plain import Plain
from retinue.cli.screen import Screen
from retinue.cli.turns import View, run_turn
from retinue.errors import ConfigError
from retinue.stores import Entry


class Session:
    """One chat. Leave its `with` to let go of the model and the database.

    Args:
        agent: the agent, with its memory.
        conversation: the id to go on with, or None for a new one.
        owner: whose conversation it is.
        thinking: whether reasoning is shown.

    Attributes:
        console: the terminal or pipe that answers go to.
        over: whether the user has asked to leave.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        conversation: str | None = None,
        owner: str | None = None,
        thinking: bool = False,
    ) -> None:
        self.agent = agent
        self.conversation = _new_id() if conversation is None else conversation
        self.console = Console()
        self.over = False
        self._owner = owner
        self._view = view_on(self.console, thinking=thinking)
        self._runner = asyncio.Runner()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            self._runner.run(let_go(self.agent))

    def ask(self, question: str) -> int:
        """Runs one turn and shows it; gives the exit code that fits how it ended.

        Raises:
            Exception: what made the turn fail.
        """
        turn = run_turn(
            self.agent,
            question,
            self._view,
            conversation=self.conversation,
            owner=self._owner,
        )
        return code_of(self._runner.run(turn).status)

    def entries(self) -> Sequence[Entry]:
        """The log of the conversation so far.

        Raises:
            ConfigError: the agent's memory is none that can be read from here.
            StoreError: the store cannot read it, or it belongs to somebody else.
        """
        store = store_of(self.agent)
        if store is None:
            raise ConfigError(f"The memory of {self.agent.name!r} cannot be read from here.")

        async def read() -> Sequence[Entry]:
            return await store.tail(self.conversation, owner=self._owner)

        return self._runner.run(read())

    def restart(self) -> None:
        """Begins a new conversation; the old one stays where it is."""
        self.conversation = _new_id()

    def use_model(self, model: str) -> None:
        """Goes on with another model.

        Raises:
            ConfigError: the text names none, or its key is missing.
        """
        before = self.agent
        self.agent = before.with_(model=model)
        self._runner.run(before.model.close())


def view_on(console: Console, *, thinking: bool) -> View:
    """The view for a terminal, or for a pipe if the console is none."""
    return Screen(console, thinking=thinking) if console.is_terminal else Plain(thinking=thinking)


def _new_id() -> str:
    return f"{time.strftime('%Y-%m-%d')}-{secrets.token_hex(3)}"
