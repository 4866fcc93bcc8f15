"""Operations on turns: ask, answer a pause, read on, cancel."""

from typing import Final

from starlette.responses import Response

from retinue.errors import ConfigError
from retinue.messages import user
from retinue.serve.gateway import check_conversation
from retinue.serve.http.bodies import (
    AnswersBody,
    Asking,
    CancelResult,
    EventsQuery,
    TurnBody,
    TurnResult,
)
from retinue.serve.http.operations import Answer, Call, Operation, json_response, unless_gone
from retinue.serve.http.sse import EventStream
from retinue.serve.jobs import Job
from retinue.serve.keeping import Reader
from retinue.serve.wire import Place


async def ask(call: Call) -> Answer:
    """Begins a turn."""
    body: TurnBody = call.body
    job = Job(
        agent=call.gateway.agent_name(body.agent),
        messages=(user(*([body.input] if isinstance(body.input, str) else body.input)),),
        conversation=body.conversation,
        context=body.context,
        choices=body.choices,
        tools=body.tools,
        output=body.output,
        request=_request_id(call, body),
        seconds=body.timeout,
        detached=body.detached,
        measure=body.measure,
        final_only=body.final_only,
    )
    return await _answer(call, job, stream=body.stream)


async def answer(call: Call) -> Answer:
    """Goes on with a paused turn."""
    body: AnswersBody = call.body
    check_conversation(call.id)
    job = Job(
        agent=call.gateway.agent_name(body.agent),
        kind="resume",
        answers=body.answers,
        conversation=call.id,
        context=body.context,
        choices=body.choices,
        request=_request_id(call, body),
        seconds=body.timeout,
        detached=body.detached,
        measure=body.measure,
    )
    return await _answer(call, job, stream=body.stream)


async def read(call: Call) -> Answer:
    """Reads on in a turn that runs, or has ended lately."""
    query: EventsQuery = call.query
    place = Place.read(call.request.headers.get("last-event-id", query.after)) or Place("", 0)
    turn = call.gateway.find(call.caller, call.id, place.stream)
    after = turn.behind(place)
    if turn.end is not None and after == turn.last:
        return Response(status_code=204)  # by which an EventSource knows not to ask again
    return EventStream(turn.reader(after))


async def cancel(call: Call) -> Answer:
    """Ends a turn."""
    turn = call.gateway.find(call.caller, call.id)
    turn.cancel("The client cancelled the turn.")
    status = None if turn.end is None else turn.end.status
    return json_response(CancelResult(turn.turn, status))


async def _answer(call: Call, job: Job, *, stream: bool) -> Answer:
    reader = await call.start(job)
    if stream:
        return EventStream(reader)
    async with reader:
        await unless_gone(reader.end(), call.request.receive)
    return json_response(result_of(reader))


def result_of(reader: Reader) -> TurnResult:
    """How the turn of a reader ended, who has read it to its end."""
    turn = reader.turn
    end = turn.end
    if end is None:
        raise AssertionError("the turn was read to its end")
    return TurnResult(
        turn=turn.turn,
        status=end.status,
        text=end.text,
        usage=end.usage,
        conversation=turn.job.conversation,
        reason=end.reason,
        blocked_by=end.blocked_by,
        error=end.error,
        pending=turn.pending,
    )


def _request_id(call: Call, body: Asking) -> str | None:
    header = call.request.headers.get("idempotency-key")
    if header is not None and body.request_id not in (None, header):
        raise ConfigError("`request_id` and the header Idempotency-Key differ; give one of them.")
    return body.request_id if header is None else header


OPERATIONS: Final = (
    Operation(
        name="ask",
        method="POST",
        path="/v1/turns",
        scope="turns",
        summary="Begins a turn, and gives its events or how it ended.",
        handler=ask,
        body=TurnBody,
        gives=TurnResult,
        streams=True,
        refuses=("not_found", "conflict"),
    ),
    Operation(
        name="read",
        method="GET",
        path="/v1/turns/{id}/events",
        scope="turns",
        summary="Reads on in a turn, behind the place given or the header Last-Event-ID.",
        handler=read,
        query=EventsQuery,
        streams=True,
        refuses=("not_found",),
    ),
    Operation(
        name="cancel",
        method="POST",
        path="/v1/turns/{id}/cancel",
        scope="turns",
        summary="Ends a turn as cancelled; what had come is kept.",
        handler=cancel,
        gives=CancelResult,
        refuses=("not_found",),
    ),
    Operation(
        name="answer",
        method="POST",
        path="/v1/conversations/{id}/answers",
        scope="turns",
        summary="Answers what the paused turn of a conversation waits for, and goes on with it.",
        handler=answer,
        body=AnswersBody,
        gives=TurnResult,
        streams=True,
        refuses=("not_found", "conflict"),
    ),
)
