"""What a model sends while it answers. An adapter decodes the provider's stream to these."""

from msgspec import Struct

from retinue.messages.usage import Usage


class TextDelta(Struct, frozen=True, gc=False, tag="text"):
    """More text of the answer."""

    text: str


class ThinkingDelta(Struct, frozen=True, gc=False, tag="thinking"):
    """More reasoning. A signature or opaque data closes the block that it belongs to."""

    text: str = ""
    signature: str | None = None
    opaque: str | None = None


class ToolCallDelta(Struct, frozen=True, gc=False, tag="tool_call"):
    """More of the call number `index`.

    The decoder gives each call of an answer its own index and says `id` and `name` once, however
    the provider numbers and repeats them. `arguments` is a fragment, to be appended.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class UsageDelta(Struct, frozen=True, gc=False, tag="usage"):
    """A report of tokens: cumulative (the last one wins), or to be added (R-USAGE-2)."""

    usage: Usage
    additive: bool = False


class FinishDelta(Struct, frozen=True, gc=False, tag="finish"):
    """Why the model stopped: stop, length, tool_calls, content_filter, or the provider's word."""

    reason: str


Delta = TextDelta | ThinkingDelta | ToolCallDelta | UsageDelta | FinishDelta
