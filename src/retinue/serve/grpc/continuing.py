"""How a worker goes on with a turn that another one, which is gone, may have begun.

The log of the conversation says how far it came:

    nothing of it is there         the job is run as if for the first time
    its pause is not used up       the same; it is a resume
    it has ended, or pauses        its end is told again, from the log
    it was cut off                 it is recovered: what has a result does not run again
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from msgspec import structs

from retinue.chains.events import (
    AttemptStarted,
    Event,
    Paused,
    Status,
    TextChunk,
    TurnEnded,
    TurnStarted,
)
from retinue.chains.log import ENDED, has_ended
from retinue.chains.snapshot import Snapshot
from retinue.messages import Message
from retinue.serve.faults import Refused
from retinue.serve.jobs import Job
from retinue.stores import Store

_PAGE: Final = 64  # entries in which the last message of a turn is looked for

GRACE: Final = 30.0
"""Seconds that a worker which is cut off from its gateway has to end the turn."""


class Told:
    """A turn that is over, told again."""

    def __init__(self, turn: str, events: Iterable[Event]) -> None:
        self.id = turn
        self._events = tuple(events)

    async def __aiter__(self) -> AsyncIterator[Event]:
        for event in self._events:
            yield event

    def cancel(self, reason: str) -> None:
        """It is over already."""


async def how_to_go_on(job: Job, turn: str, store: Store) -> Job | Told:
    """What is to be run for the job, or how its turn has ended.

    Args:
        job: what was to be run; it has a conversation.
        turn: the id of its turn; where that is not known, the id of the job.
        store: the conversations of its agent.

    Raises:
        Refused: the conversation is still being written (`unavailable`), or a later turn of it has
            begun (`conflict`).
        ConversationNotFound: it belongs to somebody else.
    """
    conversation, owner = job.conversation or "", job.owner
    await _until_nobody_writes(store, conversation)
    entries = await store.tail(conversation, owner=owner, limit=_PAGE)
    if job.kind != "run" and turn == job.id and entries:
        turn = entries[-1].turn  # the other worker was gone before it could say which turn it is
    held = await store.held(conversation, owner=owner)
    snapshot = None if held is None else Snapshot.load(held.document)
    if snapshot is not None and snapshot.turn == turn:
        waiting = {call.id for call in snapshot.pending}
        unused = job.kind == "resume" and waiting.issuperset(job.answers)
        return job if unused else _paused(snapshot)
    own = [one for one in entries if one.turn == turn and one.state in ("", "unanswered")]
    if not own:
        return job
    if entries[-1].turn != turn:
        raise Refused("conflict", "A later turn of the conversation has begun meanwhile.")
    last = own[-1].message
    return _ended(job, turn, last) if has_ended(last) else structs.replace(job, kind="recover")


async def _until_nobody_writes(store: Store, conversation: str) -> None:
    """The other worker may be cut off from its gateway, and not dead."""
    try:
        async with asyncio.timeout(GRACE), store.writing(conversation):
            return
    except TimeoutError:
        raise Refused(
            "unavailable", f"The conversation was still being written after {GRACE:g} seconds."
        ) from None


def _paused(snapshot: Snapshot) -> Told:
    turn, at = snapshot.turn, (snapshot.round, snapshot.attempt)
    kinds = ", ".join(f"{one.tool} ({one.kind})" for one in snapshot.pending)
    reason = f"Waits for answers: {kinds}."
    return Told(
        turn,
        (
            TurnStarted(1, 0, 0, (), turn, snapshot.conversation),
            Paused(2, *at, (), reason, snapshot.pending),
            TurnEnded(3, *at, (), turn, "paused", reason=reason),
        ),
    )


def _ended(job: Job, turn: str, last: Message) -> Told:
    status: Status = last.meta.get(ENDED, "cancelled" if last.partial else "completed")
    answer = last if last.role == "assistant" else None
    text = "" if answer is None else answer.text
    events: list[Event] = [TurnStarted(1, 0, 0, (), turn, job.conversation)]
    if text:
        events += [AttemptStarted(2, 1, 1, ()), TextChunk(3, 1, 1, (), text)]
    reason = None if status == "completed" else "The worker that ran the turn was lost after it."
    end = TurnEnded(
        len(events) + 1, 1, 1, (), turn, status, text=text, message=answer, reason=reason
    )
    return Told(turn, (*events, end))
