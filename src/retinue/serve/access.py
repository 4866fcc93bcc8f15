"""Who may do what: API keys and JSON Web Tokens, each with an owner and scopes.

A credential is what follows `Bearer` in a request. It is looked at before anything else of the
request is. Whose conversations somebody sees follows from it alone, never from what a client says.
"""

import hashlib
import ipaddress
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast, get_args

import msgspec
from msgspec import Struct

from retinue.errors import ConfigError, MissingExtraError
from retinue.serve.faults import Refused, log

Scope = Literal["turns", "conversations", "metrics", "work"]
"""Run and answer turns; read, fork and delete conversations; read metrics and loads; be a worker
that takes turns."""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
USUAL: Final[frozenset[Scope]] = frozenset({"turns", "conversations"})
"""What a key or token may do that says nothing of it."""

_PREFIX: Final = "rk-"
_LONGEST: Final = 8_192


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
        refused = _refused("no key or token is taken here")
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

    owner: str
    sha256: str
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
        self._seen: tuple[int, int, int] = (0, 0, 0)
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
            raise _refused("give a key or token as `Authorization: Bearer ...`")
        if len(credential) <= _LONGEST:
            found = self._callers.get(hashed(credential))
            if found is not None:
                return found
        raise _refused("the key or token is not known")

    def _look(self, file: Path) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY
        try:
            mark = _mark(file)
            if mark != self._seen:
                self._callers = _callers(read_keys(file))
                self._seen = mark
        except ConfigError as error:
            log.error("The API keys stay as they were. %s", error)


_LOOK_EVERY: Final = 0.2
"""Seconds between two looks at the file of the keys."""


class Tokens:
    """JSON Web Tokens that somebody else has signed. They must have an `exp` and an owner.

    Args:
        key: the secret (HS256 and its kin; 32 bytes or more), or the public key in PEM.
        algorithms: what may have signed them. The token has no say in it.
        issuer: what its `iss` must be, if given.
        audience: what its `aud` must hold, if given.
        owner: the claim that names the owner.
        scopes: the claim that lists scopes, as a list or with spaces; without it, `USUAL`.
        leeway: seconds that clocks may differ.

    Raises:
        ConfigError: a value cannot be used.
        MissingExtraError: PyJWT is not installed.
    """

    def __init__(
        self,
        key: str | bytes,
        *,
        algorithms: Sequence[str] = ("HS256",),
        issuer: str | None = None,
        audience: str | None = None,
        owner: str = "sub",
        scopes: str = "scope",
        leeway: float = 10.0,
    ) -> None:
        try:
            import jwt
        except ImportError as error:
            raise MissingExtraError(
                "Tokens need PyJWT; install it with: pip install 'retinue[serve]'"
            ) from error
        _check_algorithms(key, algorithms)
        self._jwt = jwt
        self._key = key
        self._algorithms = list(algorithms)
        self._issuer = issuer
        self._audience = audience
        self._owner = owner
        self._scopes = scopes
        self._leeway = leeway

    def caller(self, credential: str | None) -> Caller:
        """See `Access.caller`."""
        if credential is None:
            raise _refused("give a key or token as `Authorization: Bearer ...`")
        if len(credential) > _LONGEST or credential.count(".") != 2:
            raise _refused("the key or token is not known")
        jwt = self._jwt
        try:
            claims = jwt.decode(
                credential,
                self._key,
                algorithms=self._algorithms,
                issuer=self._issuer,
                audience=self._audience,
                leeway=self._leeway,
                options={"require": ["exp", self._owner]},
            )
        except jwt.ExpiredSignatureError:
            raise _refused("the token has expired") from None
        except (jwt.PyJWTError, ValueError, RecursionError, TypeError):
            raise _refused("the token is not valid") from None
        return self._read(claims)

    def _read(self, claims: Mapping[str, Any]) -> Caller:
        owner: object = claims[self._owner]
        if not isinstance(owner, str) or not owner:
            raise _refused("the token names no owner")
        said: object = claims.get(self._scopes)
        if said is None:
            return Caller(owner)
        words = said.split() if isinstance(said, str) else said
        if not isinstance(words, list):
            raise _refused("the token's scopes cannot be read")
        given = frozenset(map(str, cast("list[object]", words)))
        return Caller(owner, frozenset(scope for scope in SCOPES if scope in given))


def new_key(owner: str, scopes: Sequence[str] = ("conversations", "turns")) -> tuple[str, ApiKey]:
    """A new key, and what is to be kept of it. The key itself is kept nowhere.

    Raises:
        ConfigError: the owner or a scope cannot be one.
    """
    if not owner.strip() or not owner.isprintable() or len(owner) > 200:
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
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "ab") as opened:
            opened.write(line)
    except OSError as error:
        raise ConfigError(
            f"The keys cannot be written to {file}: {error.strerror or error}."
        ) from error


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
    try:
        about = file.stat()
    except OSError:
        return (0, 0, 0)
    return (about.st_mtime_ns, about.st_size, about.st_ino)


def _refused(why: str) -> Refused:
    return Refused("unauthenticated", f"Who you are is not known: {why}.")


def _check_algorithms(key: str | bytes, algorithms: Sequence[str]) -> None:
    if not key or not algorithms or isinstance(algorithms, str):
        raise ConfigError("Tokens(...) needs a key, and the algorithms that may sign with it.")
    secret = {name for name in algorithms if name.upper().startswith("HS")}
    if "NONE" in {name.upper() for name in algorithms}:
        raise ConfigError("Tokens(algorithms=...) cannot hold 'none': anybody could write them.")
    if secret and len(secret) < len(algorithms):
        raise ConfigError(
            "Tokens(algorithms=...) mixes secrets with public keys: a public key would be taken"
            " for a secret. Choose one kind."
        )
    if secret and len(key) < 32:
        raise ConfigError(f"The secret of tokens has {len(key)} bytes; give 32 or more.")
