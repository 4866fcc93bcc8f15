"""What a paused turn goes on from: plain, versioned data (R-HITL-2).

A snapshot is the turn's messages, the calls that are open, and the folded state. It holds no code,
no connection and no secret: `data`, settings and what JSON cannot hold of the context stay behind.
It is one JSON document, `{"format": 1, ...}`, which later versions read too. Where it leaves the
store, `seal` signs it.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec
from msgspec import Raw, Struct, field, structs

from retinue.chains import asjson
from retinue.chains.responses import Spent
from retinue.errors import ConfigError, Failure, SnapshotError
from retinue.messages import Message, ToolResult, new_id
from retinue.tools import PendingCall, ToolResponse

FORMAT: Final = 1


class Kept(Struct, frozen=True, omit_defaults=True):
    """What came of a call that need not run again."""

    result: ToolResult
    writes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Failure | None = None
    blocked_by: str | None = None
    reason: str | None = None


class Snapshot(Struct, frozen=True, kw_only=True):
    """A turn that waits.

    Attributes:
        id: the pause's own name; it is used up once.
        turn: the id of the turn.
        messages: those of the turn so far; the last one asks for the calls.
        pending: the calls that wait for an answer.
        approved: for calls that were approved, the arguments they run on.
        results: what came of the calls that are decided or have run, by call id.
        nested: what the sub-agents behind open calls go on from, by call id.
        state: the slots, as JSON has them.
        context: what layers and the caller attached, as far as JSON can hold it.
        spent: the model calls so far.
        estimated: tokens of those whose provider reported none.
        round, attempt: the numbers of the last ones.
        remaining: rounds that are left after this one.
        reentry: how many times the turn was re-entered.
    """

    format: int = FORMAT
    id: str = field(default_factory=new_id)
    turn: str
    conversation: str | None = None
    owner: str | None = None
    messages: tuple[Message, ...]
    pending: tuple[PendingCall, ...] = ()
    approved: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    results: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    nested: "Mapping[str, Snapshot]" = field(default_factory=dict[str, "Snapshot"])
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spent: tuple[Spent, ...] = ()
    estimated: int = 0
    round: int = 0
    attempt: int = 0
    remaining: int = 0
    reentry: int = 0

    def dump(self) -> bytes:
        """The snapshot as a document.

        Raises:
            SnapshotError: a slot of the state, or what a tool wrote to one, is no JSON.
        """
        plain = self._plain()
        try:
            return asjson.encode(plain)
        except (TypeError, ValueError, RecursionError) as error:
            raise SnapshotError(
                f"The turn cannot pause: JSON cannot hold what its tools wrote or were given"
                f" ({error})."
            ) from error

    def _plain(self) -> Self:
        """The snapshot, and those of sub-agents in it, with what JSON can hold of the context."""
        for name, value in self.state.items():
            if not asjson.fits(value):
                raise SnapshotError(
                    f"The turn cannot pause: the slot {name!r} holds {type(value).__name__}, which"
                    " JSON cannot hold; keep texts, numbers, lists, dicts or dataclasses in it."
                )
        nested = {name: one._plain() for name, one in self.nested.items()}
        return structs.replace(self, context=asjson.fitting(self.context), nested=nested)

    @classmethod
    def load(cls, document: bytes | str) -> "Snapshot":
        """The snapshot that `dump` wrote, in this version or an earlier one.

        Raises:
            SnapshotError: it is no such document, or one of a later format.
        """
        try:
            version = _version.decode(document).format
            if version != FORMAT:
                raise SnapshotError(
                    f"This pause has format {version}, and this version of retinue reads format"
                    f" {FORMAT}; upgrade retinue."
                )
            return _decoder.decode(document)
        except _UNREADABLE as error:
            raise SnapshotError(f"This is no snapshot of a paused turn: {error}.") from error

    def seal(self, key: bytes | str) -> bytes:
        """The document with a signature, for where others could change it on its way.

        Args:
            key: a secret of 16 bytes or more that only your own processes know.
        """
        document = self.dump()
        sealed = Sealed(FORMAT, _signature(document, key), Raw(document))
        return asjson.encode(sealed)

    @classmethod
    def unseal(cls, sealed: bytes | str, key: bytes | str) -> "Snapshot":
        """The snapshot that `seal` wrote.

        Raises:
            SnapshotError: it was changed, or signed with another key.
        """
        try:
            found = _sealed.decode(sealed)
        except _UNREADABLE as error:
            raise SnapshotError(f"This is no sealed snapshot: {error}.") from error
        document = bytes(found.snapshot)
        signature = _signature(document, key).encode()  # bytes: a forged text may hold anything
        if not hmac.compare_digest(found.signature.encode(), signature):
            raise SnapshotError(
                "The signature of this snapshot is wrong: it was changed, or signed with another"
                " key. It was not used."
            )
        return cls.load(document)


class Sealed(Struct, frozen=True):
    """A document and its HMAC-SHA256."""

    format: int
    signature: str
    snapshot: Raw


class _Versioned(Struct):
    format: int


def kept(response: ToolResponse) -> Kept:
    """What a snapshot keeps of a response."""
    return Kept(
        response.result,
        dict(response.writes),
        response.failure,
        response.blocked_by,
        response.reason,
    )


def restored(kept: Kept) -> ToolResponse:
    """The response that was kept."""
    return ToolResponse(
        result=kept.result,
        writes=kept.writes,
        failure=kept.failure,
        blocked_by=kept.blocked_by,
        reason=kept.reason,
    )


_decoder: Final = msgspec.json.Decoder(Snapshot)
_sealed: Final = msgspec.json.Decoder(Sealed)
_version: Final = msgspec.json.Decoder(_Versioned)
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)


def _signature(document: bytes, key: bytes | str) -> str:
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < 16:
        raise ConfigError(f"The key has {len(secret)} bytes; give 16 or more.")
    return hmac.new(secret, document, hashlib.sha256).hexdigest()
