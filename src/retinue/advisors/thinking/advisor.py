"""The advisor: it tells reasoning from text, decides who sees it, and measures it.

It has two hooks. `stream` gives the transforms of one model call; `turn` puts what was thought into
the context of the result, as the log has it, so that what an outer layer redacts stays redacted.
"""

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from retinue.advisors.thinking.tags import TAGS, Tag, Tags, Untag
from retinue.advisors.thinking.veil import Digest, Veil
from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    Transform,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.messages import Thinking as Thought
from retinue.messages.masking import error_words

Summarize = Callable[[str], str | Awaitable[str]]
"""Sums reasoning up; it may be `async`."""

THINKING: Final = "thinking"
"""Under which the thoughts of a turn stand in the context of its result."""

_SHOW: Final = ("shown", "hidden", "summary")
_INSTRUCTIONS: Final = (
    "You are given the reasoning of an assistant. Sum up in one or two sentences, in its own"
    " language, what it considered and how it decided. Do not answer the question itself."
)
_logger: Final = logging.getLogger("retinue")


class Thoughts(Struct, frozen=True):
    """What was thought in a turn.

    Attributes:
        text: the reasoning of all model calls, joined by blank lines; as the log has it.
        seconds: from the first thought of each call to its last, added up.
        rounds: how many answers had reasoning.
        tokens: what it took, where the provider reports that; None where none does.
    """

    text: str = ""
    seconds: float = 0.0
    rounds: int = 0
    tokens: int | None = None

    def __add__(self, other: "Thoughts") -> "Thoughts":
        known = [tokens for tokens in (self.tokens, other.tokens) if tokens is not None]
        return Thoughts(
            "\n\n".join(text for text in (self.text, other.text) if text),
            self.seconds + other.seconds,
            self.rounds + other.rounds,
            sum(known) if known else None,
        )


class Thinking(Advisor):
    """Keeps the reasoning of a model apart from its answer.

    Reasoning that the provider tells apart passes; what stands in tags in the text is taken out of
    it. Either way it is kept in the log, and goes back to a provider that wants it.

    Args:
        show: what readers and callers see of it: "shown" all of it, as thinking; "hidden" nothing;
            "summary" a summary of each block, when that is complete.
        tags: where reasoning stands in the text: names, such as "think", or pairs of what opens and
            what closes. None or () leaves the text alone.
        anywhere: whether tags count in the middle of an answer too. By default they count where an
            answer begins alone, since it may talk about the tag.
        opened: whether the model's template has opened the first tag already, so that its answer
            begins with reasoning.
        summarize: gives the summary of a text. By default a model is asked, on the side.
        model: that model; by default the turn's own.
        clock: gives seconds, for the measuring.

    Raises:
        ConfigError: a value cannot be used.
    """

    order = 400  # the slot of thinking (R-ONION-8)

    def __init__(
        self,
        show: Literal["shown", "hidden", "summary"] = "shown",
        *,
        tags: Sequence[Tag] | None = TAGS,
        anywhere: bool = False,
        opened: bool = False,
        summarize: Summarize | None = None,
        model: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if show not in _SHOW:
            raise ConfigError(f"Thinking({show!r}): show it as one of {_SHOW}.")
        if summarize is not None and not takes(summarize, 1):
            raise ConfigError(f"Thinking(summarize={summarize!r}): give a function of a text.")
        if (summarize or model) and show != "summary":
            raise ConfigError(f"Thinking({show!r}) sums nothing up; leave summarize and model out.")
        if summarize is not None and model is not None:
            raise ConfigError("Thinking(summarize=..., model=...): give one of the two.")
        if isinstance(tags, str):
            raise ConfigError(f"Thinking(tags={tags!r}): give a list, as in tags=[{tags!r}].")
        if not tags and (anywhere or opened):
            raise ConfigError("Thinking(tags=()) looks for no tags; leave anywhere and opened out.")
        self._show = show
        self._tags = Tags(tags) if tags else None
        self._anywhere = anywhere
        self._opened = opened
        self._summarize = summarize
        self._model = model
        self._clock = clock
        self.traits = frozenset({"takes-out-thinking"} if tags else ())

    @staticmethod
    def of(result: TurnResponse) -> Thoughts:
        """What was thought in the turn; nothing where no `Thinking` was among its layers."""
        return _standing(result.context)

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Puts what was thought into the context of the result."""
        mine = request.local(self)
        if "asked" not in mine:
            mine["asked"] = frozenset(message.id for message in request.messages)
            mine["earlier"] = _standing(request.context) if request.resumed else Thoughts()
        response = await call_next(request)
        thoughts = mine["earlier"] + _collected(response, mine["asked"], mine.get("watches", ()))
        return response.with_(context={**response.context, THINKING: thoughts})

    def stream(self, request: ChatRequest) -> Sequence[Transform]:
        """The transforms of one model call."""
        watch = _Watch(self._clock)
        request.local(self).setdefault("watches", []).append(watch)
        untag = Untag(self._tags, anywhere=self._anywhere, opened=self._opened, note=watch.note)
        if self._show == "hidden":
            return (untag, Veil())
        if self._show == "summary":
            return (untag, Digest(lambda text: self._summary(request, text)))
        return (untag,)

    async def _summary(self, request: ChatRequest, text: str) -> str:
        """The summary, or nothing: an answer does not fail for want of one."""
        try:
            if self._summarize is None:
                answer = await request.consult(text, model=self._model, instructions=_INSTRUCTIONS)
                return answer.text.strip()
            given: Any = self._summarize(text)
            summary: Any = await given if inspect.isawaitable(given) else given
            if not isinstance(summary, str):
                raise ConfigError(f"summarize gave {type(summary).__name__}; it must give a text.")
            return summary
        except Exception as error:
            told = error_words(error)
            _logger.warning("%s shows reasoning without a summary: %s", self.name, told)
            return ""


class _Watch:
    """The time from the first thought of a model call to its last."""

    __slots__ = ("_began", "_clock", "seconds")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._began: float | None = None
        self._clock = clock
        self.seconds = 0.0

    def note(self) -> None:
        now = self._clock()
        if self._began is None:
            self._began = now
        self.seconds = now - self._began


def _collected(
    response: TurnResponse, asked: frozenset[str], watches: Sequence[_Watch]
) -> Thoughts:
    """What the answers of the turn hold, those that were given up included."""
    thoughts = Thoughts(seconds=sum(watch.seconds for watch in watches))
    for message in response.messages:
        if message.id in asked or not any(type(part) is Thought for part in message.parts):
            continue
        tokens = None if message.usage is None else message.usage.reasoning
        thoughts += Thoughts(message.thinking, 0.0, 1, tokens)
    return thoughts


def _standing(context: Mapping[str, Any]) -> Thoughts:
    """What stands in the context as thoughts; of a turn that was paused, it came from a store."""
    kept = context.get(THINKING)
    if isinstance(kept, Thoughts):
        return kept
    try:
        return msgspec.convert(kept, Thoughts)
    except msgspec.ValidationError:  # it is the caller's own
        return Thoughts()
