"""Stream transforms, and the delivery of what one model call sends (R-STREAM-2, -3).

    model → transforms, the innermost first → the message that is logged
          → transforms that are `delivery_only` → the message that is returned → the reader

A transform is an object with `feed(delta)`, which gives the deltas to go on with (none, one or
many), and `flush()`, which gives what it still holds when the model has ended normally. It is
made anew for each model call, so its state is its own. It sees text and reasoning only: calls,
usage and the finish reason pass by, so that what is shown of a call is what runs. Either method
may raise `Refusal`: the model call is given up, and the turn ends as blocked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, cast

from msgspec import structs

from retinue.chains import events
from retinue.chains.channel import Channel
from retinue.chains.scope import Scope
from retinue.errors import ConfigError, ModelError
from retinue.messages import (
    Accumulator,
    Delta,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    new_id,
)
from retinue.messages.estimate import BYTES_PER_TOKEN, size

Given = Iterable[Delta] | Awaitable[Iterable[Delta]]
"""What a transform gives: deltas, at once or when awaited."""


class Transform(Protocol):
    """Changes the text and the reasoning of one model call on their way.

    A transform with an attribute `delivery_only = True` changes what is shown and returned, while
    the log keeps what the model said; it comes after all others. One with a method
    `retried(error, wait)` is told of each failure that is tried again after `wait` seconds, which
    comes before any delta.
    """

    def feed(self, delta: Delta, /) -> Given:
        """Takes one delta and gives those to go on with. An unknown kind goes on as it is.

        It may be `async` where a check must be; the model waits for as long.
        """
        ...

    def flush(self) -> Given:
        """The model has ended normally: gives what is still held. Never called after an error."""
        ...


Transforms = Transform | Sequence[Transform] | None
"""What a `stream` hook gives: a transform, several in the order an answer meets them, or none."""


class Refusal(BaseException):
    """A transform gives the model call up; chat layers get a response that is refused.

    What was shown of the answer is taken back. It is no `Exception`, so that a layer that retries
    or hides errors has nothing to do with it.

    Args:
        by: the name of the advisor.
        reason: why.
        answer: what the caller is told instead.
    """

    def __init__(self, by: str, reason: str, *, answer: str = "") -> None:
        super().__init__(reason)
        self.by = by
        self.reason = reason
        self.answer = answer


class Collector:
    """Takes what a model sends and shows it to nobody.

    Args:
        model, provider: who is asked.

    Attributes:
        started: whether anything has come that a retry could not take back unnoticed.
    """

    __slots__ = ("_shown", "_source", "started")

    def __init__(self, model: str | None = None, provider: str | None = None) -> None:
        self.started = False
        self._source = (model, provider)
        self._shown = Accumulator()

    async def __call__(self, delta: Delta) -> None:
        """Takes one delta."""
        self.started = self.started or isinstance(delta, (TextDelta, ThinkingDelta, ToolCallDelta))
        self._shown.add(delta)

    async def finish(self) -> None:
        """The model has ended normally."""

    def restart(self) -> Usage | None:
        """Before another try: forgets what the last one reported, and gives its tokens."""
        return self._shown.restart()

    def retried(self, error: ModelError, wait: float) -> None:
        """The call failed before its first token; it is tried again after `wait` seconds."""

    @property
    def usage(self) -> Usage | None:
        """What the provider has reported so far."""
        return self._shown.usage

    @property
    def estimate(self) -> int:
        """Output tokens so far, by the length of what was said, thought and asked."""
        return self._shown.size // BYTES_PER_TOKEN

    def message(self, *, partial: bool = False) -> Message:
        """The answer so far."""
        model, provider = self._source
        return self._shown.message(model=model, provider=provider, partial=partial)


class _Tap:
    """Stands among the transforms where the log is fed."""

    def __init__(self, log: Accumulator) -> None:
        self._log = log

    def feed(self, delta: Delta) -> tuple[Delta]:
        self._log.add(delta)
        return (delta,)

    def flush(self) -> tuple[Delta, ...]:
        return ()


class Delivery(Collector):
    """One model call's way out. A model calls it with each delta: `await send(delta)`.

    Attributes:
        attempt: its number.
        answer: the message that it became, once the loop has that; until then it is cut short.
        closed: whether the text stands whatever comes, as words said before a tool call do.
        waits: whether the reader is shown the text only when the turn ends with it; if a call
            follows, it was no answer, and is shown then.
    """

    __slots__ = (
        "_budget", "_bytes", "_calls", "_channel", "_discarded", "_feeds", "_held", "_logged",
        "_scope", "_transforms", "answer", "attempt", "closed", "waits",
    )  # fmt: skip

    def __init__(
        self,
        scope: Scope,
        transforms: Sequence[Transform] = (),
        *,
        model: str | None = None,
        provider: str | None = None,
        waits: bool = False,
    ) -> None:
        super().__init__(model, provider)
        before = scope.standing
        if before is not None and not before.closed:
            before.discard("the model was asked again")
        scope.attempt += 1
        scope.standing = self
        self.attempt = scope.attempt
        self.answer: Message | None = None
        self.closed = False
        self._calls: dict[int, str] = {}  # the id of each call, by its index
        self._scope = scope
        self._channel: Channel | None = scope.channel
        self._discarded = False
        self.waits = waits
        holds = scope.channel is not None and (scope.final_only or waits)
        self._held: list[str] | None = [] if holds else None
        # Tuples: there are none of these, most of the time, and an empty tuple takes no room.
        plain = tuple([t for t in transforms if not getattr(t, "delivery_only", False)])
        late = tuple([t for t in transforms if getattr(t, "delivery_only", False)])
        self._logged = Accumulator() if late else self._shown
        self._transforms = (*plain, _Tap(self._logged), *late) if late else plain
        self._feeds = tuple([t.feed for t in self._transforms])
        self._budget = None if scope.token_limit is None else scope.token_limit - scope.tokens
        self._bytes = 0
        scope.emit(events.AttemptStarted)

    async def __call__(self, delta: Delta) -> None:
        """Takes one delta; waits if the reader is behind.

        Raises:
            CancelledError: the turn has ended, or its budget of tokens is used up.
        """
        if self._scope.stopping.over:
            raise asyncio.CancelledError
        if isinstance(delta, (TextDelta, ThinkingDelta)):
            self.started = True
            if self._feeds:
                waiting = self._feed(delta)
                if waiting is not None:
                    await waiting
            else:
                self._take(delta)
            if self._budget is not None:
                self._spend(delta.text)
        else:
            if isinstance(delta, ToolCallDelta):
                self.started = True
                delta = self._told_apart(delta)
                if self.waits:
                    self._comment()
                if self._budget is not None:
                    self._spend(delta.arguments)
            if self._logged is not self._shown:
                self._logged.add(delta)
            self._take(delta)
        channel = self._channel
        if channel is not None and channel.full:
            await channel.drain()

    async def finish(self) -> None:
        """The model has ended normally: transforms give what they hold, from the innermost on."""
        for at, transform in enumerate(self._transforms):
            await self._pass_on(at, transform.flush())
        if not self._calls and not self.waits:
            self.release()

    def release(self) -> None:
        """Shows the text that was held back: it is the answer."""
        self.waits = False
        held, self._held = self._held, None
        if held and not self._discarded:
            self._emit(events.TextChunk, "".join(held))

    def _comment(self) -> None:
        """A call has come: the text before it is no answer."""
        self.waits = False
        if not self._scope.final_only:
            self.release()

    @property
    def text(self) -> str:
        """The text that the reader holds of it, or that waits for him."""
        dropped = self._discarded or (self._held is not None and not self.waits)
        return "" if dropped else self._shown.text

    @property
    def estimate(self) -> int:
        """Output tokens so far: before any transform where a token limit is set, else behind."""
        return super().estimate if self._budget is None else self._bytes // BYTES_PER_TOKEN

    def restart(self) -> Usage | None:
        """Before another try: forgets what the last one reported, and gives its tokens."""
        if self._logged is not self._shown:
            self._logged.restart()
        return super().restart()

    def retried(self, error: ModelError, wait: float) -> None:
        """Tells the reader, and those transforms that have a method of this name."""
        self._scope.emit(events.ModelRetried, error=str(error), wait=wait)
        for transform in self._transforms:
            told = getattr(transform, "retried", None)
            if told is not None:
                told(error, wait)

    def message(self, *, partial: bool = False) -> Message:
        """The answer as it was shown. Where the log has it otherwise, the scope is told."""
        shown = super().message(partial=partial)
        if self._logged is not self._shown:
            model, provider = self._source
            logged = self._logged.message(model=model, provider=provider, partial=partial)
            calls = iter(shown.tool_calls)  # the same ones, also where they had to be given ids
            parts = tuple(next(calls) if type(p) is ToolCall else p for p in logged.parts)
            self._scope.log.originals[shown.id] = (shown, logged.with_(id=shown.id, parts=parts))
        return shown

    def discard(self, reason: str) -> None:
        """Takes back what the reader was shown of this attempt."""
        if self._discarded or self.closed:
            return
        self._discarded = True
        if self._channel is not None:
            self._emit(events.AttemptDiscarded, reason)

    def say(self, text: str) -> None:
        """Delivers a text that no model sent."""
        if not self.waits:
            self._held = None  # it is the answer, not what comes before a call
        self._take(TextDelta(text))

    def _feed(self, delta: Delta) -> Awaitable[None] | None:
        """One delta through all transforms; one that gives one is the case to be quick in."""
        for at, feed in enumerate(self._feeds):
            out = feed(delta)
            if not isinstance(out, tuple):
                return self._pass_on(at, out)
            if len(out) != 1:
                return self._pass_on(at, out) if out else None
            delta = out[0]
        self._take(delta)
        return None

    async def _pass_on(self, at: int, given: Given) -> None:
        """What the transform at this place gave, through those behind it."""
        out = cast("object", await given if isinstance(given, Awaitable) else given)
        if not isinstance(out, Iterable) or isinstance(out, (str, bytes)):
            raise ConfigError(
                f"The transform {type(self._transforms[at]).__name__} gave {type(out).__name__}; it"
                " must give deltas: a tuple or a list of them, which may be empty."
            )
        after = at + 1
        for delta in cast("Iterable[Delta]", out):
            if after == len(self._feeds):
                self._take(delta)
            else:
                await self._pass_on(after, self._feeds[after](delta))

    def _told_apart(self, delta: ToolCallDelta) -> ToolCallDelta:
        """The delta with an id that no other call of the turn has; some providers use one again."""
        known = self._calls.get(delta.index)
        if known is None:
            taken = not delta.id or delta.id in self._scope.call_ids
            known = self._calls[delta.index] = f"call_{new_id()}" if taken else delta.id
        elif not delta.id:
            return delta
        return delta if delta.id == known else structs.replace(delta, id=known)

    def _take(self, delta: Delta) -> None:
        self._shown.add(delta)
        if self._channel is None or self._discarded:
            return
        if isinstance(delta, TextDelta):
            if self._held is None:
                self._emit(events.TextChunk, delta.text)
            else:
                self._held.append(delta.text)
        elif isinstance(delta, ThinkingDelta):
            if delta.text:
                self._emit(events.ThinkingChunk, delta.text)
        elif isinstance(delta, ToolCallDelta):
            self._emit(events.ToolArguments, delta.index, delta.id, delta.name, delta.arguments)

    def _emit(self, kind: Callable[..., events.Event], *fields: object) -> None:
        channel = self._channel
        if channel is not None:
            scope = self._scope
            channel.put(kind(channel.seq + 1, scope.round, self.attempt, scope.path, *fields))

    def _spend(self, text: str) -> None:
        self._bytes += size(text)
        if self._budget is not None and self.estimate >= self._budget:
            limit = self._scope.token_limit
            self._scope.stopping.interrupt("limit", f"The budget of {limit} tokens is used up.")


def settle(scope: Scope, text: str, reason: str, *, waits: bool = False) -> None:
    """Sees to it that the reader holds `text` as the last attempt (R-STREAM-8).

    Args:
        scope: the turn.
        text: the answer.
        reason: why what he holds is taken back, if it is another text.
        waits: whether he is shown it only when the turn ends.
    """
    standing = scope.standing
    if ("" if standing is None else standing.text) == text:
        if standing is not None and standing.waits and not waits:
            standing.release()
        return
    if standing is not None:
        standing.discard(reason)
    if text or (standing is not None and standing.closed):
        Delivery(scope, waits=waits).say(text)
