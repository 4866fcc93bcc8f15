"""A chat's state: the agent, the conversation, and the foreground that turns run in.

The loop runs while a turn does, and stands still while somebody types.
"""

import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from retinue.agent import Agent
from retinue.chains import TurnResponse
from retinue.cli.exits import code_of
from retinue.cli.foreground import Foreground
from retinue.cli.keeping import let_go, store_of
from retinue.cli.plain import Plain
from retinue.cli.screen import Screen
from retinue.cli.turns import View, run_turn, show_turn
from retinue.cli.wording import safe
from retinue.errors import ConfigError
from retinue.stores import Entry
from retinue.tools import Answer, PendingCall

Prompt = Callable[[str, str], str]
"""Asks for one answer: the prompt, and what stands there already. EOFError: none will come."""


class Session:
    """One chat. Leave its `with` to let go of the model and the database.

    Args:
        agent: the agent, with its memory.
        front: what its turns run in, and whoever chats is waited for in.
        conversation: the id to go on with, or None for a new one.
        owner: whose conversation it is.
        thinking: whether reasoning is shown.
        view: what shows the turns; by default one that fits the console.

    Attributes:
        console: the terminal or pipe that answers go to.
        over: whether the user has asked to leave.
        prompt: how whoever chats is asked about calls that wait; nobody is, at first.
    """

    def __init__(
        self,
        agent: Agent,
        front: Foreground,
        *,
        conversation: str | None = None,
        owner: str | None = None,
        thinking: bool = False,
        view: View | None = None,
    ) -> None:
        self.agent = agent
        self.front = front
        self.conversation = _new_id() if conversation is None else conversation
        self.console = Console()
        self.over = False
        self.prompt: Prompt = _nobody
        self._owner = owner
        self._view = view_on(self.console, thinking=thinking) if view is None else view

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.front.run(let_go(self.agent))

    def ask(self, question: str) -> int:
        """Runs one turn and shows it; gives the exit code that fits how it ended.

        Raises:
            Exception: what made the turn fail.
        """
        turn = run_turn(
            self.agent,
            question,
            self._view,
            self.front,
            conversation=self.conversation,
            owner=self._owner,
        )
        return code_of(self.front.run(turn).status)

    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that a paused turn of the conversation waits for.

        Raises:
            SnapshotError: a later version of retinue has paused it.
            StoreError: the store cannot read it, or it belongs to somebody else.
        """
        try:
            return self.front.run(self.agent.pending(self.conversation, owner=self._owner))
        except ConfigError:
            return ()  # its memory keeps no turns that wait

    def resume(self, answers: Mapping[str, Answer]) -> int:
        """Goes on with the paused turn and shows it; gives the exit code as `ask` does.

        Raises:
            ConfigError: an answer fits no call that waits; nothing was done.
            PauseNotFound: nothing waits any more.
            Exception: what made the turn fail.
        """

        async def turn() -> TurnResponse:
            begun = await self.agent.stream_resume(self.conversation, answers, owner=self._owner)
            return await show_turn(begun, self._view, self.front)

        return code_of(self.front.run(turn()).status)

    def tell(self, text: str) -> None:
        """Says something that is no answer: on the terminal, or on standard error."""
        if self.console.is_terminal:
            self.console.print(Text(safe(text)), highlight=False, soft_wrap=True)
        else:
            print(safe(text), file=sys.stderr, flush=True)

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

        return self.front.run(read())

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
        self.front.run(before.model.close())


def view_on(console: Console, *, thinking: bool) -> View:
    """The view for a terminal, or for a pipe if the console is none."""
    return Screen(console, thinking=thinking) if console.is_terminal else Plain(thinking=thinking)


def _nobody(prompt: str, default: str) -> str:
    raise EOFError


def _new_id() -> str:
    return f"{time.strftime('%Y-%m-%d')}-{secrets.token_hex(3)}"
