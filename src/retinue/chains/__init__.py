"""The onion, the requests that go through it, and the stream that comes out of it.

Read `onion.py` first. Nothing here does I/O or knows a model.
"""

from retinue.chains.advisor import Advisor, Layer, hooks_of, name_of
from retinue.chains.assembly import Explanation, LayerView, OnionWarning, assemble
from retinue.chains.events import Status
from retinue.chains.log import Journal
from retinue.chains.meter import Booking, Meter
from retinue.chains.onion import CallNext, Hook, compose
from retinue.chains.output import Output
from retinue.chains.repair import Check, Repair
from retinue.chains.requests import (
    ChatRequest,
    Request,
    RoundRequest,
    ToolRequest,
    TurnRequest,
)
from retinue.chains.responses import ChatResponse, RoundResponse, Spent, TurnResponse
from retinue.chains.scope import Scope
from retinue.chains.send import Delivery, Refusal, Transform, Transforms
from retinue.chains.settings import Settings
from retinue.chains.snapshot import Snapshot
from retinue.chains.state import Slot

__all__ = [
    "Advisor", "Booking", "CallNext", "ChatRequest", "ChatResponse", "Check", "Delivery",
    "Explanation", "Hook", "Journal", "Layer", "LayerView", "Meter", "OnionWarning", "Output",
    "Refusal", "Repair", "Request", "RoundRequest", "RoundResponse", "Scope", "Settings",
    "Slot", "Snapshot", "Spent", "Status", "ToolRequest", "Transform", "Transforms", "TurnRequest",
    "TurnResponse", "assemble", "compose", "hooks_of", "name_of",
]  # fmt: skip
