"""How many tokens a request is, about: for windows and quotas, before anybody counts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from retinue.messages.estimate import message_tokens, text_tokens

if TYPE_CHECKING:
    from retinue.chains.requests import ChatRequest


def frame_tokens(request: "ChatRequest", count: Callable[[str], int] = text_tokens) -> int:
    """Tokens of what is sent beside the messages: instructions, tool definitions, output form.

    Args:
        request: what is sent.
        count: tokens of a text; by default one for four bytes.
    """
    forms: list[Any] = [
        (tool.spec.name, tool.spec.description, tool.spec.parameters) for tool in request.tools
    ]
    if request.output is not None:
        forms.append(request.output.schema)
    texts = ["".join(request.instructions), msgspec.json.encode(forms).decode() if forms else ""]
    return sum(count(text) for text in texts if text)


def request_tokens(request: "ChatRequest", count: Callable[[str], int] = text_tokens) -> int:
    """Tokens of all that is sent; its pictures and files are taken for 1,000 each."""
    return frame_tokens(request, count) + sum(
        message_tokens(message, count) for message in request.messages
    )
