"""retinue puts a retinue of advisors round a language model.

    agent = Agent("openai:gpt-5-mini", tools=[weather], advisors=[Memory(SQLite("chat.db"))])
    result = await agent.run("Is it raining in Oslo?", conversation="c-1")

Here are the names that most programs need. Advisors are in `retinue.advisors`, stores in
`retinue.stores`, models in `retinue.models`, the events of a stream in `retinue.events`,
engines in `retinue.tools`.
"""

from retinue.agent import Agent, Limits, Turn
from retinue.chains import (
    Advisor,
    ChatRequest,
    ChatResponse,
    Layer,
    RoundRequest,
    RoundResponse,
    Settings,
    Slot,
    ToolRequest,
    TurnRequest,
    TurnResponse,
    assemble,
    events,
)
from retinue.errors import (
    ConfigError,
    ModelError,
    OutputError,
    RetinueError,
    StoreError,
    ToolError,
)
from retinue.messages import File, Image, Message, Usage, assistant, system, user
from retinue.tools import (
    Approve,
    Pause,
    Proceed,
    Reject,
    Reply,
    Retry,
    Tool,
    ToolContext,
    ToolResponse,
    ToolReturn,
    tool,
)
from retinue.version import __version__ as __version__

__all__ = [
    "Advisor",
    "Agent",
    "Approve",
    "ChatRequest",
    "ChatResponse",
    "ConfigError",
    "File",
    "Image",
    "Layer",
    "Limits",
    "Message",
    "ModelError",
    "OutputError",
    "Pause",
    "Proceed",
    "Reject",
    "Reply",
    "RetinueError",
    "Retry",
    "RoundRequest",
    "RoundResponse",
    "Settings",
    "Slot",
    "StoreError",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolRequest",
    "ToolResponse",
    "ToolReturn",
    "Turn",
    "TurnRequest",
    "TurnResponse",
    "Usage",
    "assemble",
    "assistant",
    "events",
    "system",
    "tool",
    "user",
]  # fmt: skip
