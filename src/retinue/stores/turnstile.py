"""One holder per key within the process, and the others in the order of arrival.

It knows nothing of conversations or files. Unlike `asyncio.Lock` it serves tasks of several event
loops and threads, and a holder may leave from another task than the one that entered.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Hashable


class _Place:
    """One that waits, in its own event loop."""

    __slots__ = ("called", "future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.called = False

    def call(self) -> bool:
        """Tells the waiter that it holds. False if its loop is gone."""
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed, and nobody waits there any more
            return False
        self.called = True
        return True

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Turnstile:
    """A queue per key; a key that nobody holds costs nothing."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drops all holders and waiters, as in a forked child, where none of them lives on."""
        # Reentrant: a waiter that is thrown away leaves the line from within the garbage collector,
        # which may run in the middle of any of these methods.
        self._lock = threading.RLock()
        self._waiting: dict[Hashable, deque[_Place]] = {}

    async def enter(self, key: Hashable, *, wait: bool = True) -> bool:
        """Returns True as the holder of the key, or with `wait=False` False if it is held."""
        with self._lock:
            queue = self._waiting.get(key)
            if queue is None:
                self._waiting[key] = deque()
                return True
            if not wait:
                return False
            place = _Place()
            queue.append(place)
        try:
            await place.future
        except BaseException:
            self._give_up(key, place)
            raise
        return True

    def leave(self, key: Hashable) -> None:
        """Hands the key to the one who has waited longest."""
        with self._lock:
            queue = self._waiting.get(key)
            while queue:
                if queue.popleft().call():
                    return
            self._waiting.pop(key, None)

    def _give_up(self, key: Hashable, place: _Place) -> None:
        with self._lock:
            if not place.called:
                queue = self._waiting.get(key)
                if queue and place in queue:
                    queue.remove(place)
                return
        self.leave(key)  # it was called and cancelled at once: the next one must not wait for it
