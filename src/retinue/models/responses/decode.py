"""Answers of the Responses format, as deltas. No I/O: events in, deltas out.

A stream tells of each item of the answer as it begins, grows and is done, and at its end of the
whole answer. What an item is, is the business of `items`; here is what holds for all of them: the
state of the answer, its tokens, its errors. An item that never was done in the stream is read from
the whole answer at the end.

Calls of tools that the provider runs are no calls. They are in `meta["executed_tools"]`, citations
in `meta["annotations"]`, a refusal in `meta["refusal"]`, and how likely each token was in
`meta["logprobs"]`.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from retinue.errors import ModelError
from retinue.messages import Delta, FinishDelta, UsageDelta
from retinue.models import failures
from retinue.models.failures import Peer
from retinue.models.loose import UNREADABLE, a_list, a_text, a_value, an_object, mended
from retinue.models.responses.items import Items
from retinue.models.responses.usage import normal_usage
from retinue.models.sse import Event

FINISH: Final = {"completed": "stop", "complete": "stop", "max_output_tokens": "length"}
"""Why an answer ended, in the words of `FinishDelta`; others stay as they are."""

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_REFUSED: Final = re.compile(r"image|policy|unsupported")  # codes that no other format has
_LATER: Final = ("queued", "in_progress")
_NO_CREDIT: Final = "insufficient_quota"
_NOTHING: Final = Raw(b"null")


class _Event(Struct):
    """The fields of events that are read, of all types of event."""

    type: Any = None
    output_index: Any = None
    delta: Any = None
    item: Raw = _NOTHING
    response: Raw = _NOTHING
    error: Any = None


class _Response(Struct):
    """The whole answer, or what there is of it so far."""

    id: Any = None
    model: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: Any = None
    output: list[Raw] | None = None
    usage: Any = None


_event = msgspec.json.Decoder(_Event)
_response = msgspec.json.Decoder(_Response)


class Decoder:
    """Decodes one answer: events of a stream, or one event that is a whole answer.

    Give it each event, until there are no more or it is `over`; then call `end`. An error in the
    answer comes out of `end`, so that what stood before it is not lost.

    Args:
        peer: whom errors name.
        whole: whether the answer is a whole one.
        keeps_id: whether the answer's id is kept in it, for later requests to go on from.
    """

    __slots__ = (
        "_ended", "_error", "_finish", "_id", "_items", "_keeps_id", "_peer", "_spoke", "_whole",
        "meta", "over",
    )  # fmt: skip

    def __init__(self, peer: Peer, whole: bool = False, *, keeps_id: bool = False) -> None:
        self._peer = peer
        self._whole = whole
        self._keeps_id = keeps_id
        self._items = Items()
        self._ended = False  # whether the answer has come to its end
        self._error: ModelError | None = None
        self._finish = ""
        self._id = ""
        self._spoke = False  # whether anything has been handed on
        self.over = False
        self.meta: dict[str, Any] = {}

    def feed(self, event: Event) -> Sequence[Delta]:
        """The deltas that this event holds."""
        if self.over:
            return ()
        try:
            return self._feed(event, event.data)
        except UNREADABLE as error:
            return self._feed_odd(event, error)

    def end(self) -> Sequence[Delta]:
        """The deltas that come last.

        Raises:
            ModelError: the answer was an error, or held one, or was cut short.
        """
        if self._error is not None:
            raise self._error
        if not self._ended:
            if self._whole:
                raise failures.broken(self._peer, "sent an answer with nothing in it; try again")
            raise failures.cut_short(self._peer, begun=self._spoke)
        items = self._items
        for name, found in (
            ("refusal", items.refusal),
            ("annotations", items.citations),
            ("executed_tools", items.executed),
            ("logprobs", items.logprobs),
        ):
            if found:
                self.meta[name] = found
        deltas = items.end(self._id if self._keeps_id else "")
        finish = FINISH.get(self._finish, self._finish)
        if finish == "stop" and items.calls:
            finish = "tool_calls"
        elif finish == "stop" and items.refusal:
            finish = "content_filter"
        deltas.append(FinishDelta(finish))
        return deltas

    # -- one event ----------------------------------------------------------------------------

    def _feed(self, event: Event, data: bytes) -> Sequence[Delta]:
        if self._whole:
            deltas = self._read_response(Raw(data))
        elif data[:6] == b"[DONE]" or not data.strip():
            return ()
        elif event.name == "error":  # its data may be no JSON
            self._fail(a_value(data))
            return ()
        else:
            said = _event.decode(data)
            kind = a_text(said.type) or event.name
            if kind == "error" or (said.error and not kind):
                self._fail(a_value(data))
                return ()
            deltas = self._read_event(kind, said)
        if deltas:
            self._spoke = True
        return deltas

    def _feed_odd(self, event: Event, error: Exception) -> Sequence[Delta]:
        """What is no event at first sight: bad characters, an error in a list, or no JSON."""
        try:
            return self._feed(event, mended(event.data))
        except ValueError:
            pass
        listed = a_list(a_value(event.data))
        if listed and "error" in an_object(listed[0]):
            self._fail(listed[0])
        else:
            self._error = failures.no_answer(self._peer, error, event.data)
            self.over = True
        return ()

    def _read_event(self, kind: str, event: _Event) -> list[Delta]:
        items = self._items
        place = event.output_index
        if not isinstance(place, int):
            place = items.next if kind == "response.output_item.added" else max(items.next - 1, 0)
        if kind == "response.output_text.delta":
            return items.say(place, a_text(event.delta))
        if kind == "response.function_call_arguments.delta":
            return items.call(place, a_text(event.delta), "function_call")
        if kind == "response.reasoning_summary_text.delta":
            return items.think(place, a_text(event.delta), "summary")
        if kind == "response.reasoning_text.delta":
            return items.think(place, a_text(event.delta), "content")
        if kind == "response.custom_tool_call_input.delta":
            return items.call(place, a_text(event.delta), "custom_tool_call")
        if kind == "response.output_item.added":
            return items.begin(place, event.item)
        if kind == "response.output_item.done":
            return items.finish(place, event.item)
        return self._read_state(kind, event)

    def _read_state(self, kind: str, event: _Event) -> list[Delta]:
        """An event that tells of the answer as a whole."""
        if kind in _ENDS:
            return self._read_response(event.response)
        if kind == "response.created":
            self._read_head(_response.decode(event.response))
        return []

    # -- the whole answer -----------------------------------------------------------------------

    def _read_response(self, raw: Raw) -> list[Delta]:
        response = _response.decode(raw)
        deltas: list[Delta] = []
        if response.status is None and response.output is None:
            self._fail(a_value(bytes(raw)))
            return deltas
        self._read_head(response)
        for place, item in enumerate(response.output or ()):
            deltas += self._items.finish(place, item)
        usage = normal_usage(response.usage)
        if usage is not None:
            deltas.append(UsageDelta(usage))
        cost = an_object(response.usage).get("cost")
        if isinstance(cost, (int, float)):  # OpenRouter, in USD
            self.meta["cost"] = cost
        status = a_text(response.status) or "completed"
        if response.error or status in ("failed", "cancelled"):
            self._fail(response.error or f"the answer has {status}")
            return deltas
        if self._whole and status in _LATER:
            self._error = failures.broken(
                self._peer,
                f"puts its answer off (status {status!r}), and nobody asks for it again; leave"
                " 'background' out of Settings(extra=...)",
            )
            self.over = True
            return deltas
        self._finish = a_text(an_object(response.incomplete_details).get("reason")) or status
        self._ended = self.over = True
        return deltas

    def _read_head(self, response: _Response) -> None:
        if response.id:
            self._id = a_text(response.id)
            self.meta["id"] = response.id
        if response.model:
            self.meta["model"] = response.model

    def _fail(self, value: Any) -> None:
        self._error = failures.of_answer(self._peer, value, _status_of(value))
        self.over = True


def _status_of(value: Any) -> int | None:
    """The status that an error would have had, where only its code says so."""
    outer = an_object(value)
    code = a_text((an_object(outer.get("error")) or outer).get("code"))
    if code == _NO_CREDIT:
        return 402
    return 400 if _REFUSED.search(code) else None
