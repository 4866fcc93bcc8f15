"""One writer per conversation within this process (R-MEM-6), for every store.

What keeps other processes out is the store's own affair.
"""

import os
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from retinue.stores import rules
from retinue.stores.turnstile import Turnstile

_writers: Final = Turnstile()


@asynccontextmanager
async def alone(place: Hashable, conversation: str, *, wait: bool) -> AsyncGenerator[None]:
    """Held by one at a time, the others in the order of arrival.

    Args:
        place: where the conversation is kept; ids of different places are different conversations.
        conversation: its id.
        wait: whether to wait for a holder.

    Raises:
        ConversationBusy: another holds it, and `wait` is False.
    """
    key = (place, conversation)
    if not await _writers.enter(key, wait=wait):
        raise rules.busy(conversation)
    try:
        yield
    finally:
        _writers.leave(key)


os.register_at_fork(after_in_child=_writers.forget)
