"""Claude as the strict fake provider plays it, and what came of asking it."""

import asyncio
from typing import Any

from retinue.models.anthropic.model import Anthropic

KEY = "sk-ant-rig"  # the key that the fake provider takes


def claude(rig: Any, session: str, model: str = "claude-haiku-4-5", **options: Any) -> Anthropic:
    """A model that the fake provider plays."""
    options = {"api_key": KEY, "timeout": 5.0} | options
    return Anthropic(model, base_url=rig.anthropic(session), **options)


async def requests(rig: Any, session: str) -> list[dict[str, Any]]:
    """The requests of a session, none of which was refused."""
    log = await asyncio.to_thread(rig.log, session)
    assert [(entry["rule"], entry["error"]) for entry in log] == [(None, None)] * len(log)
    return log
