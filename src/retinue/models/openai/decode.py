"""Answers of the Chat Completions format, as deltas. No I/O: events in, deltas out.

Many servers speak the format, each a little otherwise, and all of it is read here without asking
who speaks. What they send is in the recordings that the tests replay.

Text is what stands in the content; `<think>` tags that a server leaves there stay in it. Reasoning
is found under `reasoning_content`, `reasoning`, `reasoning_details` and in typed content parts. Of
speech, the words are the text. A refusal is no text: it is in `meta`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from retinue.models import failures
from retinue.models.failures import Peer
from retinue.models.loose import UNREADABLE, a_list, a_text, a_value, an_object, mended
from retinue.models.openai.beside import Beside
from retinue.models.openai.calls import Calls
from retinue.models.openai.details import Details
from retinue.models.openai.usage import normal_usage
from retinue.models.sse import Event

FINISH: Final = {
    "function_call": "tool_calls",
    "end_turn": "stop",
    "eos": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "sensitive": "content_filter",
}
"""Finish reasons in the words of `FinishDelta`; others stay as they are."""

FAILED: Final = {"error": 500, "insufficient_system_resource": 529}
"""Finish reasons of an answer that failed, and the status that each would have had."""


class _Function(Struct):
    name: Any = None
    arguments: Any = None


class _Call(Struct):
    index: Any = None
    id: Any = None
    function: _Function | None = None


class _Said(Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    refusal: Any = None
    annotations: Any = None
    audio: Any = None
    executed_tools: Any = None
    images: Any = None


class _Choice(Struct):
    index: Any = None
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: Any = None
    logprobs: Any = None


class _Groq(Struct):
    usage: Any = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: _Groq | None = None
    citations: Any = None
    search_results: Any = None


class _Head(Struct):
    id: Any = None
    model: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
_head = msgspec.json.Decoder(_Head)


class Decoder:
    """Decodes one answer: events of a stream, or one event that is a whole answer.

    Give it each event, until there are no more or it is `over`; then call `end`. An error in the
    answer comes out of `end`, so that what stood before it is not lost.

    Args:
        peer: whom errors name.
        whole: whether the answer is a whole one.
    """

    __slots__ = (
        "_beside", "_calls", "_choice", "_details", "_error", "_finish", "_head_read", "_peer",
        "_refusal", "_spoke", "_usage", "_whole", "meta", "over",
    )  # fmt: skip

    def __init__(self, peer: Peer, whole: bool = False) -> None:
        self._peer = peer
        self._whole = whole
        self._beside = Beside()
        self._calls = Calls()
        self._details = Details()
        self._choice = False  # whether an answer has come
        self._error: ModelError | None = None
        self._finish = ""
        self._head_read = False
        self._refusal = ""
        self._spoke = False  # whether anything has been handed on
        self._usage: Any = None
        self.over = False
        self.meta = self._beside.meta

    def feed(self, event: Event) -> Sequence[Delta]:
        """The deltas that this event holds."""
        if self.over:
            return ()
        chunk = self._read(event)
        if chunk is None:
            return ()
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if not choice.index:  # nobody asked for a second one
                self._take(choice, deltas)
        if chunk.usage is not None or chunk.x_groq is not None:
            self._count(chunk, deltas)
        if chunk.citations or chunk.search_results:
            self._beside.note(chunk)
        if chunk.error:
            self._fail(chunk.error)
        elif self._whole and not self._choice:
            self._fail(a_value(event.data))
        if deltas:
            self._spoke = True
        return deltas

    def end(self) -> Sequence[Delta]:
        """The deltas that come last.

        Raises:
            ModelError: the answer was an error, or held one, or was cut short.
        """
        if self._error is not None:
            raise self._error
        if not self._choice:
            raise failures.broken(self._peer, "sent an answer with nothing in it; try again")
        if not (self._whole or self.over or self._finish):
            raise failures.cut_short(self._peer, begun=self._spoke)
        if self._finish in FAILED:
            told = f"it ended with {self._finish!r}"
            raise failures.of_answer(self._peer, told, FAILED[self._finish])
        deltas = self._details.flush()
        self._beside.end()
        if self._refusal:
            self.meta["refusal"] = self._refusal
        if self._finish:
            deltas.append(FinishDelta(self._reason()))
        return deltas

    def _reason(self) -> str:
        """Why the answer ended; some servers say "stop" whatever it was."""
        finish = FINISH.get(self._finish, self._finish)
        if finish != "stop":
            return finish
        return "tool_calls" if self._calls.any else "content_filter" if self._refusal else finish

    # -- one event ----------------------------------------------------------------------------

    def _read(self, event: Event) -> _Chunk | None:
        data = event.data
        if data[:6] == b"[DONE]":
            self.over = True
            return None
        if event.name == "error":
            self._fail(a_value(data))
            return None
        if not self._head_read:
            self._read_head(data)
        try:
            return _chunk.decode(data)
        except UNREADABLE as error:
            return self._read_odd(data, error)

    def _read_odd(self, data: bytes, error: Exception) -> _Chunk | None:
        """What is no chunk at first sight: bad characters, an error in a list, or no JSON."""
        if not data.strip():
            return None
        try:
            return _chunk.decode(mended(data))
        except ValueError:
            pass
        listed = a_list(a_value(data))
        if listed and "error" in an_object(listed[0]):
            self._fail(listed[0])
        else:
            self._error = failures.no_answer(self._peer, error, data)
            self.over = True
        return None

    def _read_head(self, data: bytes) -> None:
        self._head_read = True
        try:
            head = _head.decode(data)
        except UNREADABLE:
            return
        if head.id:
            self.meta["id"] = head.id
        if head.model:
            self.meta["model"] = head.model

    def _fail(self, value: Any) -> None:
        self._error = failures.of_answer(self._peer, value)
        self.over = True

    # -- what was said ------------------------------------------------------------------------

    def _take(self, choice: _Choice, deltas: list[Delta]) -> None:
        self._choice = True
        said = choice.message if self._whole else choice.delta
        if said is not None:
            self._hear(said, deltas)
        if choice.logprobs:
            self._beside.weigh(choice.logprobs)
        if choice.finish_reason:
            self._finish = str(choice.finish_reason)

    def _hear(self, said: _Said, deltas: list[Delta]) -> None:
        if said.reasoning_content or said.reasoning or said.reasoning_details:
            self._think(said, deltas)
        content = said.content
        if content:
            if self._details.pending:
                deltas += self._details.flush()
            if type(content) is str:
                deltas.append(TextDelta(content))
            else:
                self._hear_parts(content, deltas)
        if said.tool_calls or said.function_call is not None:
            self._ask(said, deltas)
        if said.refusal:
            self._refusal += str(said.refusal)
            self._spoke = True
        if said.audio and (words := self._beside.hear(said.audio)):
            deltas.append(TextDelta(words))
        if said.annotations or said.executed_tools or said.images:
            self._beside.note(said)

    def _think(self, said: _Said, deltas: list[Delta]) -> None:
        text = self._details.add(said.reasoning_details)
        text = a_text(said.reasoning_content) or a_text(said.reasoning) or text
        if text:
            deltas.append(ThinkingDelta(text))

    def _hear_parts(self, content: Any, deltas: list[Delta]) -> None:
        """Typed parts, as Mistral sends them."""
        for part in map(an_object, a_list(content) or [content]):
            if text := _text_in(part.get("thinking")):
                deltas.append(ThinkingDelta(text))
            if text := _text_in(part.get("text")):
                deltas.append(TextDelta(text))

    def _ask(self, said: _Said, deltas: list[Delta]) -> None:
        if self._details.pending:
            deltas += self._details.flush()
        for call in said.tool_calls or ():
            function = call.function or _Function()
            deltas += self._calls.add(call.index, call.id, function.name, function.arguments)
        legacy = said.function_call
        if legacy is not None and (legacy.name or legacy.arguments):
            deltas += self._calls.add(None, None, legacy.name, legacy.arguments)

    # -- beside it ----------------------------------------------------------------------------

    def _count(self, chunk: _Chunk, deltas: list[Delta]) -> None:
        raw = chunk.usage or (chunk.x_groq.usage if chunk.x_groq is not None else None)
        if raw and raw != self._usage:
            self._usage = raw
            usage = normal_usage(raw)
            if usage is not None:
                deltas.append(UsageDelta(usage))
            cost = an_object(raw).get("cost")
            if isinstance(cost, (int, float)):  # OpenRouter, in USD
                self.meta["cost"] = cost


def _text_in(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    parts = a_list(value)
    return "".join(a_text(an_object(part).get("text")) for part in parts) or a_text(value)
