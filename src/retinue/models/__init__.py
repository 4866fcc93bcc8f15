"""Models: what answers, and how a text becomes one.

Names are imported at first use, so that nothing here costs time before a model is made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# At once, unlike the others: its module has the same name, and would take the function's place.
from retinue.models.resolve import resolve

if TYPE_CHECKING:
    from retinue.models.anthropic.model import Anthropic
    from retinue.models.base import Model, ModelRetry, generate
    from retinue.models.gateways import GATEWAYS, Gateway
    from retinue.models.llamacpp import Local
    from retinue.models.openai.model import OpenAI
    from retinue.models.prices import check_prices, cost
    from retinue.models.prompted import PromptedTools
    from retinue.models.responses.model import Responses
    from retinue.models.scripted import Say, Scripted, call

_HOMES: Final = {
    "Anthropic": "anthropic.model",
    "GATEWAYS": "gateways",
    "Gateway": "gateways",
    "Local": "llamacpp",
    "Model": "base",
    "ModelRetry": "base",
    "OpenAI": "openai.model",
    "PromptedTools": "prompted",
    "Responses": "responses.model",
    "Say": "scripted",
    "Scripted": "scripted",
    "call": "scripted",
    "check_prices": "prices",
    "cost": "prices",
    "generate": "base",
}

__all__ = [
    "GATEWAYS", "Anthropic", "Gateway", "Local", "Model", "ModelRetry", "OpenAI", "PromptedTools",
    "Responses", "Say", "Scripted", "call", "check_prices", "cost", "generate", "resolve",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
