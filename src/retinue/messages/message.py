"""One message of a conversation, and the short ways to make one."""

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Self, cast

from msgspec import Struct, field, structs

from retinue.errors import ConfigError
from retinue.messages.parts import (
    Content,
    File,
    Image,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    text_of,
)
from retinue.messages.usage import Usage

Role = Literal["system", "user", "assistant", "tool"]
Origin = Literal["", "feedback", "summary", "healed"]
"""Where a message comes from when nobody said it: a layer that asks again, a view, the healing."""

_count = itertools.count()
_prefix = secrets.token_hex(6)


def _renew_prefix() -> None:
    global _prefix
    _prefix = secrets.token_hex(6)


os.register_at_fork(after_in_child=_renew_prefix)


_source: ContextVar[Callable[[], str] | None] = ContextVar("retinue_ids", default=None)


def new_id() -> str:
    """A name that no other message, turn or process has: a random prefix and a running number."""
    source = _source.get()
    return f"{_prefix}{next(_count):x}" if source is None else source()


@contextlib.contextmanager
def ids_from(source: Callable[[], str] | None) -> Generator[None]:
    """Inside, `new_id` takes its names from a source; from its own again with None.

    A turn that is run again from its record needs the names that it had before.
    """
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


class Message(Struct, frozen=True, dict=True, omit_defaults=True):
    """One message: a role and its parts.

    Messages are values: a change makes a new one (`with_`) that keeps the id. `dict=True` gives
    model adapters a place beside the fields, where they keep the bytes they encoded it to.

    Attributes:
        id: the name under which it is stored; the same id is never stored twice (R-MEM-1).
        partial: the answer was cut off by a cancel, a limit or an error.
        finish: why the model stopped: stop, length, tool_calls, content_filter, or its own word.
        model: the model that wrote it.
        meta: what layers and applications keep with it; never sent to a model.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    id: str = field(default_factory=new_id)
    partial: bool = False
    origin: Origin = ""
    finish: str | None = None
    model: str | None = None
    usage: Usage | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return text_of(self.parts)

    @property
    def thinking(self) -> str:
        """The reasoning, joined with nothing between."""
        return "".join(part.text for part in self.parts if type(part) is Thinking)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls the model asks for, in its order."""
        return tuple(part for part in self.parts if type(part) is ToolCall)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results this message carries."""
        return tuple(part for part in self.parts if type(part) is ToolResult)

    def with_(self, **changes: Any) -> Self:
        """A changed copy under the same id."""
        return structs.replace(self, **changes)

    def with_text(self, text: str) -> Self:
        """A copy whose text is `text`: the first text part becomes it, the others go."""
        parts: list[Part] = []
        placed = not text  # an empty text makes no part
        for part in self.parts:
            if type(part) is not Text:
                parts.append(part)
            elif not placed:
                parts.append(Text(text))
                placed = True
        if not placed:
            at = next((n for n, p in enumerate(parts) if type(p) is ToolCall), len(parts))
            parts.insert(at, Text(text))
        return self.with_(parts=tuple(parts))


def user(*content: str | Content) -> Message:
    """A message of the user: texts, images and files in the order given."""
    return Message("user", as_parts(content))


def system(text: str) -> Message:
    """An instruction that stands in the conversation."""
    return Message("system", (Text(text),))


def assistant(text: str = "", *, calls: Sequence[ToolCall] = ()) -> Message:
    """An answer of the model: text, calls, or both."""
    return Message("assistant", ((Text(text),) if text else ()) + tuple(calls))


def tool_result(result: ToolResult) -> Message:
    """The message that carries one result."""
    return Message("tool", (result,))


def as_parts(content: Sequence[object]) -> tuple[Content, ...]:
    """Texts become text parts; parts stay as they are.

    Raises:
        ConfigError: something is neither.
    """
    parts: list[Content] = []
    for item in content:
        if not isinstance(item, (str, Text, Image, File)):
            raise ConfigError(
                f"A message is made of text, Image and File; {type(item).__name__} is none of them."
            )
        parts.append(Text(item) if isinstance(item, str) else item)
    return tuple(parts)


Input = str | Message | Content | Sequence[Message] | Sequence[str | Content]
"""What a turn can be asked: a text, parts, one message, or several."""


def as_messages(question: Input) -> tuple[Message, ...]:
    """The messages that a question stands for (R-LOOP-7).

    Raises:
        ConfigError: the question is empty or of a type that is none.
    """
    given = cast(object, question)  # whoever calls may not be type-checked
    if isinstance(given, (str, Text, Image, File)):
        messages: tuple[Message, ...] = (Message("user", as_parts([given])),)
    elif isinstance(given, Message):
        messages = (given,)
    elif isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray)):
        items: list[object] = list(given)  # pyright: ignore[reportUnknownArgumentType]
        messages = tuple(item for item in items if isinstance(item, Message))
        if len(messages) not in (0, len(items)):
            raise ConfigError("The input mixes messages with texts; give one or the other.")
        messages = messages or (Message("user", as_parts(items)),)
    else:
        raise ConfigError(
            f"A turn takes a text, a message or a list of them, not {type(given).__name__}."
        )
    if all(type(part) is Text and not part.text.strip() for part in messages[-1].parts):
        raise ConfigError("The input is empty; give the turn a text, an image, a file or a result.")
    return messages
