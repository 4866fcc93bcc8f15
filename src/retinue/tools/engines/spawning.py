"""How the processes of a pool are started. Imported with the first pool, as multiprocessing is."""

from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import RLock


class Spawning(SpawnContext):
    """Starts fresh processes: a fork of a process with threads and an event loop may hang.

    It keeps the locks of its pool alive. A pool lets go of them before it ends its processes, and
    one that is just starting would print a traceback because it cannot find them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._locks: list[RLock] = []

    def RLock(self) -> RLock:
        """A lock that processes share."""
        lock = super().RLock()
        self._locks.append(lock)
        return lock
