"""Collectors with quotas, and answers that say what they used."""

from typing import Any

from retinue import Usage
from retinue.advisors import Quota, UsageCollector
from retinue.models.scripted import Say


def used(tokens: int, text: str = "ok", **more: Any) -> Say:
    """An answer that used so many tokens, one of them for the output."""
    return Say(text=text, usage=Usage(input=tokens - 1, output=1), **more)


def limited(*quotas: Quota, **options: Any) -> UsageCollector:
    """A collector that expects 20 tokens of output, if nothing else is said."""
    chosen: dict[str, Any] = {"expect": 20} | options
    return UsageCollector(quotas=quotas, **chosen)
