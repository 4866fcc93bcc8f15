"""retinue puts a retinue of advisors round a language model.

    agent = Agent("openai:gpt-5-mini", tools=[weather], advisors=[Memory(SQLite("chat.db"))])
    result = await agent.run("Is it raining in Oslo?", conversation="c-1")

Here are the names that most programs need. Advisors are in `retinue.advisors`, stores in
`retinue.stores`, models in `retinue.models`, the events of a stream in `retinue.events`,
engines in `retinue.tools`.
"""

from retinue.agent import Agent, Limits, Proceed, Reject, Reply, Turn
from retinue.chains import (
    Advisor,
    ChatRequest,
    ChatResponse,
    Layer,
    Output,
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
from retinue.models import ModelRetry
from retinue.tools import Retry, Tool, ToolContext, ToolResponse, ToolReturn, tool
from retinue.version import __version__ as __version__

__all__ = [
    "Advisor",
    "Agent",
    "ChatRequest",
    "ChatResponse",
    "ConfigError",
    "File",
    "Image",
    "Layer",
    "Limits",
    "Message",
    "ModelError",
    "ModelRetry",
    "Output",
    "OutputError",
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
