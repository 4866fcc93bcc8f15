"""Tools: functions that a model can call, how one call is run, and how a batch of them is.

Knows nothing of turns, layers or models. `base` holds what passes between a tool and those who
run it; `tool` is the decorator; `invoke` runs one call; `engines` run a batch.
"""

from retinue.tools.asking import (
    Answer,
    Approve,
    CallWaits,
    Pause,
    PendingCall,
    Proceed,
    Reject,
    Reply,
    Waiting,
    ask_user,
)
from retinue.tools.base import NOTHING, CancelToken, ToolContext, ToolResponse, ToolReturn
from retinue.tools.engines import Concurrent, Engine, ProcessPool, Sequential, ThreadPool
from retinue.tools.invoke import invoke
from retinue.tools.options import Retry, ToolSpec
from retinue.tools.results import as_result
from retinue.tools.tool import Tool, tool
from retinue.tools.toolset import Toolset

__all__ = [
    "NOTHING",
    "Answer",
    "Approve",
    "CallWaits",
    "CancelToken",
    "Concurrent",
    "Engine",
    "Pause",
    "PendingCall",
    "Proceed",
    "ProcessPool",
    "Reject",
    "Reply",
    "Retry",
    "Sequential",
    "ThreadPool",
    "Tool",
    "ToolContext",
    "ToolResponse",
    "ToolReturn",
    "ToolSpec",
    "Toolset",
    "Waiting",
    "as_result",
    "ask_user",
    "invoke",
    "tool",
]  # fmt: skip
