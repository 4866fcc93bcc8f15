"""The events of a turn as frames of AG-UI: what a front end shows, and in what order.

The writer keeps the messages as the client has them by now. Where frames cannot say what has
changed (a text that was taken back, a call that ran on other arguments), a snapshot of them does.
Events of sub-agents stay inside.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from retinue.chains import events
from retinue.messages import Usage
from retinue.serve.agui_bodies import AguiBody
from retinue.serve.keeping import Kept
from retinue.serve.wire import Resync, Sent, encode
from retinue.tools import PendingCall
from retinue.tools.asking import UNDER

PROTOCOL: Final = "1.0"
"""The version of the protocol that is written."""

Frame = dict[str, Any]


class _Growing:
    """A text that is being written: it is put into its place in one go, when it is complete."""

    __slots__ = ("_fragments", "_name", "place")

    def __init__(self, place: Frame, name: str) -> None:
        self.place = place
        self._name = name
        self._fragments: list[str] = []

    def add(self, fragment: str) -> None:
        self._fragments.append(fragment)

    def end(self) -> None:
        self.place[self._name] = self.place.get(self._name, "") + "".join(self._fragments)


class Frames:
    """Writes the events of a turn as frames of AG-UI.

    Args:
        turn: the turn.
        body: what the client sent.
    """

    def __init__(self, turn: Kept, body: AguiBody) -> None:
        self._turn = turn
        self._body = body
        # The client's messages, each with the attempt of this turn that made it; 0 for none.
        self._messages: list[tuple[int, Frame]] = [
            (0, msgspec.to_builtins(one)) for one in body.messages
        ]
        self._functions = self._functions_shown()
        # Calls that an earlier run has shown, also to a client that sends no history.
        self._resumed = {one.interrupt_id.partition(UNDER)[0] for one in body.resume or ()}
        self._begun = self._over = False
        self._step = ""
        self._attempt = 0
        self._answer: Frame | None = None  # the message that this attempt's events go into
        self._indices: dict[int, str] = {}
        self._count = 0
        self._thought: _Growing | None = None
        self._text: _Growing | None = None
        self._calls: dict[str, _Growing] = {}

    def __call__(self, batch: Iterable[Sent]) -> bytes:
        """The frames of some events."""
        return b"".join(
            b"data: %b\n\n" % encode(frame) for event in batch for frame in self._frames(event)
        )

    def _frames(self, event: Sent) -> Iterator[Frame]:
        if self._over:
            return
        if not self._begun:  # whatever comes first: a turn may end before it has started
            self._begun = True
            parent = self._body.parent_run_id
            yield self._of_run("RUN_STARTED", protocolVersion=PROTOCOL, parentRunId=parent)
        if isinstance(event, Resync):
            # A reader whom the turn has ceased to wait for: its time is over, or the server's is.
            self._over = True
            yield _frame("RUN_ERROR", message="Text was lost; ask again.", code="unavailable")
        elif not event.path:
            yield from self._of_event(event)

    def _of_event(self, event: events.Event) -> Iterator[Frame]:
        match event:
            case events.RoundStarted():
                yield from self._begin_round(event.round)
            case events.AttemptStarted():
                yield from self._close()
                self._attempt = event.attempt
                self._answer = None
                self._indices.clear()
            case events.AttemptDiscarded():
                yield from self._take_back(event.attempt)
            case events.ThinkingChunk() if event.text:
                yield from self._think(event.text)
            case events.TextChunk() if event.text:
                yield from self._say(event.text)
            case events.ToolArguments():
                yield from self._write_call(event)
            case events.ToolStarted():
                yield from self._start(event)
            case events.ToolFinished():
                yield from self._result(event)
            case events.TurnEnded():
                yield from self._end(event)
            case _:
                pass

    def _begin_round(self, number: int) -> Iterator[Frame]:
        yield from self._close()
        yield from self._end_step()
        self._step = f"round {number}"
        yield _frame("STEP_STARTED", stepName=self._step)

    def _end_step(self) -> Iterator[Frame]:
        if self._step:
            yield _frame("STEP_FINISHED", stepName=self._step)
            self._step = ""

    def _think(self, text: str) -> Iterator[Frame]:
        if self._thought is None:
            yield from self._close_text()
            message = self._add({"id": self._new_id(), "role": "reasoning"})
            self._thought = _Growing(message, "content")
            yield _frame("REASONING_START", messageId=message["id"])
            yield _frame("REASONING_MESSAGE_START", messageId=message["id"], role="reasoning")
        self._thought.add(text)
        name = self._thought.place["id"]
        yield _frame("REASONING_MESSAGE_CONTENT", messageId=name, delta=text)

    def _say(self, text: str) -> Iterator[Frame]:
        if self._text is None:
            yield from self._close_thought()
            answer = self._current()
            self._text = _Growing(answer, "content")
            yield _frame("TEXT_MESSAGE_START", messageId=answer["id"], role="assistant")
        self._text.add(text)
        yield _frame("TEXT_MESSAGE_CONTENT", messageId=self._text.place["id"], delta=text)

    def _write_call(self, event: events.ToolArguments) -> Iterator[Frame]:
        call = event.call_id or self._indices.get(event.index, "")
        self._indices[event.index] = call
        if call not in self._functions:
            yield from self._open_call(call, event.name)
        growing = self._calls.get(call)
        if event.fragment and growing is not None:
            growing.add(event.fragment)
            yield _frame("TOOL_CALL_ARGS", toolCallId=call, delta=event.fragment)

    def _open_call(self, call: str, name: str) -> Iterator[Frame]:
        yield from self._close_thought()
        yield from self._close_text()
        answer = self._current()
        function = self._functions[call] = {"name": name, "arguments": ""}
        answer.setdefault("toolCalls", []).append(
            {"id": call, "type": "function", "function": function}
        )
        self._calls[call] = _Growing(function, "arguments")
        yield _frame(
            "TOOL_CALL_START", toolCallId=call, toolCallName=name, parentMessageId=answer["id"]
        )

    def _whole_call(self, call: str, name: str, arguments: str) -> Iterator[Frame]:
        yield from self._open_call(call, name)
        self._calls[call].add(arguments)
        yield _frame("TOOL_CALL_ARGS", toolCallId=call, delta=arguments)
        yield from self._close()

    def _start(self, event: events.ToolStarted) -> Iterator[Frame]:
        yield from self._close()
        function = self._functions.get(event.call_id)
        arguments = encode(event.arguments or {}).decode()
        if function is not None:
            if event.arguments is not None and not _same(function["arguments"], arguments):
                function["arguments"] = arguments  # a person or a layer chose others
                yield self._snapshot()
        elif event.call_id not in self._resumed:
            yield from self._whole_call(event.call_id, event.name, arguments)

    def _result(self, event: events.ToolFinished) -> Iterator[Frame]:
        yield from self._close()
        call = event.call_id
        if call not in self._functions and call not in self._resumed:
            yield from self._whole_call(call, event.name, "{}")
        known = next((one for _, one in self._messages if one.get("toolCallId") == call), None)
        if known is None:
            name = f"{self._turn.turn}-{call}"
            self._add({"id": name, "role": "tool", "toolCallId": call, "content": event.text})
            yield _frame(
                "TOOL_CALL_RESULT",
                messageId=name,
                toolCallId=call,
                content=event.text,
                role="tool",
            )
        elif call in self._resumed:  # it was tried again; else it is the client's own result
            known["content"] = event.text
            yield self._snapshot()

    def _take_back(self, attempt: int) -> Iterator[Frame]:
        yield from self._close()
        kept = [one for one in self._messages if one[0] != attempt]
        if len(kept) < len(self._messages):
            self._messages = kept
            self._functions = self._functions_shown()
            if attempt == self._attempt:
                self._answer = None
            yield self._snapshot()

    def _end(self, end: events.TurnEnded) -> Iterator[Frame]:
        yield from self._close()
        yield from self._end_step()
        used = _usage(end.usage)
        if end.status == "failed":
            words = end.reason or "The turn failed."
            yield _frame("RUN_ERROR", message=words, code=end.error or "failed", usage=used)
            return
        waiting = self._turn.pending if end.status == "paused" else ()
        interrupts = [_interrupt(one) for one in waiting if one.kind != "external"]
        if interrupts and self._turn.job.conversation is None:
            words = "The agent waits for a person, and keeps no conversation to go on with."
            yield _frame("RUN_ERROR", message=words, code="conflict", usage=used)
            return
        result = None
        if interrupts:
            outcome = _frame("interrupt", interrupts=interrupts)
            yield self._snapshot()  # due before an interrupt, for whoever resumes by it
        elif end.status == "cancelled":
            outcome = _frame("cancelled")
        else:
            outcome = _frame("success", pendingToolCallIds=[one.id for one in waiting] or None)
            result = {"status": end.status, "reason": end.reason, "blockedBy": end.blocked_by}
            result = {name: value for name, value in result.items() if value is not None}
        yield self._of_run("RUN_FINISHED", outcome=outcome, result=result, usage=used)

    def _close(self) -> Iterator[Frame]:
        yield from self._close_thought()
        yield from self._close_text()
        calls, self._calls = self._calls, {}
        for call, growing in calls.items():
            growing.end()
            yield _frame("TOOL_CALL_END", toolCallId=call)

    def _close_thought(self) -> Iterator[Frame]:
        growing, self._thought = self._thought, None
        if growing is not None:
            growing.end()
            yield _frame("REASONING_MESSAGE_END", messageId=growing.place["id"])
            yield _frame("REASONING_END", messageId=growing.place["id"])

    def _close_text(self) -> Iterator[Frame]:
        growing, self._text = self._text, None
        if growing is not None:
            growing.end()
            yield _frame("TEXT_MESSAGE_END", messageId=growing.place["id"])

    def _current(self) -> Frame:
        if self._answer is None:
            self._answer = self._add({"id": self._new_id(), "role": "assistant"})
        return self._answer

    def _add(self, message: Frame) -> Frame:
        self._messages.append((self._attempt, message))
        return message

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._turn.stream}-{self._count}"

    def _of_run(self, kind: str, **fields: Any) -> Frame:
        return _frame(kind, threadId=self._body.thread_id, runId=self._body.run_id, **fields)

    def _snapshot(self) -> Frame:
        return _frame("MESSAGES_SNAPSHOT", messages=[one for _, one in self._messages])

    def _functions_shown(self) -> dict[str, Frame]:
        """The function of each call that the client has in its messages."""
        return {
            call["id"]: call["function"]
            for _, message in self._messages
            for call in message.get("toolCalls", ())
        }


def _frame(type: str, **fields: Any) -> Frame:
    """An object without what is unknown: the protocol takes no null for it."""
    return {"type": type, **{name: value for name, value in fields.items() if value is not None}}


def _same(first: str, second: str) -> bool:
    try:
        return msgspec.json.decode(first) == msgspec.json.decode(second)
    except msgspec.DecodeError:
        return False


def _usage(used: Usage) -> list[Frame] | None:
    if used.input is None and used.output is None:
        return None
    counts = {
        "inputTokens": used.input,
        "outputTokens": used.output,
        "totalTokens": used.total,
        "reasoningTokens": used.reasoning,
        "cachedInputTokens": used.cache_read,
        "cacheWriteInputTokens": used.cache_write,
    }
    return [{name: count for name, count in counts.items() if count is not None}]


def _interrupt(one: PendingCall) -> Frame:
    made: Frame = {
        "id": one.id,
        "reason": _REASONS[one.kind],
        "message": one.why,
        "toolCallId": one.id.partition(UNDER)[0],  # what a sub-agent calls is not shown
        "metadata": {"tool": one.tool, "arguments": one.arguments},
    }
    if one.kind == "approval":
        properties = {
            "approved": {"type": "boolean"},
            "editedArgs": one.parameters or {"type": "object"},
            "reason": {"type": "string"},
        }
        made["responseSchema"] = {
            "type": "object",
            "properties": properties,
            "required": ["approved"],
            "additionalProperties": False,
        }
    elif one.kind == "question":
        made["responseSchema"] = {"description": "The answer: a text, or any other JSON."}
    return made


_REASONS: Final = {
    "approval": "tool_call",
    "question": "input_required",
    "environment": "retinue:environment",
}
