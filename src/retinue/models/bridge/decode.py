"""Answers of pydantic-ai as deltas: its events or its response in, ours out. No I/O."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from retinue.errors import ModelUnreachable
from retinue.messages import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from retinue.models import failures
from retinue.models.bridge.kept import keep_calls, keep_thought
from retinue.models.failures import Peer
from retinue.models.outgoing import to_json

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, ModelResponseStreamEvent
    from pydantic_ai.usage import RequestUsage

_FINISH: Final = {"tool_call": "tool_calls"}


class Decoder:
    """Decodes one answer. Give it each event of a stream; then call `end` with the response.

    Args:
        peer: whom errors name.
        told_end: whether the vendor's own word for the end must be there. Where a stream of Chat
            Completions stops without one, pydantic-ai makes one up: half an answer would pass.
    """

    __slots__ = ("_calls", "_peer", "_told_end", "spoke")

    def __init__(self, peer: Peer, *, told_end: bool) -> None:
        self._peer = peer
        self._told_end = told_end
        self._calls: dict[int, int] = {}  # our number of a call, by the place of its part
        self.spoke = False  # whether anything has been handed on

    def feed(self, event: "ModelResponseStreamEvent") -> Sequence[Delta]:
        """The deltas that this event holds."""
        from pydantic_ai import messages as theirs

        deltas: list[Delta] = []
        if isinstance(event, theirs.PartStartEvent):
            deltas += self._begin(event.index, event.part)
        elif isinstance(event, theirs.PartDeltaEvent):
            grown = event.delta
            if isinstance(grown, theirs.TextPartDelta):
                deltas += [TextDelta(grown.content_delta)] if grown.content_delta else []
            elif isinstance(grown, theirs.ThinkingPartDelta):
                deltas += [ThinkingDelta(grown.content_delta)] if grown.content_delta else []
            elif isinstance(grown, theirs.ToolCallPartDelta):
                at = self._number(event.index)
                name, arguments = grown.tool_name_delta or "", _as_text(grown.args_delta)
                if name or arguments:
                    deltas.append(ToolCallDelta(at, name=name, arguments=arguments))
        elif isinstance(event, theirs.PartEndEvent):
            deltas += _close(event.part)
        self.spoke = self.spoke or bool(deltas)
        return deltas

    def whole(self, response: "ModelResponse") -> Iterator[Delta]:
        """The deltas of a response that was not streamed, `end` included."""
        for index, part in enumerate(response.parts):
            yield from self._begin(index, part)
            yield from _close(part)
        yield from self.end(response)

    def end(self, response: "ModelResponse") -> Iterator[Delta]:
        """The deltas that come last.

        Raises:
            ModelError: the answer has not come to its end.
        """
        usage = normal_usage(response.usage)
        if usage is not None:
            yield UsageDelta(usage)
        reason: str | None = response.finish_reason
        if reason is None or (self._told_end and not _word(response)):
            if self.spoke:
                raise failures.broken(self._peer, "stopped in the middle of its answer; ask again")
            raise ModelUnreachable(f"{self._peer} ended the stream before its answer. Try again.")
        kept = keep_calls(response.tool_calls)
        if kept is not None:
            yield ThinkingDelta(opaque=kept)
        yield FinishDelta(_FINISH.get(reason, reason))

    def _begin(self, index: int, part: "ModelResponsePart") -> Iterator[Delta]:
        from pydantic_ai import messages as theirs

        if isinstance(part, theirs.TextPart):
            if part.content:
                yield TextDelta(part.content)
        elif isinstance(part, theirs.ThinkingPart):
            if part.content:
                yield ThinkingDelta(part.content)
        elif isinstance(part, theirs.ToolCallPart):
            at = self._number(index)
            yield ToolCallDelta(at, part.tool_call_id, part.tool_name, _as_text(part.args))

    def _number(self, index: int) -> int:
        return self._calls.setdefault(index, len(self._calls))


def normal_usage(report: "RequestUsage") -> Usage | None:
    """The counts in the normal form; pydantic-ai says 0 where nobody counted."""
    if not (report.input_tokens or report.output_tokens):
        return None
    return Usage(
        input=report.input_tokens or None,
        output=report.output_tokens or None,
        cache_read=report.cache_read_tokens or None,
        cache_write=report.cache_write_tokens or None,
        reasoning=report.output_reasoning_tokens or None,
    )


def meta_of(response: "ModelResponse") -> dict[str, Any]:
    """What the provider said besides."""
    said = {"id": response.provider_response_id, "model": response.model_name}
    return {name: value for name, value in said.items() if value}


def _word(response: "ModelResponse") -> Any:
    return (response.provider_details or {}).get("finish_reason")


def _close(part: "ModelResponsePart") -> Iterator[Delta]:
    from pydantic_ai.messages import ThinkingPart

    if isinstance(part, ThinkingPart):
        opaque = keep_thought(part)
        if part.signature or opaque:
            yield ThinkingDelta(signature=part.signature, opaque=opaque)


def _as_text(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return to_json(arguments).decode()
