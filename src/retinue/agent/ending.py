"""How turns end: in their course, cut off, or with an answer that a layer has changed."""

from retinue.agent.barrier import close_calls
from retinue.chains import RoundResponse, Scope, Status, TurnRequest, TurnResponse
from retinue.chains.send import settle
from retinue.messages import Message


def ended(
    request: TurnRequest,
    messages: tuple[Message, ...],
    answer: RoundResponse | None,
    status: Status,
    reason: str | None,
) -> TurnResponse:
    """The response of the loop after its last round, or before its first."""
    scope = request.scope
    return TurnResponse(
        id=scope.id,
        status=status,
        message=None if answer is None else answer.message,
        messages=messages,
        usage=scope.usage,
        spent=tuple(scope.spent),
        rounds=scope.round,
        reason=reason,
        blocked_by=None if answer is None else answer.blocked_by,
        conversation=request.conversation,
        state=scope.state,
        context=request.context,
        form=request.output,
    )


def cut_off(
    request: TurnRequest, status: Status, reason: str, error: BaseException | None = None
) -> TurnResponse:
    """The response of a turn that was stopped: all that came is kept, no call is left open.

    An answer that waited for the end of the turn is in the log, and is neither shown nor returned.
    """
    scope, standing = request.scope, request.scope.standing
    messages = close_calls(scope.log.transcript, scope.results, f"Not finished. {reason}")
    if standing is not None and standing.answer is None:
        partial = standing.message(partial=True)
        if partial.parts:
            standing.answer = partial
            messages = (*messages, scope.log.logged(partial))
    response = ended(request, messages, None, status, reason).with_(
        message=None if standing is None or standing.waits else standing.answer, error=error
    )
    settle(scope, response.text, reason)
    return response


async def agree(scope: Scope, response: TurnResponse) -> TurnResponse:
    """Shown = returned = stored, also where a turn layer had the last word (R-STREAM-3, -8)."""
    if not response.messages:  # a layer has made it by hand
        response = response.with_(messages=scope.log.transcript)
    if response.status == "completed":
        response = await _correct_log(scope, response)
    elif response.status != "blocked":
        await close_log(scope, response.messages)
    elif scope.log.recorded:
        await close_log(scope, ())  # or a later turn would be sent what this one was blocked for
    settle(scope, response.text, "a layer changed the answer")
    return response.with_(usage=scope.usage, spent=tuple(scope.spent), rounds=scope.round)


async def _correct_log(scope: Scope, response: TurnResponse) -> TurnResponse:
    log, messages = scope.log, response.messages
    as_the_loop_left_it = (
        bool(messages) and messages is log.transcript and messages[-1] is response.message
    )
    stored = not log.journals or log.recorded.keys() == {message.id for message in messages}
    if as_the_loop_left_it and stored:
        return response
    response = log.placed(response, scope.finished)
    await close_log(scope, response.messages)
    return response


async def close_log(scope: Scope, messages: tuple[Message, ...]) -> None:
    """The log's last word on a turn: what is not in these messages was given up on the way."""
    if scope.log.journals:
        scope.log.supersede(scope.log.recorded.keys() - {message.id for message in messages})
        await scope.log.amend(messages)
