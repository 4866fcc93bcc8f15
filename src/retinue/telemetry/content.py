"""What was said, as the JSON text that the GenAI conventions have for it, with secrets masked.

Texts are masked one by one, and cut where they are long. Pictures and files are named, never
carried: a span is no place for them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from retinue.messages import File, Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from retinue.messages.masking import excerpt
from retinue.tools.results import clean

LONGEST: Final = 10_000
"""Characters of one text; the rest is cut, and "…" says so."""


class Content:
    """Writes texts and messages for spans.

    Args:
        mask: gives a text without what must not be seen.
    """

    __slots__ = ("_mask",)

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask

    def text(self, text: str) -> str:
        """One text, masked, cut, and made valid Unicode: an exporter would drop all else.

        Where masking fails nothing of it is recorded, and the turn goes on.
        """
        try:
            return clean(excerpt(text, LONGEST, self._mask))
        except Exception as error:
            return f"[not recorded: masking failed with {type(error).__name__}]"

    def instructions(self, texts: Iterable[str]) -> str:
        """A system prompt in pieces."""
        return _json([{"type": "text", "content": self.text(text)} for text in texts])

    def messages(self, messages: Sequence[Message]) -> str:
        """Messages as they are sent."""
        return _json([self._message(message) for message in messages])

    def answer(self, message: Message) -> str:
        """What a model answered."""
        told = self._message(message)
        if message.finish is not None:
            told["finish_reason"] = _FINISHES.get(message.finish, message.finish)
        return _json([told])

    def _message(self, message: Message) -> dict[str, Any]:
        return {"role": message.role, "parts": [self._part(part) for part in message.parts]}

    def _part(self, part: Part) -> dict[str, Any]:
        match part:
            case Text():
                return {"type": "text", "content": self.text(part.text)}
            case Thinking():
                return {"type": "reasoning", "content": self.text(part.text)}
            case ToolCall():
                return {
                    "type": "tool_call",
                    "id": clean(part.id),
                    "name": clean(part.name),
                    "arguments": _as_json(self.text(part.arguments)),
                }
            case ToolResult():
                return {
                    "type": "tool_call_response",
                    "id": clean(part.call_id),
                    "response": self.text(part.text),
                }
            case Image() | File():
                return self._attached(part)

    def _attached(self, part: Image | File) -> dict[str, Any]:
        modality = part.media_type.partition("/")[0]
        told: dict[str, Any] = {"modality": modality, "mime_type": part.media_type}
        if part.url is not None and not part.url.startswith("data:"):
            return {"type": "uri", **told, "uri": self.text(part.url)}
        return {"type": "attachment", **told, "size": len(part.data or part.url or "")}


_FINISHES: Final = {"tool_calls": "tool_call"}
"""Reasons that the conventions call otherwise in messages."""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _as_json(text: str) -> msgspec.Raw | str:
    """JSON as it is; what is none, or was cut, as a text."""
    try:
        msgspec.json.decode(text)
    except ValueError:
        return text
    return msgspec.Raw(text.encode())
