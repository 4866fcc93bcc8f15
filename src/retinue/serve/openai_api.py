"""OpenAI's Chat Completions, as far as agents have it: any client of that API talks to an agent.

`model` is the name of an agent. Its own tools run here and are not seen; tools that the client
sends are run by the client, which sends the results with its next request, as it always does. The
client keeps the conversation, so nothing is remembered here.

The format cannot take back what it has sent. So where a layer may ask again for an answer, text is
sent when the turn has ended; otherwise it is sent as it comes, and what the model says before it
calls a tool of the agent's is part of it. A pause that only a person can end is an error of the
code `conflict`.

OpenAI's clients send a request again, by themselves, when its answer is an error such as 409 or
5xx. A turn that has run is not to run again for that, so its errors forbid it.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct
from starlette.responses import Response

from retinue.chains import events
from retinue.chains.advisor import TRAITS
from retinue.messages import Usage
from retinue.serve.cards import AgentCard
from retinue.serve.faults import Fault
from retinue.serve.http.operations import (
    STATUS,
    Answer,
    Call,
    Operation,
    json_response,
    unless_gone,
    with_advice,
)
from retinue.serve.http.sse import EventStream
from retinue.serve.jobs import Job
from retinue.serve.keeping import Kept
from retinue.serve.openai_bodies import (
    ChatBody,
    check_body,
    choices_of,
    form_of,
    messages_of,
    tools_of,
)
from retinue.serve.wire import Resync, Sent, encode
from retinue.tools import PendingCall

_TAKES_BACK: Final = frozenset(TRAITS[one] for one in ("rewrites", "validates", "retries"))
"""What layers say of themselves that may give up an answer which was delivered."""

_ENDS: Final = {"length": "length", "content_filter": "content_filter"}


class Model(Struct, frozen=True):
    """An agent, as a model in a list."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "retinue"


class ModelList(Struct, frozen=True):
    """The agents."""

    data: list[Model]
    object: str = "list"


class Completion(Struct, frozen=True):
    """A chat completion."""

    id: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    object: str = "chat.completion"


async def models(call: Call) -> Answer:
    """Lists the agents."""
    return json_response(ModelList([Model(name) for name in call.gateway.agents()]))


async def model(call: Call) -> Answer:
    """Shows one."""
    return json_response(Model(call.gateway.agent(call.id).name))


async def complete(call: Call) -> Answer:
    """Runs a turn."""
    body: ChatBody = call.body
    card = call.gateway.agent(body.model)
    check_body(body, [tool.name for tool in card.tools])
    job = Job(
        agent=card.name,
        messages=messages_of(body),
        choices=choices_of(body),
        tools=tools_of(body),
        output=form_of(body),
        request=call.request.headers.get("idempotency-key"),
    )
    formed = job.output is not None
    reader = await call.start(job)
    if body.stream:
        options = body.stream_options
        chunks = Chunks(
            reader.turn,
            held=formed or _may_take_back(card),
            formed=formed,
            usage=bool(options and options.include_usage),
        )
        return EventStream(reader, chunks, tail=b"data: [DONE]\n\n")
    async with reader:
        end = await unless_gone(reader.end(), call.request.receive)
    turn = reader.turn
    fault = fault_of_end(end, turn.pending, formed=formed)
    if fault is not None:
        failed = openai_error(fault)
        failed.headers["x-should-retry"] = "false"
        return failed
    message: dict[str, Any] = {"role": "assistant", "content": end.text or None}
    if end.message is not None and end.message.thinking:
        message["reasoning_content"] = end.message.thinking
    if turn.pending:
        message["tool_calls"] = [_call(one) for one in turn.pending]
    choice = {"index": 0, "message": message, "finish_reason": _finish(end), "logprobs": None}
    made = Completion(_id(turn), int(time.time()), card.name, [choice], _usage(end.usage))
    return json_response(made)


