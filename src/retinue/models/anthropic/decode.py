"""Answers of the Messages format, as deltas. No I/O: events in, deltas out.

A whole answer is read as the start of a message that has come with all its content. Tools that the
provider runs are no calls: they are kept to go back, and nobody here runs them. Citations are in
`meta`, and so is why the model refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.errors import ModelError, ModelUnreachable
from retinue.messages import Delta, FinishDelta, TextDelta, Usage, UsageDelta
from retinue.models import failures
from retinue.models.anthropic.blocks import BlockDelta, Blocks
from retinue.models.anthropic.usage import normal_usage
from retinue.models.failures import Peer
from retinue.models.loose import UNREADABLE, a_list, a_text, a_value, an_object, mended
from retinue.models.sse import Event

FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Stop reasons in the words of `FinishDelta`; others, as "pause_turn", stay."""

STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that an error of this type would have had, had it not come in an answer."""

_ENDING: Final = ("container", "stop_details", "stop_reason", "stop_sequence")
_ASIDE: Final = ("container", "context_management", "stop_sequence")
_COUNTED: Final = ("iterations", "server_tool_use")  # beside tokens; the latter costs, too


class _Event(Struct):
    type: str = ""
    index: Any = None
    delta: BlockDelta | None = None
    content_block: Any = None
    message: Any = None
    usage: Any = None
    context_management: Any = None


_event = msgspec.json.Decoder(_Event)


class Decoder:
    """Decodes one answer: events of a stream, or one event that is a whole answer.

    Give it each event, until there are no more or it is `over`; then call `end`. An error in the
    answer comes out of `end`, so that what stood before it is not lost.

    Args:
        peer: whom errors name.
        whole: whether the answer is a whole one.
    """

    __slots__ = (
        "_begun", "_blocks", "_error", "_finish", "_peer", "_report", "_spoke", "_usage", "_whole",
        "meta", "over",
    )  # fmt: skip

    def __init__(self, peer: Peer, whole: bool = False) -> None:
        self._peer = peer
        self._whole = whole
        self._begun = False  # whether an answer has come
        self._blocks = Blocks()
        self._error: ModelError | None = None
        self._finish = ""
        self._report: dict[str, Any] = {}  # counts so far: later ones win, one by one
        self._spoke = False  # whether anything has been handed on
        self._usage: Usage | None = None
        self.over = False
        self.meta: dict[str, Any] = {}

    def feed(self, event: Event) -> Sequence[Delta]:
        """The deltas that this event holds."""
        if self.over:
            return ()
        if self._whole:
            deltas = self._read_whole(event.data)
        else:
            said = self._read(event)
            if said is None:
                return ()
            delta = said.delta
            # The hot path: text that need not wait, which is nearly all that comes.
            if delta is not None and delta.type == "text_delta" and self._blocks.awaited is None:
                self._spoke = True
                return (TextDelta(delta.text),) if delta.text else ()
            deltas = self._hear(said, event)
        if not self._spoke:
            self._spoke = any(not isinstance(delta, UsageDelta) for delta in deltas)
        return deltas

    def end(self) -> Sequence[Delta]:
        """The deltas that come last.

        Raises:
            ModelError: the answer was an error, or held one, or was cut short.
        """
        if self._error is not None:
            raise self._error
        if not (self._begun or self._spoke):
            raise ModelUnreachable(f"{self._peer} sent no answer at all. Try again.")
        if not (self._whole or self.over or self._finish):
            raise failures.cut_short(self._peer, begun=self._spoke)
        deltas = self._blocks.finish()
        if self._blocks.citations:
            self.meta["citations"] = self._blocks.citations
        if self._finish:
            deltas.append(FinishDelta(FINISH.get(self._finish, self._finish)))
        return deltas

    # -- one event ----------------------------------------------------------------------------

    def _read(self, event: Event) -> _Event | None:
        try:
            return _event.decode(event.data)
        except UNREADABLE as error:
            return self._read_odd(event, error)

    def _read_odd(self, event: Event, error: Exception) -> _Event | None:
        """What is no event at first sight: bad characters, or no JSON."""
        data = event.data.strip()
        if data == b"[DONE]":  # not of this format, but some compatible servers send it
            self.over = True
        elif data and event.name == "error":
            self._fail(a_value(data))
        elif data:
            try:
                return _event.decode(mended(data))
            except ValueError:
                self._error = failures.no_answer(self._peer, error, data)
                self.over = True
        return None

    def _hear(self, said: _Event, event: Event) -> list[Delta]:
        kind = said.type or event.name
        if kind == "content_block_delta":
            return [] if said.delta is None else self._blocks.grow(said.index, said.delta)
        if kind == "content_block_start":
            return self._blocks.start(said.index, an_object(said.content_block))
        if kind == "content_block_stop":
            return self._blocks.stop(said.index)
        if kind == "message_start":
            return self._begin(an_object(said.message))
        if kind == "message_delta":
            ended = said.delta or BlockDelta()
            fields = {name: getattr(ended, name) for name in _ENDING}
            self._close({**fields, "context_management": said.context_management})
            return self._count(an_object(said.usage))
        if kind == "message_stop":
            self.over = True
        elif kind == "error":
            self._fail(a_value(event.data))
        return []  # pings, and what is still to be invented

    def _read_whole(self, data: bytes) -> list[Delta]:
        value = a_value(data)
        message = an_object(value)
        if "content" in message and message.get("type") != "error":
            return self._begin(message)
        if message:
            self._fail(value)
        else:
            self._error = failures.no_answer(self._peer, "no object", data)
        return []

    def _fail(self, value: Any) -> None:
        kind = a_text(an_object(an_object(value).get("error")).get("type"))
        self._error = failures.of_answer(self._peer, value, STATUS.get(kind))
        self.over = True

    # -- the message --------------------------------------------------------------------------

    def _begin(self, message: Mapping[str, Any]) -> list[Delta]:
        self._begun = True
        for name in ("id", "model"):
            if message.get(name):
                self.meta[name] = message[name]
        deltas: list[Delta] = []
        for at, block in enumerate(a_list(message.get("content"))):
            deltas += self._blocks.start(at, an_object(block))
            deltas += self._blocks.stop(at)
        self._close(message)
        return deltas + self._count(an_object(message.get("usage")))

    def _close(self, fields: Mapping[str, Any]) -> None:
        self._finish = a_text(fields.get("stop_reason")) or self._finish
        for name in _ASIDE:
            if fields.get(name) is not None:
                self.meta[name] = fields[name]
        details = an_object(fields.get("stop_details"))
        if details:
            words = a_text(details.get("explanation")) or a_text(details.get("category"))
            self.meta["refusal"] = words or "the provider gives no reason"

    def _count(self, report: Mapping[str, Any]) -> list[Delta]:
        self._report |= {name: count for name, count in report.items() if count is not None}
        for name in _COUNTED:
            if report.get(name):
                self.meta[name] = report[name]
        usage = normal_usage(self._report)
        if usage is None or usage == self._usage:
            return []
        self._usage = usage
        return [UsageDelta(usage)]
