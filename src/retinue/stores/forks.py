"""What must be at rest while the process forks: held still before, let go on both sides after.

Threads may fork at once; they do so one after another, or each would go on with what another one
holds. Nothing here knows connections.
"""

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that is in order in a forked child because it was at rest."""

    def before_fork(self) -> None:
        """Comes to rest, and stays so."""
        ...

    def after_fork(self) -> None:
        """Goes on, in the parent."""
        ...

    def after_fork_in_child(self) -> None:
        """Goes on in the child, where no other thread is."""
        ...


def attend(one: Forkable) -> None:
    """Has it rest in every fork from now on, for as long as it is used."""
    _attended.add(one)


_attended: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_turn = threading.Lock()  # held from before a fork until after it
_resting: list[Forkable] = []  # by those who hold it


def _before() -> None:
    _turn.acquire()
    _resting.extend(_attended)
    for one in _resting:
        one.before_fork()


def _after() -> None:
    while _resting:
        _resting.pop().after_fork()
    _turn.release()


def _after_in_child() -> None:
    global _turn
    while _resting:
        _resting.pop().after_fork_in_child()
    _turn = threading.Lock()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
