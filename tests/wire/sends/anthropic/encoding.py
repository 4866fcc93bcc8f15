"""The body of a request, without a server."""

import json
from typing import Any

from retinue.messages import Message
from retinue.models.anthropic.abilities import NEWEST, abilities_of
from retinue.models.anthropic.cache import Cache
from retinue.models.anthropic.encode import RequestEncoder
from tests.models.calling import chat


def encoder(
    model: str = "claude-sonnet-4-6", version: str = NEWEST, cache: Cache = "none"
) -> RequestEncoder:
    return RequestEncoder(model, abilities_of(model), version, cache)


def encoded(
    *messages: str | Message,
    model: str = "claude-sonnet-4-6",
    version: str = NEWEST,
    cache: Cache = "none",
    **fields: Any,
) -> dict[str, Any]:
    """The body for a request."""
    return json.loads(encoder(model, version, cache).encode(chat(*messages, **fields)).content)
