"""Events as plain JSON values, and back: the one mapping behind SSE, gRPC and every other format.

An event is an object whose `type` names its class and whose other members are its fields, as
`retinue.events` describes them. What JSON cannot hold is written as text: a reader is shown it,
and nobody runs it. Two things come from a gateway and not from a turn: `Resync`, and the number of
an event as a reader hands it back (`Place`).
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, structs

from retinue.chains.events import AnyEvent, Event
from retinue.messages import Message
from retinue.messages.codec import FormatError
from retinue.tools import PendingCall
from retinue.tools.results import clean


class ShownCall(Struct, frozen=True):
    """A tool call of the round that is going on, as far as it has come.

    Attributes:
        arguments: the JSON text that the model has written so far.
        started: whether its tool has begun.
        ok: whether it went well; None while there is no result.
        text: the result.
    """

    call_id: str
    name: str
    arguments: str = ""
    started: bool = False
    ok: bool | None = None
    text: str = ""


class Resync(Struct, frozen=True, tag="resync", tag_field="type", kw_only=True):
    """Where a turn stands, for a reader who missed more than is kept. Live events follow.

    A reader forgets what it has shown of the turn, and shows this.

    Attributes:
        seq: the number of the last event that this stands for.
        turn: the id of the turn.
        messages: those of the turn's finished rounds, from the log of its conversation.
        text: the text of the round that is going on.
        thinking: the reasoning of the same round.
        calls: the calls of the same round.
        pending: what waits for an answer.
    """

    seq: int
    turn: str
    conversation: str | None = None
    round: int = 0
    attempt: int = 0
    messages: tuple[Message, ...] = ()
    text: str = ""
    thinking: str = ""
    calls: tuple[ShownCall, ...] = ()
    pending: tuple[PendingCall, ...] = ()


Sent = Event | Resync
"""What a reader of a turn may be sent."""


class Place(Struct, frozen=True):
    """Where a reader stands in a stream: the stream's id and the last number it saw.

    It is the `id:` of an SSE frame, written `stream:number`. A number alone counts in whichever
    stream there is.
    """

    stream: str
    seq: int

    def __str__(self) -> str:
        return f"{self.stream}:{self.seq}"

    @classmethod
    def read(cls, text: str) -> "Place | None":
        """The place that a reader hands back; None if it is none."""
        stream, _, number = text.rpartition(":")
        if not (number.isascii() and number.isdigit()) or len(number) > 15:
            return None
        return cls(stream, int(number))


def encode(event: Struct | Mapping[str, Any]) -> bytes:
    """An event, another struct or a mapping as JSON text in UTF-8 without a newline. It never
    fails."""
    try:
        return _encoder.encode(event)
    except (TypeError, ValueError, RecursionError, OverflowError):
        # Half a surrogate pair, keys that are no text, a value that holds itself: seldom.
        return _encoder.encode(_repaired(plain(event) if isinstance(event, Struct) else event))


def plain(event: Struct) -> dict[str, Any]:
    """An event as dicts, lists, texts, numbers, booleans and None."""
    try:
        return msgspec.to_builtins(event, enc_hook=_shown)
    except (TypeError, ValueError, RecursionError, OverflowError):
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        tag = type(event).__struct_config__.tag
        return {**({} if tag is None else {"type": tag}), **_repaired(fields)}


def decode(data: bytes | str) -> Sent:
    """The event that `encode` wrote.

    Raises:
        FormatError: the bytes are something else.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(f"These bytes are no event: {error}.") from error


def numbered(event: Event, seq: int) -> Event:
    """The event under this number."""
    return event if event.seq == seq else structs.replace(event, seq=seq)


def _shown(value: Any) -> Any:
    try:
        dumped = getattr(value, "model_dump", None)  # pydantic
        if callable(dumped):
            return dumped(mode="json")
        if isinstance(value, Mapping):
            return dict(cast("Mapping[Any, Any]", value))
    except Exception:  # of a foreign object; a stream must not break for it
        return _text(value)
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


_DEEPEST: Final = 64
_LONGEST_INT: Final = 4_096  # bits; Python writes no much longer one in decimals


def _repaired(value: Any, above: tuple[int, ...] = ()) -> Any:
    """The value with all that JSON cannot hold as text.

    Args:
        value: what is to be written.
        above: the identities of what it stands in.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and value.bit_length() > _LONGEST_INT:
        return hex(value)
    if value is None or isinstance(value, int | float):
        return value
    if len(above) > _DEEPEST or id(value) in above:
        return "…"
    above = (*above, id(value))
    try:
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {clean(_text(key)): _repaired(item, above) for key, item in items}
        if isinstance(value, list | tuple | set | frozenset):
            return [_repaired(item, above) for item in cast("Collection[Any]", value)]
        return _repaired(msgspec.to_builtins(value, enc_hook=_shown), above)
    except Exception:
        return clean(_text(value))


_encoder: Final = msgspec.json.Encoder(enc_hook=_shown)
_decoder: Final[msgspec.json.Decoder[AnyEvent | Resync]] = msgspec.json.Decoder(AnyEvent | Resync)
