"""AG-UI: the events of a turn in the words of front ends that speak that protocol.

A thread is a conversation of the agent, where it keeps some: then only what is new of a thread's
messages is asked, and pauses are interrupts that the next run resumes. Where the agent keeps none,
the client's messages are the conversation.

A text that was taken back is taken back here by a snapshot of the messages. Events of sub-agents
stay inside.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from retinue.chains import events
from retinue.serve.agui_bodies import (
    AguiBody,
    AguiMessage,
    answers_of,
    asked_now,
    context_of,
    messages_of,
    tools_of,
)
from retinue.serve.cards import AgentCard
from retinue.serve.faults import Refused
from retinue.serve.http.operations import Answer, Call, Operation
from retinue.serve.http.sse import EventStream
from retinue.serve.jobs import Job
from retinue.serve.keeping import Kept
from retinue.serve.wire import Resync, Sent
from retinue.tools import PendingCall

Frame = dict[str, Any]


async def run_only(call: Call) -> Answer:
    """Runs the only agent."""
    return await _run(call, call.gateway.agent(None))


async def run(call: Call) -> Answer:
    """Runs the agent of the path."""
    return await _run(call, call.gateway.agent(call.id))


async def _run(call: Call, card: AgentCard) -> Answer:
    body: AguiBody = call.body
    reader = await call.gateway.start(call.caller, await _job(call, card, body))
    return EventStream(reader, Frames(reader.turn, body))


async def _job(call: Call, card: AgentCard, body: AguiBody) -> Job:
    common: dict[str, Any] = {
        "agent": card.name,
        "tools": tools_of(body),
        "context": context_of(body),
    }
    if not card.keeps:
        return Job(messages=messages_of(body.messages), **common)
    thread = body.thread_id
    pending = await call.gateway.conversations.pending(thread, call.caller.owner)
    answers = answers_of(body, pending)
    if answers:
        common.pop("tools")  # the pause has kept them
        return Job(kind="resume", answers=answers, conversation=thread, **common)
    asked = asked_now(body.messages)
    if not asked:
        raise Refused("invalid", "The last message is none of the user's, and nothing waits.")
    return Job(messages=messages_of(asked), conversation=thread, **common)


class Frames:
    """Writes the events of a turn as frames of AG-UI.

    Args:
        turn: the turn.
        body: what the client sent.
    """

    def __init__(self, turn: Kept, body: AguiBody) -> None:
        self._turn = turn
        self._body = body
        self._messages: list[Frame] = [_shown(one) for one in body.messages]
        self._before = len(self._messages)
        self._answer: Frame | None = None  # the message that this round's events go into
        self._text = self._thinking = False  # whether such a message is open
        self._calls: dict[str, bool] = {}  # the calls of the turn: whether they are open
        self._indices: dict[int, str] = {}
        self._step = ""
        self._count = 0

    def __call__(self, batch: Iterable[Sent]) -> bytes:
        """The frames of some events."""
        return b"".join(
            b"data: %b\n\n" % msgspec.json.encode(frame)
            for event in batch
            for frame in self._frames(event)
        )

    def _frames(self, event: Sent) -> Iterator[Frame]:
        if isinstance(event, Resync) or event.path:
            return
        match event:
            case events.TurnStarted():
                yield self._of_run("RUN_STARTED")
            case events.RoundStarted():
                yield from self._begin_round(event.round)
            case events.AttemptStarted():
                yield from self._close()
                self._answer = None
                self._indices.clear()
            case events.AttemptDiscarded():
                yield from self._take_back()
            case events.ThinkingChunk():
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
        yield {"type": "STEP_STARTED", "stepName": self._step}

    def _end_step(self) -> Iterator[Frame]:
        if self._step:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
            self._step = ""

    def _think(self, text: str) -> Iterator[Frame]:
        if not self._thinking:
            self._thinking = True
            name = self._reasoning_id(self._count + 1)
            self._count += 1
            yield {"type": "REASONING_START", "messageId": name}
            yield {"type": "REASONING_MESSAGE_START", "messageId": name, "role": "reasoning"}
        if text:
            name = self._reasoning_id(self._count)
            yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": name, "delta": text}

    def _say(self, text: str) -> Iterator[Frame]:
        yield from self._close_thinking()
        answer = self._current()
        if not self._text:
            self._text = True
            yield {"type": "TEXT_MESSAGE_START", "messageId": answer["id"], "role": "assistant"}
        answer["content"] = answer.get("content", "") + text
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": answer["id"], "delta": text}

    def _write_call(self, event: events.ToolArguments) -> Iterator[Frame]:
        call = event.call_id or self._indices.get(event.index, "")
        self._indices[event.index] = call
        if call not in self._calls:
            yield from self._open_call(call, event.name)
        if event.fragment and self._calls[call]:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": event.fragment}
            for one in self._current()["toolCalls"]:
                if one["id"] == call:
                    one["function"]["arguments"] += event.fragment

    def _open_call(self, call: str, name: str) -> Iterator[Frame]:
        yield from self._close_text()
        answer = self._current()
        function = {"name": name, "arguments": ""}
        calls = answer.setdefault("toolCalls", [])
        calls.append({"id": call, "type": "function", "function": function})
        self._calls[call] = True
        yield {
            "type": "TOOL_CALL_START",
            "toolCallId": call,
            "toolCallName": name,
            "parentMessageId": answer["id"],
        }

    def _start(self, event: events.ToolStarted) -> Iterator[Frame]:
        arguments = msgspec.json.encode(event.arguments or {}).decode()
        known = self._known(event.call_id)
        if known is None:
            yield from self._whole_call(event.call_id, event.name, arguments)
        elif event.call_id not in self._calls and not _same(known["arguments"], arguments):
            known["arguments"] = arguments  # it was approved with others than it was asked with
            yield {"type": "MESSAGES_SNAPSHOT", "messages": self._messages}
        yield from self._close()

    def _whole_call(self, call: str, name: str, arguments: str) -> Iterator[Frame]:
        yield from self._open_call(call, name)
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments}
        self._current()["toolCalls"][-1]["function"]["arguments"] = arguments

    def _result(self, event: events.ToolFinished) -> Iterator[Frame]:
        call = event.call_id
        if self._known(call) is None:
            yield from self._whole_call(call, event.name, "{}")
        yield from self._close()
        if any(one.get("toolCallId") == call for one in self._messages):
            return  # it is the client's own result
        name = f"{self._turn.turn}-{call}"
        result = {"id": name, "role": "tool", "content": event.text, "toolCallId": call}
        self._messages.append(result)
        yield {
            "type": "TOOL_CALL_RESULT",
            "messageId": name,
            "toolCallId": call,
            "content": event.text,
            "role": "tool",
        }

    def _take_back(self) -> Iterator[Frame]:
        yield from self._close()
        if self._answer is not None:
            self._messages.remove(self._answer)
            self._answer = None
            yield {"type": "MESSAGES_SNAPSHOT", "messages": self._messages}

    def _end(self, end: events.TurnEnded) -> Iterator[Frame]:
        yield from self._close()
        yield from self._end_step()
        usage = {
            "inputTokens": end.usage.input,
            "outputTokens": end.usage.output,
            "totalTokens": end.usage.total,
        }
        used = [{name: value for name, value in usage.items() if value is not None}]
        if end.status == "failed":
            words = end.reason or "The turn failed."
            yield {"type": "RUN_ERROR", "message": words, "code": end.error or "failed"}
            return
        said = {"status": end.status, "reason": end.reason, "blockedBy": end.blocked_by}
        yield {
            **self._of_run("RUN_FINISHED"),
            "outcome": _outcome(end, self._turn.pending),
            "result": {name: value for name, value in said.items() if value is not None},
            "usage": used,
        }

    def _close(self) -> Iterator[Frame]:
        yield from self._close_thinking()
        yield from self._close_text()
        for call, is_open in self._calls.items():
            if is_open:
                self._calls[call] = False
                yield {"type": "TOOL_CALL_END", "toolCallId": call}

    def _close_thinking(self) -> Iterator[Frame]:
        if self._thinking:
            self._thinking = False
            name = self._reasoning_id(self._count)
            yield {"type": "REASONING_MESSAGE_END", "messageId": name}
            yield {"type": "REASONING_END", "messageId": name}

    def _close_text(self) -> Iterator[Frame]:
        yield from self._close_thinking()
        if self._text:
            self._text = False
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._current()["id"]}

    def _current(self) -> Frame:
        if self._answer is None:
            self._count += 1
            name = f"{self._turn.stream}-{self._count}"
            self._answer = {"id": name, "role": "assistant"}
            self._messages.append(self._answer)
        return self._answer

    def _reasoning_id(self, count: int) -> str:
        return f"{self._turn.stream}-r{count}"

    def _of_run(self, kind: str) -> Frame:
        return {"type": kind, "threadId": self._body.thread_id, "runId": self._body.run_id}

    def _known(self, call: str) -> Frame | None:
        """The function of a call that the client has in its messages."""
        for message in self._messages:
            for one in message.get("toolCalls", ()):
                if one["id"] == call:
                    return one["function"]
        return None


def _same(first: str, second: str) -> bool:
    try:
        return msgspec.json.decode(first) == msgspec.json.decode(second)
    except msgspec.DecodeError:
        return False


def _outcome(end: events.TurnEnded, pending: Sequence[PendingCall]) -> Frame:
    if end.status == "cancelled":
        return {"type": "cancelled"}
    if end.status != "paused":
        return {"type": "success"}
    if all(one.kind == "external" for one in pending):
        return {"type": "success", "pendingToolCallIds": [one.id for one in pending]}
    return {"type": "interrupt", "interrupts": [_interrupt(one) for one in pending]}


def _interrupt(one: PendingCall) -> Frame:
    made: Frame = {
        "id": one.id,
        "reason": one.kind,
        "message": one.why,
        "toolCallId": one.id,
        "metadata": {"tool": one.tool, "arguments": one.arguments, "answers": one.answers},
    }
    if one.kind == "approval":
        args = one.parameters or {"type": "object"}
        made["responseSchema"] = {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "args": args,
                "reason": {"type": "string"},
            },
        }
    return made


def _shown(message: AguiMessage) -> Frame:
    """A message of the client's as it came, without what it left out."""
    plain: Frame = msgspec.to_builtins(message)
    kept = {name: value for name, value in plain.items() if value is not None}
    for call in kept.get("toolCalls", ()):
        call["type"] = "function"
    return kept


OPERATIONS: Final = (
    Operation(
        name="agui",
        method="POST",
        path="/v1/ag-ui",
        scope="turns",
        summary="Runs the only agent in the form of AG-UI.",
        handler=run_only,
        body=AguiBody,
        streams=True,
        refuses=("not_found", "conflict"),
    ),
    Operation(
        name="agui_agent",
        method="POST",
        path="/v1/ag-ui/{id}",
        scope="turns",
        summary="Runs an agent in the form of AG-UI.",
        handler=run,
        body=AguiBody,
        streams=True,
        refuses=("not_found", "conflict"),
    ),
)
