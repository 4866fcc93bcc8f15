"""What a reader is shown of one model call: its text and its reasoning, changed on their way."""

from msgspec import structs

from retinue.advisors.redact.places import Stream
from retinue.messages import Delta, TextDelta, ThinkingDelta


class Showing:
    """A transform that changes what is shown and returned. What is stored has rules of its own.

    Args:
        words: changes the text.
        thoughts: changes the reasoning, or None to leave it.
    """

    delivery_only = True

    __slots__ = ("_last", "_thoughts", "_words")

    def __init__(self, words: Stream, thoughts: Stream | None) -> None:
        self._words = words
        self._thoughts = thoughts
        self._last: type[Delta] | None = None

    def feed(self, delta: Delta) -> tuple[Delta, ...]:
        """Takes one delta; gives what is decided."""
        kind = type(delta)
        if kind is TextDelta and isinstance(delta, TextDelta):
            before = () if self._last is kind else self._switch(kind)
            text = self._words.feed(delta.text)
            return (*before, TextDelta(text)) if text else before
        if isinstance(delta, ThinkingDelta):
            before = () if self._last is kind else self._switch(kind)
            return (*before, *self._thought(delta))
        return (delta,)

    def flush(self) -> tuple[Delta, ...]:
        """The model has ended: gives what is held."""
        return self._switch(None)

    def _thought(self, delta: ThinkingDelta) -> tuple[Delta, ...]:
        if self._thoughts is None:
            return (delta,)
        text = self._thoughts.feed(delta.text)
        if delta.signature is None and delta.opaque is None:
            return (ThinkingDelta(text),) if text else ()
        return (structs.replace(delta, text=text + self._thoughts.flush()),)

    def _switch(self, kind: type[Delta] | None) -> tuple[Delta, ...]:
        """What is held of the other kind: it has ended where this one begins."""
        last, self._last = self._last, kind
        if last is TextDelta:
            text = self._words.flush()
            return (TextDelta(text),) if text else ()
        if last is ThinkingDelta and self._thoughts is not None:
            text = self._thoughts.flush()
            return (ThinkingDelta(text),) if text else ()
        return ()
