"""What keeps reasoning from the reader, while the log and the provider have it as it was.

Both are for delivery only: a model that wants its reasoning back, signed, gets it (R-STREAM-7).
"""

from collections.abc import Awaitable, Callable

from retinue.messages import Delta, TextDelta, ThinkingDelta


class Veil:
    """A transform that leaves reasoning out."""

    delivery_only = True

    def feed(self, delta: Delta) -> tuple[Delta, ...]:
        """Takes one delta."""
        return () if type(delta) is ThinkingDelta else (delta,)

    def flush(self) -> tuple[Delta, ...]:
        """Nothing is held."""
        return ()


class Digest:
    """A transform that gives a summary in the place of reasoning, when that is complete.

    It is complete where text follows, or the model has ended.

    Args:
        summarize: gives the summary of a text, or nothing.
    """

    delivery_only = True

    def __init__(self, summarize: Callable[[str], Awaitable[str]]) -> None:
        self._summarize = summarize
        self._pieces: list[str] = []

    def feed(self, delta: Delta) -> tuple[Delta, ...] | Awaitable[tuple[Delta, ...]]:
        """Takes one delta."""
        if type(delta) is ThinkingDelta:
            self._pieces.append(delta.text)
            return ()
        if type(delta) is TextDelta and delta.text and self._pieces:
            return self._told(delta)
        return (delta,)

    def flush(self) -> tuple[Delta, ...] | Awaitable[tuple[Delta, ...]]:
        """The summary of reasoning that nothing followed."""
        return self._told() if self._pieces else ()

    async def _told(self, *after: Delta) -> tuple[Delta, ...]:
        thought = "".join(self._pieces)
        self._pieces.clear()
        summary = await self._summarize(thought) if thought.strip() else ""
        return (ThinkingDelta(summary), *after) if summary else after
