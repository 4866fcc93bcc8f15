"""The requests that the hooks see: turn ⊃ round ⊃ chat, and tool.

All are frozen; a layer passes on a copy (`with_`). What must be shared by the whole turn, such as
its token count and its reader, hangs on the hidden `scope`, which every copy keeps. So a request
is only ever made by the loop, or from another one by `with_`.
"""

from retinue.chains.requests.base import Request, as_answer
from retinue.chains.requests.inner import ChatRequest, InnerRequest, RoundRequest, ToolRequest
from retinue.chains.requests.turn import TurnRequest

__all__ = [
    "ChatRequest",
    "InnerRequest",
    "Request",
    "RoundRequest",
    "ToolRequest",
    "TurnRequest",
    "as_answer",
]
