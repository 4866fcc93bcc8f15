"""Models: what answers, and how a text becomes one.

Names are imported at first use, so that nothing here costs time before a model is made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# At once, unlike the others: its module has the name of a function, and would take its place.
from retinue.models.resolve import capabilities_of, resolve

if TYPE_CHECKING:
    from retinue.models.anthropic.model import Anthropic
    from retinue.models.base import Model, ModelRetry, generate
    from retinue.models.bridge.model import Bridge
    from retinue.models.capabilities import Capabilities
    from retinue.models.counting import TokenCount, context_window, count_tokens
    from retinue.models.gateways import GATEWAYS, Gateway
    from retinue.models.gemini.model import Gemini
    from retinue.models.llamacpp import Local
    from retinue.models.openai.model import OpenAI
    from retinue.models.prices import check_prices, cost
    from retinue.models.prompted import PromptedTools
    from retinue.models.responses.model import Responses
    from retinue.models.scripted import Say, Scripted, call

_HOMES: Final = {
    "Anthropic": "anthropic.model",
    "Bridge": "bridge.model",
    "Capabilities": "capabilities",
    "GATEWAYS": "gateways",
    "Gateway": "gateways",
    "Gemini": "gemini.model",
    "Local": "llamacpp",
    "Model": "base",
    "ModelRetry": "base",
    "OpenAI": "openai.model",
    "PromptedTools": "prompted",
    "Responses": "responses.model",
    "Say": "scripted",
    "Scripted": "scripted",
    "TokenCount": "counting",
    "call": "scripted",
    "check_prices": "prices",
    "context_window": "counting",
    "cost": "prices",
    "count_tokens": "counting",
    "generate": "base",
}

__all__ = [
    "GATEWAYS", "Anthropic", "Bridge", "Capabilities", "Gateway", "Gemini", "Local", "Model",
    "ModelRetry", "OpenAI", "PromptedTools", "Responses", "Say", "Scripted", "TokenCount", "call",
    "capabilities_of", "check_prices", "context_window", "cost", "count_tokens", "generate",
    "resolve",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
