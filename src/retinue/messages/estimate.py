"""How many tokens a text or a message is, about: for budgets and windows, before anybody counts."""

from collections.abc import Callable
from typing import Final

from retinue.messages.message import Message
from retinue.messages.parts import File, Image, Part, Text, Thinking, ToolCall, ToolResult

BYTES_PER_TOKEN: Final = 4
FRAME: Final = 4
"""Tokens of a message's role and frame."""
MEDIA: Final = 1_000
"""Tokens that a picture or a file is taken for."""


def size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def text_tokens(text: str) -> int:
    """Tokens of a text, at four bytes each."""
    return size(text) // BYTES_PER_TOKEN + 1


def message_tokens(message: Message, count: Callable[[str], int] = text_tokens) -> int:
    """Tokens of a message.

    Args:
        message: the message; its pictures and files are taken for 1,000 tokens each.
        count: tokens of a text.
    """
    return FRAME + sum(
        MEDIA if isinstance(part, (Image, File)) else count(_wording(part))
        for part in message.parts
    )


def _wording(part: Part) -> str:
    if isinstance(part, ToolCall):
        return part.name + part.arguments
    return part.text if isinstance(part, (Text, Thinking, ToolResult)) else ""
