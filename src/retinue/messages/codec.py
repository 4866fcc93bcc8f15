"""Messages as JSON: one message for a store's row, or a versioned document.

Format 1 is the fields of `Message` and its parts under their own names, defaults left out, bytes
as base64. Readers of a later version read every earlier one.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from retinue.errors import RetinueError
from retinue.messages.message import Message

FORMAT: Final = 1


class FormatError(RetinueError, ValueError):
    """The bytes are no messages, or of a format that this version does not know."""


class Document(msgspec.Struct, frozen=True):
    """Messages with the version of their form."""

    format: int
    messages: tuple[Message, ...]


class _Versioned(msgspec.Struct):
    format: int


_encoder = msgspec.json.Encoder()
_message = msgspec.json.Decoder(Message)
_document = msgspec.json.Decoder(Document)
_version = msgspec.json.Decoder(_Versioned)


def encode(message: Message) -> bytes:
    """One message as JSON. Values in `meta` must be JSON too, or TypeError is raised."""
    return _encoder.encode(message)


def decode(data: bytes | str) -> Message:
    """The message that `encode` wrote.

    Raises:
        FormatError: the bytes are something else.
    """
    try:
        return _message.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(f"These bytes are no stored message: {error}.") from error


def dump(messages: Sequence[Message]) -> bytes:
    """Messages as one document, `{"format": 1, "messages": [...]}`."""
    return _encoder.encode(Document(FORMAT, tuple(messages)))


def load(data: bytes | str) -> tuple[Message, ...]:
    """The messages of a document that `dump` wrote, in this version or an earlier one.

    Raises:
        FormatError: no such document, or one of a later format.
    """
    try:
        version = _version.decode(data).format
        if version != FORMAT:
            raise FormatError(
                f"This document has format {version}, and this version of retinue reads format"
                f" {FORMAT}; upgrade retinue."
            )
        return _document.decode(data).messages
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(f"This is no document of messages: {error}.") from error
