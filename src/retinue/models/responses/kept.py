"""What must go back to the provider as it came, beside the text and the calls.

An answer is a list of items. Messages and calls become text and calls here. Reasoning, and the
tools that the provider runs, go back verbatim, in their place. They are kept as the JSON text in
`Thinking.opaque`, together with what a message or a call would lose: its id, its phase.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from retinue.models.loose import a_text

MESSAGE: Final = "message"
REASONING: Final = "reasoning"
CUSTOM: Final = "custom_tool_call"
CALLS: Final = {"function_call": "arguments", CUSTOM: "input"}
"""The items that call a tool of ours, and the field that holds the arguments."""


class Following(Struct, omit_defaults=True):
    """What is kept of the item whose text or call comes next."""

    type: str
    id: Any = None
    phase: Any = None
    namespace: Any = None
    caller: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether the item means the same without it."""
        return not (self.phase or self.namespace or self.caller or self.type == CUSTOM)

    def fields(self, *, named: bool) -> dict[str, Any]:
        """The fields of the item. `named` says whether its id is one of them."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        if not named:
            fields.pop("id", None)
        return fields


class Kept(Struct, omit_defaults=True):
    """What is kept at one place of an answer.

    Attributes:
        output: items that go back as they are.
        following: of the item that comes after them.
        id: the answer's own, where the provider stores it; it stands at the end of the answer.
        late: items that were done after what they led to had begun; they go before the others.
    """

    output: list[Raw] = []
    following: Following | None = None
    id: str = ""
    late: list[Raw] = []

    def opaque(self) -> str:
        """The JSON text for `Thinking.opaque`."""
        return msgspec.json.encode(self).decode("utf-8", "replace")


class Head(Struct):
    """What is asked of an item that is kept."""

    type: Any = None
    encrypted_content: Any = None
    content: Any = None
    call_id: Any = None
    execution: Any = None

    @property
    def kind(self) -> str:
        """The item's type."""
        return a_text(self.type)


_kept = msgspec.json.Decoder(Kept)
_head = msgspec.json.Decoder(Head)


def read_kept(opaque: str | None) -> Kept | None:
    """What an adapter of this format kept, or None where another one did."""
    if opaque is None:
        return None
    try:
        return _kept.decode(opaque)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def head_of(item: Raw) -> Head:
    """The item's type, and what decides whether it goes back."""
    try:
        return _head.decode(item)
    except msgspec.DecodeError:
        return Head()
