"""How turns end: in their course, cut off, or with an answer that a layer has changed."""

from collections.abc import Iterable

from msgspec import structs

from retinue.agent.barrier import close_calls
from retinue.chains import RoundResponse, Scope, Status, TurnRequest, TurnResponse
from retinue.chains.log import ENDED, has_ended
from retinue.chains.send import settle
from retinue.chains.snapshot import Snapshot
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.messages.window import heal


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
    messages = close_calls(scope, scope.log.transcript, scope.results, f"Not finished. {reason}")
    if standing is not None and standing.answer is None:
        partial = standing.message(partial=True)
        if partial.parts:
            standing.answer = partial
            messages = (*messages, scope.log.logged(partial))
    messages = marked(scope, messages, status)
    response = ended(request, messages, None, status, reason).with_(
        message=None if standing is None or standing.waits else standing.answer, error=error
    )
    settle(scope, response.text, reason)
    return response


async def agree(scope: Scope, response: TurnResponse) -> TurnResponse:
    """Shown = returned = stored, also where a turn layer had the last word (R-STREAM-3, -8)."""
    if not response.messages:  # a layer has made it by hand
        response = response.with_(messages=scope.log.transcript)
    if response.status == "paused":
        response = await _keep_pause(scope, response)
    elif response.status == "blocked":
        if scope.log.recorded:
            await close_log(scope, ())  # or a later turn is sent what this one was blocked for
    elif response.status == "completed":
        response = await _correct_log(scope, _with_end(scope, response))
    else:
        response = _with_end(scope, response)
        await close_log(scope, response.messages)
    if scope.log.journals and response.status != "paused" and not scope.log.untouched:
        await scope.log.go_on()
    settle(scope, response.text, "a layer changed the answer")
    counted = response.usage is scope.usage and len(response.spent) == len(scope.spent)
    if counted and response.rounds == scope.round:
        return response
    return response.with_(usage=scope.usage, spent=tuple(scope.spent), rounds=scope.round)


def marked(scope: Scope, messages: tuple[Message, ...], status: Status) -> tuple[Message, ...]:
    """The messages, the last of them with how the turn ended where it does not show that itself: a
    log that ends with a question or a result is otherwise that of a turn cut off by a crash."""
    if not scope.log.journals or not messages or has_ended(messages[-1]):
        return messages
    last = messages[-1]
    return (*messages[:-1], last.with_(meta={**last.meta, ENDED: status}))


def _with_end(scope: Scope, response: TurnResponse) -> TurnResponse:
    """The response with no open call among its messages, and its end in them."""
    messages = response.messages
    if scope.log.untouched:  # a layer has answered in place of a batch that was open
        messages = heal(messages, "Not run: the turn ended before.")
    elif not scope.log.journals:
        return response
    messages = marked(scope, messages, response.status)
    return response if messages is response.messages else response.with_(messages=messages)


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


async def _keep_pause(scope: Scope, response: TurnResponse) -> TurnResponse:
    """Stores what the turn goes on from, with what the layers outside the loop have attached."""
    if not scope.log.untouched:
        done = () if scope.batch is None else scope.batch.results.values()
        await close_log(scope, response.messages, [scope.carrier(one.result).id for one in done])
    if response.snapshot is None:
        raise ConfigError("A layer made a paused response; only what the loop gave can be resumed.")
    snapshot = _as_kept(scope, response.snapshot, response)
    document = snapshot.dump()
    for journal in scope.log.journals:
        await journal.pause(snapshot.id, document)
    return response.with_(snapshot=snapshot)


def _as_kept(scope: Scope, snapshot: Snapshot, response: TurnResponse) -> Snapshot:
    """The snapshot with its messages as the log has them, but for the calls: these are to run."""
    log = scope.log
    if log.changes:
        results = dict(snapshot.results)
        for name, one in results.items():
            (message,) = log.kept((scope.carrier(one.result),))
            results[name] = structs.replace(one, result=message.tool_results[0])
        messages = (*log.kept(snapshot.messages[:-1]), *snapshot.messages[-1:])
        snapshot = structs.replace(snapshot, messages=messages, results=results)
    return structs.replace(snapshot, context=dict(response.context))


async def close_log(
    scope: Scope, messages: tuple[Message, ...], besides: Iterable[str] = ()
) -> None:
    """The log's last word on a turn: what is not in these messages was given up on the way.

    Args:
        scope: the turn.
        messages: its transcript.
        besides: ids of messages in the log that are not given up, though not in the transcript yet.
    """
    if scope.log.journals:
        kept = {message.id for message in messages}.union(besides)
        scope.log.supersede(scope.log.recorded.keys() - kept)
        await scope.log.amend(messages)
