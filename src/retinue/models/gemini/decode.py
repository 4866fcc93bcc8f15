"""Answers of the Gemini format, as deltas. No I/O: events in, deltas out.

A stream is a row of answers, each with the parts that are new and all counts so far. It has no end
of its own but that of the connection, after a reason why the model stopped. A server that was not
asked for events sends the row as one JSON list, which is read as a whole answer.

Tools that the vendor runs are no calls: they are kept to go back, and nobody here runs them. They
are in `meta["executed_tools"]` too; pictures and sounds of the model in `meta["inline_data"]`, what
it found on the web in `meta["grounding"]`, and why it was stopped in `meta["refusal"]`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from retinue.errors import ModelBroken, ModelError, ModelRefused
from retinue.messages import Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from retinue.models import failures
from retinue.models.failures import Peer
from retinue.models.gemini.calls import NOTHING, Calls, FunctionCall
from retinue.models.gemini.kept import call_mark, text_mark, whole_part
from retinue.models.gemini.usage import normal_usage
from retinue.models.loose import UNREADABLE, a_text, a_value, an_object, mended
from retinue.models.sse import Event

_FILTERS: Final = (
    "BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY",
    "LANGUAGE", "MODEL_ARMOR", "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII",
    "3", "4", "6", "7", "8",
)  # fmt: skip
FINISH: Final = {
    "STOP": "stop", "1": "stop", "MAX_TOKENS": "length", "2": "length",
    **dict.fromkeys(_FILTERS, "content_filter"),
}  # fmt: skip
"""Finish reasons in the words of `FinishDelta`; others stay as they are. Some servers
send the numbers of them."""

_BY_CHANCE: Final = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")
"""Reasons for no answer that another try may not meet: the model wrote what cannot be read."""

_EXECUTED: Final = ("executableCode", "toolCall")
_ROW: Final = (b"[", b" ", b"\n", b"\r", b"\t")  # how a row may begin


class _Part(Struct, rename="camel"):
    text: Any = None
    thought: Any = None
    thought_signature: Any = None
    function_call: FunctionCall | None = None


class _Content(Struct):
    parts: list[Raw] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    index: Any = None
    finish_reason: Any = None
    finish_message: Any = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    url_context_metadata: Any = None
    logprobs_result: Any = None


class _Chunk(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: Raw = NOTHING
    prompt_feedback: Any = None
    error: Any = None
    response_id: Any = None
    model_version: Any = None


_Read = tuple[_Chunk, list[tuple[_Part, Raw]]]

_chunk = msgspec.json.Decoder(_Chunk)
_part = msgspec.json.Decoder(_Part)
_row = msgspec.json.Decoder(list[Raw])


class Decoder:
    """Decodes one answer: events of a stream, or one event that is a whole answer.

    Give it each event, until there are no more or it is `over`; then call `end`. An error in the
    answer comes out of `end`, so that what stood before it is not lost.

    Args:
        peer: whom errors name.
        whole: whether the answer is a whole one.
    """

    __slots__ = (
        "_answered", "_calls", "_choice", "_counted", "_error", "_finish", "_finish_message",
        "_peer", "_spoke", "_whole", "meta", "over",
    )  # fmt: skip

    def __init__(self, peer: Peer, whole: bool = False) -> None:
        self._peer = peer
        self._whole = whole
        self._answered = False  # whether there is more than thoughts
        self._calls = Calls()
        self._choice = False  # whether an answer has come
        self._counted = b""  # the last report of tokens, as it came
        self._error: ModelError | None = None
        self._finish = ""
        self._finish_message = ""
        self._spoke = False  # whether anything has been handed on
        self.over = False
        self.meta: dict[str, Any] = {}

    def feed(self, event: Event) -> Sequence[Delta]:
        """The deltas that this event holds."""
        if self.over:
            return ()
        try:
            read = _read(event.data)
        except UNREADABLE as error:
            read = self._read_odd(event, error)
        deltas: list[Delta] = []
        for chunk, parts in read:
            self._hear(chunk, parts, deltas)
        if not self._spoke:
            self._spoke = any(type(delta) is not UsageDelta for delta in deltas)
        return deltas

    def end(self) -> Sequence[Delta]:
        """The deltas that come last.

        Raises:
            ModelError: the answer was an error, or held one, or was cut short.
        """
        if self._error is not None:
            raise self._error
        if not self._choice:
            if self._whole:
                raise failures.broken(self._peer, "sent an answer with nothing in it; try again")
            raise failures.cut_short(self._peer, begun=False)
        if not (self._whole or self._finish):
            raise failures.cut_short(self._peer, begun=self._spoke)
        finish = FINISH.get(self._finish, self._finish)
        if not self._answered and finish and finish not in FINISH.values():
            raise self._no_answer()
        if self._finish_message:
            filtered = finish == "content_filter"
            self.meta["refusal" if filtered else "finish_message"] = self._finish_message
        deltas = self._calls.close()
        if finish:
            called = self._calls.count and finish == "stop"
            deltas.append(FinishDelta("tool_calls" if called else finish))
        return deltas

    # -- one event ----------------------------------------------------------------------------

    def _read_odd(self, event: Event, error: Exception) -> list[_Read]:
        """What is no answer at first sight: nothing, bad characters, or no JSON."""
        data = event.data.strip()
        if not data or data == b"[DONE]":  # some compatible servers send it
            return []
        if event.name == "error":
            self._fail(a_value(data))
            return []
        try:
            return _read(mended(data))
        except ValueError:
            self._error = failures.no_answer(self._peer, error, data)
            self.over = True
            return []

    def _hear(self, chunk: _Chunk, parts: list[tuple[_Part, Raw]], deltas: list[Delta]) -> None:
        if chunk.response_id and "id" not in self.meta:
            self.meta["id"] = chunk.response_id
        if chunk.model_version and "model" not in self.meta:
            self.meta["model"] = chunk.model_version
        for part, raw in parts:
            if type(part.text) is str:
                self._hear_text(part, deltas)
            elif part.function_call is not None:
                self._hear_call(part, part.function_call, deltas)
            elif part.thought and part.thought_signature:
                deltas.append(ThinkingDelta(signature=a_text(part.thought_signature)))
            else:
                self._keep(raw, deltas)
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._choice = True
                self._note(candidate)
        self._count(chunk.usage_metadata, deltas)
        blocked = an_object(chunk.prompt_feedback).get("blockReason")
        if chunk.error:
            self._fail({"error": chunk.error})
        elif blocked and not chunk.candidates:
            self._block(str(blocked), an_object(chunk.prompt_feedback))

    def _fail(self, value: Any) -> None:
        self._error = failures.of_answer(self._peer, value)
        self.over = True

    def _block(self, reason: str, feedback: dict[str, Any]) -> None:
        words = a_text(feedback.get("blockReasonMessage"))
        told = f": {self._peer.mask(words.strip().rstrip('.'))}" if words else ""
        self._error = ModelRefused(
            f"{self._peer} blocked the prompt ({reason}){told}. Change what is asked, or its safety"
            ' settings with Settings(extra={"safetySettings": [...]}).'
        )
        self.over = True

    # -- what was said ------------------------------------------------------------------------

    def _hear_text(self, part: _Part, deltas: list[Delta]) -> None:
        text: str = part.text
        signature = a_text(part.thought_signature)
        if part.thought:
            if text or signature:
                deltas.append(ThinkingDelta(text, signature or None))
            return
        if text:
            self._answered = True
            deltas.append(TextDelta(text))
        if signature:
            deltas.append(ThinkingDelta(opaque=text_mark(signature, len(text))))

    def _hear_call(self, part: _Part, call: FunctionCall, deltas: list[Delta]) -> None:
        self._answered = True
        signature = a_text(part.thought_signature)
        if signature and self._calls.begins(call):
            deltas.append(ThinkingDelta(opaque=call_mark(signature)))
        deltas += self._calls.add(call)

    def _keep(self, raw: Raw, deltas: list[Delta]) -> None:
        """A part of any other kind goes back as it came."""
        part = an_object(a_value(bytes(raw)))
        if not part:
            return
        self._answered = True
        deltas.append(ThinkingDelta(opaque=whole_part(raw)))
        for name in _EXECUTED:
            if name in part:
                self.meta.setdefault("executed_tools", []).append({name: part[name]})
        if "inlineData" in part and not part.get("thought"):
            self.meta.setdefault("inline_data", []).append(part["inlineData"])

    # -- beside it ----------------------------------------------------------------------------

    def _note(self, candidate: _Candidate) -> None:
        if candidate.finish_reason:
            self._finish = str(candidate.finish_reason)
        if candidate.finish_message:
            self._finish_message = str(candidate.finish_message)
        for name, found in (
            ("grounding", candidate.grounding_metadata),
            ("citations", candidate.citation_metadata),
            ("url_context", candidate.url_context_metadata),
            ("logprobs", candidate.logprobs_result),
        ):
            if found:
                self.meta[name] = found

    def _count(self, report: Raw, deltas: list[Delta]) -> None:
        counted = bytes(report)
        if counted == self._counted:
            return
        self._counted = counted
        usage = normal_usage(report)
        if usage is not None:
            deltas.append(UsageDelta(usage))

    def _no_answer(self) -> ModelBroken:
        error = failures.broken(
            self._peer, f"ended without an answer ({self._finish}); ask again",
            self._finish_message,
        )  # fmt: skip
        if self._finish in _BY_CHANCE:
            error.failure = "transient"
        return error


def _read(data: bytes) -> list[_Read]:
    """The answers in an event: one, or a row of them as a JSON list."""
    if data[:1] in _ROW and data.lstrip()[:1] == b"[":
        return [_with_parts(_chunk.decode(one)) for one in _row.decode(data)]
    return [_with_parts(_chunk.decode(data))]


def _with_parts(chunk: _Chunk) -> _Read:
    """The answer with the parts of its first candidate; nobody asked for others."""
    parts: list[tuple[_Part, Raw]] = []
    for candidate in chunk.candidates or ():
        if not candidate.index and candidate.content is not None:
            parts += [(_part.decode(raw), raw) for raw in candidate.content.parts or ()]
    return chunk, parts
