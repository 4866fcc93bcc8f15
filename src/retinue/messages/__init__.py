"""Messages, their parts, the deltas they are built from, and token counts. No I/O, no asyncio."""

from retinue.messages.accumulate import Accumulator
from retinue.messages.delta import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
)
from retinue.messages.message import (
    Input,
    Message,
    Origin,
    Role,
    as_messages,
    assistant,
    new_id,
    system,
    tool_result,
    user,
)
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

__all__ = [
    "Accumulator",
    "Content",
    "Delta",
    "File",
    "FinishDelta",
    "Image",
    "Input",
    "Message",
    "Origin",
    "Part",
    "Role",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ToolCall",
    "ToolCallDelta",
    "ToolResult",
    "Usage",
    "UsageDelta",
    "as_messages",
    "assistant",
    "new_id",
    "system",
    "text_of",
    "tool_result",
    "user",
]
