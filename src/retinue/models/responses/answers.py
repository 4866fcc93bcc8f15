"""What the model said, as items of the Responses format.

Reasoning goes back with the item that it led to, or not at all: a provider refuses it alone. Nor
does it go back where the provider could not read it: it must be encrypted, or open, or stored.
Without its reasoning, an item loses its id too, by which the provider would miss it.
"""

from typing import Any, Final

from msgspec import Struct

from retinue.messages import Message, Text, Thinking, ToolCall
from retinue.models.gateways import Gateway
from retinue.models.outgoing import as_object, hashed_id, misplaced, to_json, tool_name
from retinue.models.responses.kept import (
    CALLS,
    CUSTOM,
    MESSAGE,
    REASONING,
    Following,
    Head,
    Kept,
    head_of,
    read_kept,
)

_LONGEST_ID: Final = 64
_FOR_THE_CLIENT: Final = {
    "apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call",
}  # fmt: skip
"""Items that wait for an answer of ours, which nobody gives."""


class Said(Struct, frozen=True):
    """An answer in bytes, and what later messages must know of it.

    Attributes:
        items: its items, joined by commas.
        custom: the ids of its calls that take text instead of JSON.
        response: the id under which the provider stores it, or empty.
    """

    items: bytes
    custom: frozenset[str] = frozenset()
    response: str = ""


class AnswerEncoder:
    """Encodes one answer. Use it once.

    Args:
        gateway: the row.
        stored: whether the provider stores its answers.
    """

    __slots__ = ("_custom", "_following", "_gateway", "_held", "_items", "_named", "_stored")

    def __init__(self, gateway: Gateway, *, stored: bool) -> None:
        self._gateway = gateway
        self._stored = stored
        self._items: list[bytes] = []
        self._held: list[bytes] = []  # reasoning, until the item that it led to
        self._following: Following | None = None  # of the item that comes next
        self._named = True  # whether that item has its id
        self._custom: set[str] = set()

    def encode(self, message: Message) -> Said:
        """The answer as items.

        Raises:
            ConfigError: it holds a part that no answer can hold.
        """
        response = ""
        for part in message.parts:
            if type(part) is Thinking:
                if part.provider == self._gateway.name and (kept := read_kept(part.opaque)):
                    self._keep(kept)
                    response = kept.id
            elif type(part) is Text:
                if part.text:
                    self._add(MESSAGE, self._text(part.text))
            elif type(part) is ToolCall:
                self._call(part)
            else:
                raise misplaced(part, message.role, self._gateway.name)
        # What was cut off is not what the provider has stored.
        response = "" if message.partial else response
        return Said(b",".join(self._items), frozenset(self._custom), response)

    def _keep(self, kept: Kept) -> None:
        """Puts what goes back as it is among the items."""
        if kept.late:
            late = [bytes(item) for item in kept.late if self._is_readable(head_of(item))]
            self._items = [*late, *self._items]
        self._following = kept.following
        self._named = True
        heads = [head_of(item) for item in kept.output]
        answered = {head.call_id for head in heads if head.kind.endswith("_output")}
        for raw, head in zip(kept.output, heads, strict=True):
            if head.kind == REASONING:
                if self._is_readable(head):
                    self._held.append(bytes(raw))
                else:
                    self._named = False
            elif head.kind and not _waits(head, answered):
                self._items += [*self._held, bytes(raw)]
                self._held = []

    def _is_readable(self, head: Head) -> bool:
        """Whether the provider can read it again; all but reasoning it can."""
        told = head.encrypted_content or head.content
        return head.kind != REASONING or self._stored or bool(told)

    def _add(self, kind: str, item: dict[str, Any]) -> None:
        """An item, after the reasoning that led to it, if that led to an item of this type."""
        if self._following is None or self._following.type == kind:
            self._items += self._held
        self._items.append(to_json(item))
        self._held = []
        self._following = None

    def _text(self, text: str) -> dict[str, Any]:
        said: dict[str, Any] = {"role": "assistant", "content": text}
        following = self._following
        if following is not None and following.type == MESSAGE:
            said |= following.fields(named=self._named)
            if "id" in said:  # the item in full
                content = {"type": "output_text", "text": text, "annotations": ()}
                said |= {"status": "completed", "content": (content,)}
        return said

    def _call(self, call: ToolCall) -> None:
        fields: dict[str, Any] = {"type": "function_call"}
        following = self._following
        if following is not None and following.type in CALLS:
            fields = following.fields(named=self._named)
        kind = fields["type"]
        arguments = call.arguments or "{}"
        if kind == CUSTOM:
            self._custom.add(call.id)
        elif self._gateway.json_arguments and as_object(arguments) is None:
            arguments = "{}"  # the tool's result says what was wrong with them
        called = {"call_id": fitting_id(call.id), "name": tool_name(call.name)}
        self._add(kind, {**fields, **called, CALLS[kind]: arguments})


def fitting_id(call_id: str) -> str:
    """The id as the format takes it: ids of other providers may be too long, or empty."""
    return call_id if 0 < len(call_id) <= _LONGEST_ID else hashed_id(call_id, 32)


def _waits(head: Head, answered: set[Any]) -> bool:
    """Whether the item waits for an answer that never comes."""
    waiting = head.kind in _FOR_THE_CLIENT or head.execution == "client"
    return waiting and head.call_id not in answered
