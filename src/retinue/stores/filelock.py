"""Locks on names between the processes of one machine, which the system frees when one dies.

A name is one byte of a side file, at the offset of its hash; the file stays empty. Within one
process these locks exclude nobody: `turnstile` does that. POSIX drops all of a process's locks on
a file when it closes *any* descriptor of it, so there is one descriptor per file here, open while
a lock on it is held or waited for; nothing else in the process should open the file.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import threading
from typing import Final

from retinue.errors import StoreError

_TAKEN: Final = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_BITS: Final = 62  # of the hash: an offset is a number of 63 bits


class _Opened:
    """The one descriptor of a file, and how many use it."""

    __slots__ = ("descriptor", "users")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.users = 0


_guard = threading.Lock()
_files: dict[str, _Opened] = {}


class FileLock:
    """A lock on one name: `open`, `take` until it succeeds, then `close`, which frees it.

    Args:
        path: the side file; made if it is not there. Its folder must be.
        name: any text.
    """

    def __init__(self, path: str, name: str) -> None:
        digest = hashlib.blake2b(name.encode("utf-8"), digest_size=8).digest()
        self._path = path
        self._offset = int.from_bytes(digest, "big") >> (64 - _BITS)
        self._file: _Opened | None = None
        self._held = False

    def open(self) -> None:
        """Makes ready to take the lock.

        Raises:
            StoreError: the file cannot be opened or made.
        """
        with _guard:
            opened = _files.get(self._path)
            if opened is None:
                opened = _files[self._path] = _Opened(self._descriptor())
            opened.users += 1
            self._file = opened

    def take(self) -> bool:
        """Takes the lock, or returns False where another process holds it.

        Raises:
            StoreError: the file system knows no locks.
        """
        with _guard:
            if self._file is None:
                return False
            try:
                fcntl.lockf(self._file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._offset)
            except OSError as error:
                if error.errno in _TAKEN:
                    return False
                raise StoreError(
                    f"{self._path} cannot be locked ({error.strerror}); keep the database on a"
                    " local disk."
                ) from error
            self._held = True
            return True

    def close(self) -> None:
        """Frees the lock if it was taken."""
        with _guard:
            opened, self._file = self._file, None
            # In a forked child the file is no longer known: the lock is its parent's to free.
            if opened is None or _files.get(self._path) is not opened:
                return
            if self._held:
                self._held = False
                with contextlib.suppress(OSError):  # the system frees it with the process
                    fcntl.lockf(opened.descriptor, fcntl.LOCK_UN, 1, self._offset)
            opened.users -= 1
            if not opened.users:
                del _files[self._path]
                os.close(opened.descriptor)

    def _descriptor(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(
                f"{self._path}, which keeps writers apart, cannot be opened ({error.strerror});"
                " make its folder and the file writable for this user."
            ) from error


def _start_afresh() -> None:
    """A forked child holds none of its parent's locks; its copies of the files are of no use."""
    global _guard
    _guard = threading.Lock()
    for opened in _files.values():
        os.close(opened.descriptor)
    _files.clear()


os.register_at_fork(after_in_child=_start_afresh)
