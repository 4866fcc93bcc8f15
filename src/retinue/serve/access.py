"""Who may do what: callers with an owner and scopes, and the API keys that tell who they are.

A credential is what follows `Bearer` in a request. It is looked at before anything else of the
request is. Whose conversations somebody sees follows from it alone, never from what a client says.
Tokens that others sign are in `tokens`.
"""

import hashlib
import ipaddress
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal, Protocol, cast, get_args

import msgspec
from msgspec import Meta, Struct

from retinue.errors import ConfigError
from retinue.serve.faults import Refused, log

Scope = Literal["turns", "conversations", "metrics", "work"]
"""Run and answer turns; read, fork and delete conversations; read metrics and loads; be a worker
that takes turns."""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
USUAL: Final[frozenset[Scope]] = frozenset({"turns", "conversations"})
"""What a key or token may do that says nothing of it."""

_PREFIX: Final = "rk-"
LONGEST: Final = 8_192
"""Characters of a credential that is looked at."""


class Caller(Struct, frozen=True):
    """Somebody who may come in. `owner` None is nobody in particular."""

    owner: str | None = None
    scopes: frozenset[Scope] = USUAL

    def check(self, scope: Scope) -> None:
        """Refuses what the scopes do not hold.

        Raises:
            Refused: `forbidden`.
        """
        if scope not in self.scopes:
            raise Refused("forbidden", f"This key or token has no scope {scope!r}.")


class Access(Protocol):
    """Tells callers from their credentials."""

    def caller(self, credential: str | None) -> Caller:
        """The caller behind a credential; None is no credential at all.

        Raises:
            Refused: `unauthenticated`.
        """
        ...


class Anyone:
    """Lets everybody in, as one and the same owner: for a server on the loopback interface."""

    def caller(self, credential: str | None) -> Caller:
        """See `Access.caller`."""
        return Caller(None, frozenset(SCOPES))


class AnyOf:
    """Lets in whom one of several lets in.

    Args:
        accesses: asked in this order.
    """

    def __init__(self, accesses: Sequence[Access]) -> None:
        self._accesses = tuple(accesses)

    def caller(self, credential: str | None) -> Caller:
        """See `Access.caller`."""
        refused = unknown("no key or token is taken here")
        for access in self._accesses:
            try:
                return access.caller(credential)
            except Refused as error:
                refused = error
        raise refused


class ApiKey(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is kept of a key: whose it is, what it may do, and its SHA-256.

    A key holds 256 bits of chance, so a plain hash of it tells nothing.
    """

    owner: Annotated[str, Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...] = ("conversations", "turns")


class ApiKeys:
    """API keys, from a file or given.

    A file holds one key a line as JSON, as `retinue key` writes it. Lines that begin with # are
    left out. A change of the file counts at once, so that a key is withdrawn by its line.

    Args:
        keys: the file, or the keys.

    Raises:
        ConfigError: the file cannot be read, or a line holds no key.
    """

    def __init__(self, keys: Path | str | Iterable[ApiKey]) -> None:
        self._file: Path | None = None
        self._seen = self._blamed = _NO_FILE
        self._next_look = 0.0
        if isinstance(keys, Path | str):
            self._file = Path(keys)
            self._seen = _mark(self._file)
            self._callers = _callers(read_keys(self._file))
        else:
            self._callers = _callers(keys)

    def caller(self, credential: str | None) -> Caller:
        """See `Access.caller`."""
        if self._file is not None:
            self._look(self._file)
        if credential is None:
            raise unknown("give a key or token as `Authorization: Bearer ...`")
        if len(credential) <= LONGEST:
            found = self._callers.get(hashed(credential))
            if found is not None:
                return found
        raise unknown("the key or token is not known")

    def _look(self, file: Path) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY
        mark = _mark(file)
        try:
            if mark != self._seen:
                self._callers = _callers(read_keys(file))
                self._seen = mark
        except ConfigError as error:
            if mark != self._blamed:
                log.error("The API keys stay as they were. %s", error)
            self._blamed = mark


_LOOK_EVERY: Final = 0.2
"""Seconds between two looks at the file of the keys."""


def new_key(owner: str, scopes: Sequence[str] = ("conversations", "turns")) -> tuple[str, ApiKey]:
    """A new key, and what is to be kept of it. The key itself is kept nowhere.

    Raises:
        ConfigError: the owner or a scope cannot be one.
    """
    if not is_name(owner):
        raise ConfigError(f"A key cannot have the owner {owner!r}; give a name.")
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(f"There is no scope {scope!r}; there are {', '.join(SCOPES)}.")
    key = _PREFIX + secrets.token_urlsafe(32)
    kept = cast("tuple[Scope, ...]", tuple(sorted(set(scopes))))
    return key, ApiKey(owner, hashed(key), kept)


def add_key(file: Path, key: ApiKey) -> None:
    """Writes a key to the end of a file, which is made for its owner alone if it is not there.

    Raises:
        ConfigError: the file cannot be written.
    """
    line = msgspec.json.encode(key) + b"\n"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a+b") as opened:
            if opened.tell() and not _ends_in_newline(opened):
                line = b"\n" + line  # else the key would be part of a remark, or of another key
            opened.write(line)
    except OSError as error:
        raise ConfigError(
            f"The keys cannot be written to {file}: {error.strerror or error}."
        ) from error


def _ends_in_newline(opened: BinaryIO) -> bool:
    opened.seek(-1, os.SEEK_END)
    return opened.read(1) == b"\n"


def read_keys(file: Path) -> list[ApiKey]:
    """The keys of a file.

    Raises:
        ConfigError: it cannot be read, or a line holds no key.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(
            f"The keys cannot be read from {file}: {error.strerror or error}. Make a key with:"
            f" retinue key OWNER --file {file}"
        ) from error
    keys: list[ApiKey] = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            try:
                keys.append(msgspec.json.decode(line, type=ApiKey))
            except (msgspec.MsgspecError, RecursionError):
                raise ConfigError(
                    f"Line {number} of {file} holds no key. Make one with: retinue key OWNER"
                ) from None
    return keys


def hashed(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether the host is this machine, told without asking a name server."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _callers(keys: Iterable[ApiKey]) -> dict[str, Caller]:
    return {key.sha256: Caller(key.owner, frozenset(key.scopes)) for key in keys}


def _mark(file: Path) -> tuple[int, int, int]:
    """What changes when the file does; what a missing file has is the mark of none."""
    try:
        about = file.stat()
    except OSError:
        return (0, 0, 0)
    return (about.st_mtime_ns, about.st_size, about.st_ino)


_NO_FILE: Final = (-1, -1, -1)
"""The mark of no file and of no missing one."""


def is_name(owner: str) -> bool:
    """Whether an owner can be called so."""
    return bool(owner.strip()) and owner.isprintable() and len(owner) <= _LONGEST_NAME


_LONGEST_NAME: Final = 255
"""Characters of an owner's name: as many as OpenID Connect gives a `sub`."""


def unknown(why: str) -> Refused:
    """The refusal of somebody who is not known, and why."""
    return Refused("unauthenticated", f"Who you are is not known: {why}.")
