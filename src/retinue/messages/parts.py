"""The parts that a message is made of.

Parts are frozen values. `ToolCall.arguments` is the text that the model wrote, not yet checked;
reading it is the business of the tool that it names.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    """Text that a person may read."""

    text: str


class Thinking(Struct, frozen=True, tag="thinking", omit_defaults=True):
    """Reasoning of the model, apart from its answer (R-STREAM-7).

    `signature` and `opaque` are the provider's own proof of it: they go back verbatim, to that
    provider only. `opaque` is JSON text, for providers whose reasoning is more than a string.
    """

    text: str
    signature: str | None = None
    opaque: str | None = None
    provider: str | None = None


class Image(Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture: `data` with its media type, or a `url`."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "image/png"


class File(Struct, frozen=True, tag="file", omit_defaults=True):
    """A document or a recording: `data` with its media type, or a `url`."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "application/octet-stream"
    name: str | None = None


class ToolCall(Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """The model asks for a tool. `arguments` is the JSON text as it was written."""

    id: str
    name: str
    arguments: str = "{}"


Content = Text | Image | File
"""What a tool may hand to the model."""


class ToolResult(Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What came of a call. `ok` is false for errors, refusals and calls that never ran."""

    call_id: str
    name: str
    parts: tuple[Content, ...] = ()
    ok: bool = True
    note: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return text_of(self.parts)


Part = Text | Thinking | Image | File | ToolCall | ToolResult


def text_of(parts: Sequence[Part]) -> str:
    """The text parts, joined with nothing between."""
    if len(parts) == 1 and type(only := parts[0]) is Text:
        return only.text
    return "".join(part.text for part in parts if type(part) is Text)
