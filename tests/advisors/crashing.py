"""Processes that die at a write of the store, and what others find after them.

A `Mortal` store dies before or after one of its writes: from then on nothing of the process counts.
The next process has a new agent and a new store on the same file.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from retinue import Agent, Approve, Reply, Retry, TurnResponse
from retinue.messages import Message
from retinue.messages.window import is_question
from retinue.models.scripted import Scripted, Step
from retinue.stores import Entry, Store
from retinue.stores.views import answered
from retinue.tools import Answer, PendingCall
from tests.strict import check_transcript

UNKNOWN: Final = "It is not known whether this call ran"
_WRITES: Final = frozenset({"append", "revise", "hold", "release", "fork", "rollback", "prune"})


Script = Sequence[Step] | Callable[[Sequence[Message]], Step]
"""What a model says in a turn, round by round; or a function of the turn's messages."""


class Death(BaseException):
    """The process is gone."""

    failure = "fatal"


@dataclass
class World:
    """What stands outside the processes, and lasts.

    Attributes:
        effects: the side effects that happened, in order.
        keys: the idempotency keys they were given.
        stored: messages that a store has said to hold, by id.
        requests: the messages of every model call.
        broken: what a person must mend.
    """

    effects: list[str] = field(default_factory=list[str])
    keys: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    stored: dict[str, Message] = field(default_factory=dict[str, Message])
    requests: list[Sequence[Message]] = field(default_factory=list[Sequence[Message]])
    broken: bool = True


class Process:
    """One process: its store, and whether it lives.

    Args:
        world: what it acts on.
        store: the store that it opens.
        at: the number of the write at which it dies, from 0; None for never.
        after: whether that write still happens.
    """

    def __init__(
        self, world: World, store: Store, at: int | None = None, *, after: bool = False
    ) -> None:
        self.world = world
        self.dead = False
        self.writes = 0
        self.store = store
        self._at = at
        self._after = after

    def act(self, effect: str, key: str = "") -> None:
        """Does something in the world."""
        if self.dead:
            raise Death
        self.world.effects.append(effect)
        self.world.keys.setdefault(effect, set()).add(key)

    def writing(self, conversation: str, *, wait: bool = True) -> AbstractAsyncContextManager[None]:
        """The store's."""
        return self.store.writing(conversation, wait=wait)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.store, name)

        async def call(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise Death
            number = self.writes
            dies = name in _WRITES and number == self._at
            self.writes += name in _WRITES
            self.dead = dies and not self._after
            if self.dead:
                raise Death
            found = await method(*args, **options)
            if self.dead or dies:
                self.dead = True
                raise Death
            if name == "append":
                self.world.stored.update((message.id, message) for message in args[1])
            return found

        return call

    def model(self, scripts: Mapping[str, Script]) -> Scripted:
        """A model that knows by the messages alone where in a turn it is."""

        def step(request: Any) -> Step:
            self.world.requests.append(request.messages)
            asked = max(at for at, one in enumerate(request.messages) if is_question(one))
            script = scripts[request.messages[asked].text]
            turn = request.messages[asked:]
            if callable(script):
                return script(turn)
            return script[min(sum(one.role == "assistant" for one in turn), len(script) - 1)]

        return Scripted(step, repeat=True)


ANSWERS: Final[dict[str, Answer]] = {
    "approval": Approve(),
    "question": Reply("blue"),
    "external": Reply("a file"),
    "environment": Retry(),
}


def answers(pending: Sequence[PendingCall]) -> dict[str, Answer]:
    """What a person says to each call."""
    return {one.id: ANSWERS[one.kind] for one in pending}


async def finish(agent: Agent) -> TurnResponse | None:
    """Goes on with whatever was begun, as whoever starts the next process does."""
    last = None
    for _ in range(6):
        pending = await agent.pending("c")
        if pending:
            last = await agent.resume("c", answers(pending))
            continue
        found = await agent.recover("c")
        if found is None:
            return last
        last = found
    raise AssertionError("the turn never ends")


async def check(world: World, store: Store, once: Sequence[str]) -> None:
    """What must hold, wherever processes have died.

    Args:
        world: what has happened.
        store: what was kept.
        once: effects that must not happen twice.
    """
    for messages in world.requests:
        check_transcript(messages)
    entries = await store.tail("c")
    check_transcript(answered(entries))
    names = [entry.message.id for entry in entries]
    assert len(set(names)) == len(names)
    assert world.stored.keys() <= set(names), "a message is lost that was stored"
    questions = [e.message.text for e in entries if is_question(e.message) and not e.state]
    assert len(set(questions)) == len(questions), "a question is there twice"
    for effect in once:
        assert world.effects.count(effect) <= 1, f"{effect} happened twice"
    assert all(len(keys) == 1 for keys in world.keys.values()), "a second idempotency key"
    _check_results(world, entries)


def _check_results(world: World, entries: Sequence[Entry]) -> None:
    """A result that says that something was done is right, and what may run again has one."""
    for entry in entries:
        for result in entry.message.tool_results:
            if result.text.startswith("did "):
                assert result.text.removeprefix("did ") in world.effects
            assert result.name != "look" or result.ok
