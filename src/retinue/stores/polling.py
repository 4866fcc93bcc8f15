"""How a store waits for what another process holds, where nothing tells it of the release.

It asks again and again, more and more seldom. Within a process nobody need ask: see `alone`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from retinue.stores import rules

_FIRST_PAUSE: Final = 0.005  # seconds between two tries; doubles
_LONGEST_PAUSE: Final = 0.1


async def until_taken(
    take: Callable[[], Awaitable[bool]], conversation: str, *, wait: bool
) -> None:
    """Returns once `take` has said True.

    Raises:
        ConversationBusy: it said False, and `wait` is False.
    """
    pause = _FIRST_PAUSE
    while not await take():
        if not wait:
            raise rules.busy(conversation)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
