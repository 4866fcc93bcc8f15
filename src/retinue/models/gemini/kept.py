"""What is kept of an answer beside its text, thoughts and calls: the JSON of `Thinking.opaque`.

The vendor signs parts of an answer, and wants each signature back on the part that it stood on.
Our texts and calls have no place for one, so a mark stands beside them: before the call that it
signs, or after the text. A text comes in pieces of which the last may be signed, and it may be an
empty one; so the mark says how long the signed end of the text is. Parts of any other kind (code
that the vendor ran, its searches, pictures, and what is still to be invented) are kept whole.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from retinue.models.outgoing import to_json

_NOTHING: Final = Raw(b"")


class Kept(Struct, frozen=True, omit_defaults=True):
    """One of three things.

    Attributes:
        part: a part that goes back as it came.
        call: the signature of the call that comes next.
        text: the signature of the text before.
        length: the characters at the end of that text which it signs.
    """

    part: Raw = _NOTHING
    call: str | None = None
    text: str | None = None
    length: int = 0


_decoder: Final = msgspec.json.Decoder(Kept)


def whole_part(part: Raw) -> str:
    """The mark for a part that goes back as it came."""
    return (b'{"part":' + bytes(part) + b"}").decode("utf-8", "replace")


def call_mark(signature: str) -> str:
    """The mark before a signed call."""
    return to_json(Kept(call=signature)).decode()


def text_mark(signature: str, length: int) -> str:
    """The mark after a signed text of this many characters."""
    return to_json(Kept(text=signature, length=length)).decode()


def read_kept(opaque: str | None) -> Kept | None:
    """What a thought keeps, or None if it is nothing of this format."""
    if opaque is None:
        return None
    try:
        return _decoder.decode(opaque)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