class Chunks:
    """Writes the events of a turn as chunks of a chat completion.

    Args:
        turn: the turn.
        held: whether text is kept back until the turn has ended.
        formed: whether the answer must have a form; then it is `held` too.
        usage: whether a last chunk tells the tokens; the others then have a null for them.
    """

    def __init__(self, turn: Kept, *, held: bool, formed: bool, usage: bool) -> None:
        self._turn = turn
        self._held = held
        self._formed = formed
        self._tell_usage = usage
        self._created = int(time.time())
        self._attempt = 0  # whose text was sent last
        self._over = False

    def __call__(self, batch: Iterable[Sent]) -> bytes:
        """The chunks of some events."""
        return b"".join(b"data: %b\n\n" % one for event in batch for one in self._chunks(event))

    def _chunks(self, event: Sent) -> Iterable[bytes]:
        if self._over:
            return
        if isinstance(event, Resync):
            # A reader whom the turn has ceased to wait for: its time is over, or the server's is.
            self._over = True
            yield _error_bytes(Fault("unavailable", "Text was lost; ask again."))
            return
        if event.path:
            return
        match event:
            case events.TurnStarted():
                yield self._chunk({"role": "assistant", "content": ""})
            case events.ThinkingChunk():
                yield self._chunk({"reasoning_content": event.text})
            case events.TextChunk() if not self._held:
                gap = "\n\n" if self._attempt not in (0, event.attempt) else ""
                self._attempt = event.attempt
                yield self._chunk({"content": gap + event.text})
            case events.AttemptDiscarded() if event.attempt == self._attempt:
                self._over = True
                self._turn.cancel("The client cannot take back what it was sent.")
                yield _error_bytes(
                    Fault(
                        "conflict",
                        "The agent gave up an answer that was sent already; ask without `stream`,"
                        " or use /v1/turns, whose readers can take it back.",
                    )
                )
            case events.TurnEnded():
                self._over = True
                yield from self._end(event)
            case _:
                pass

    def _end(self, end: events.TurnEnded) -> Iterable[bytes]:
        pending = self._turn.pending
        fault = fault_of_end(end, pending, formed=self._formed)
        if fault is not None:
            yield _error_bytes(fault)
            return
        if self._held and end.text:
            yield self._chunk({"content": end.text})
        if pending:
            calls = [{"index": at, **_call(one)} for at, one in enumerate(pending)]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, finish=_finish(end))
        if self._tell_usage:
            yield self._made([], _usage(end.usage))

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._made([{"index": 0, "delta": delta, "finish_reason": finish}])

    def _made(self, choices: list[Any], usage: dict[str, Any] | None = None) -> bytes:
        return encode(
            {
                "id": _id(self._turn),
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": self._turn.job.agent,
                "choices": choices,
                **({"usage": usage} if self._tell_usage else {}),
            }
        )


def fault_of_end(
    end: events.TurnEnded, pending: tuple[PendingCall, ...], *, formed: bool
) -> Fault | None:
    """What is wrong with the end of a turn that this format has no other word for; or None.

    Args:
        end: how the turn ended.
        pending: what it waits for.
        formed: whether the answer must have the form that was asked for.
    """
    if end.status == "failed":
        return Fault("model_failed", end.reason or "The turn failed.")
    if end.status == "cancelled":
        return Fault("unavailable", end.reason or "The turn was cancelled.")
    if end.status == "completed" and formed and end.reason and _finish(end) == "stop":
        return Fault("model_failed", end.reason)  # the agent has given up asking for the form
    if end.status == "paused" and any(one.kind != "external" for one in pending):
        return Fault(
            "conflict",
            f"{end.reason} Only /v1/conversations/.../answers can answer that; start such a turn"
            " by /v1/turns.",
        )
    return None


def openai_error(fault: Fault) -> Response:
    """A failure in the form of this API."""
    response = Response(_error_bytes(fault), STATUS[fault.code], media_type="application/json")
    return with_advice(response, fault)


def _error_bytes(fault: Fault) -> bytes:
    kind = "invalid_request_error" if STATUS[fault.code] < 500 else "server_error"
    error = {"message": fault.message, "type": kind, "code": fault.code, "param": None}
    return encode({"error": error})


def _may_take_back(card: AgentCard) -> bool:
    return any(note in _TAKES_BACK for layer in card.layers for note in layer.notes)


def _call(pending: PendingCall) -> dict[str, Any]:
    arguments = encode(pending.arguments or {}).decode()
    return {
        "id": pending.id,
        "type": "function",
        "function": {"name": pending.tool, "arguments": arguments},
    }


def _finish(end: events.TurnEnded) -> str:
    if end.status == "paused":
        return "tool_calls"
    if end.status == "limit":
        return "length"
    if end.status == "blocked":
        return "content_filter"
    finish = None if end.message is None else end.message.finish
    return _ENDS.get(finish or "", "stop")


def _id(turn: Kept) -> str:
    return f"chatcmpl-{turn.turn}"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input or 0,
        "completion_tokens": usage.output or 0,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


OPERATIONS: Final = (
    Operation(
        name="complete",
        method="POST",
        path="/v1/chat/completions",
        scope="turns",
        summary="Runs a turn in the form of OpenAI's Chat Completions.",
        handler=complete,
        body=ChatBody,
        gives=Completion,
        streams=True,
        foreign=True,
        refuses=("not_found", "conflict", "model_failed"),
        errors=openai_error,
    ),
    Operation(
        name="models",
        method="GET",
        path="/v1/models",
        scope="turns",
        summary="Lists the agents in the form of OpenAI's models.",
        handler=models,
        gives=ModelList,
        errors=openai_error,
    ),
    Operation(
        name="model",
        method="GET",
        path="/v1/models/{id}",
        scope="turns",
        summary="Shows an agent in the form of OpenAI's models.",
        handler=model,
        gives=Model,
        refuses=("not_found",),
        errors=openai_error,
    ),
)
