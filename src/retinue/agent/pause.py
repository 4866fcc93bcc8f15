"""Open batches: what a round that waits has decided, and how answers change it (R-HITL-3).

Everything here is a pure function over data. The loop pauses with an `OpenBatch`, which becomes a
`Snapshot`; answers make another snapshot of it; and the loop goes on from the batch in that.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from retinue.agent.building import check_parts
from retinue.chains import Scope, ToolRequest, TurnRequest
from retinue.chains.snapshot import Kept, Snapshot, kept, restored
from retinue.errors import ConfigError
from retinue.messages import Message, ToolCall
from retinue.tools import (
    NOTHING,
    Answer,
    Approve,
    PendingCall,
    Proceed,
    Reject,
    Reply,
    Tool,
    ToolResponse,
    as_result,
)
from retinue.tools.asking import TAKES, UNDER, check_arguments
from retinue.tools.schema import ArgumentsError
from retinue.tools.shapes import is_mapping


class OpenBatch(Struct, frozen=True, kw_only=True):
    """The calls of one round, as far as they are decided.

    Attributes:
        results: what came of calls that are decided or have run, by call id.
        pending: what must be answered first, by its id.
        approved: the arguments that calls were approved with, by call id.
        nested: what the sub-agents behind calls go on from, by call id.
    """

    results: Mapping[str, ToolResponse] = NOTHING
    pending: Mapping[str, PendingCall] = NOTHING
    approved: Mapping[str, Mapping[str, Any]] = NOTHING
    nested: Mapping[str, Snapshot] = NOTHING

    @property
    def reason(self) -> str:
        """Why the turn waits."""
        waits = [f"{one.tool} ({one.kind})" for one in self.pending.values()]
        return f"Waits for {len(waits)} answer{'s' * (len(waits) > 1)}: {', '.join(waits)}."


UNDECIDED: Final = OpenBatch()
"""How the batch of a new round begins."""


class Resumption(Struct, frozen=True, kw_only=True):
    """What a turn goes on with.

    Attributes:
        answer: the message whose calls are open, or None if the model is to be asked next.
        batch: the calls that are decided already, or wait.
        gated: whether the gate has decided over the others.
        carried: messages of the log that carry results of these calls.
        remaining: rounds that are left after the one it goes on with.
    """

    answer: Message | None = None
    batch: OpenBatch = UNDECIDED
    gated: bool = True
    carried: tuple[Message, ...] = ()
    remaining: int


def snapshot_of(
    request: TurnRequest, messages: tuple[Message, ...], batch: OpenBatch, remaining: int
) -> Snapshot:
    """What a turn that pauses now goes on from."""
    scope = request.scope
    return Snapshot(
        turn=scope.id,
        conversation=request.conversation,
        owner=request.owner,
        messages=messages,
        pending=tuple(batch.pending.values()),
        approved=dict(batch.approved),
        results={name: kept(one) for name, one in batch.results.items()},
        nested=dict(batch.nested),
        state=dict(scope.state),
        context=dict(request.context),
        spent=tuple(scope.spent),
        estimated=scope.estimated,
        round=scope.round,
        attempt=scope.attempt,
        remaining=remaining,
        reentry=request.reentry,
    )


def resumption_of(snapshot: Snapshot) -> Resumption:
    """What a turn goes on with from its snapshot."""
    return Resumption(
        answer=_asking(snapshot),
        batch=OpenBatch(
            results={name: restored(one) for name, one in snapshot.results.items()},
            pending={one.id: one for one in snapshot.pending},
            approved=snapshot.approved,
            nested=snapshot.nested,
        ),
        remaining=snapshot.remaining,
    )


def check_answers(snapshot: Snapshot, answers: Mapping[str, Answer], tools: Sequence[Tool]) -> None:
    """Refuses answers that fit nothing, before any work is done.

    Raises:
        ConfigError: names the call, and what it takes.
    """
    check_parts({"answers": answers})
    waiting = {one.id: one for one in snapshot.pending}
    for name, answer in answers.items():
        call = waiting.get(name)
        if call is None:
            ids = ", ".join(map(repr, waiting)) or "none"
            raise ConfigError(f"No call {name!r} waits for an answer; those that do: {ids}.")
        takes = TAKES[call.kind]
        if not isinstance(answer, takes):
            names = ", ".join(kind.__name__ for kind in takes)
            raise ConfigError(
                f"The call {name!r} of {call.tool!r} ({call.kind}) takes {names}, not {answer!r}."
            )
        if isinstance(answer, Approve) and answer.args is not None:
            if not is_mapping(answer.args):
                raise ConfigError(
                    f"Approve(args={answer.args!r}) for the call {name!r}: give the arguments by"
                    " their names, as a dict."
                )
            try:
                check_arguments(call, answer.args, tools)
            except ArgumentsError as error:
                raise ConfigError(f"Approve(args=...) for the call {name!r}: {error}") from error


def answered(snapshot: Snapshot, answers: Mapping[str, Answer]) -> Snapshot:
    """The snapshot with these answers in it; calls that they leave out stay pending."""
    calls = {call.id: call for call in _calls(snapshot)}
    results, approved = dict(snapshot.results), dict(snapshot.approved)
    for one in snapshot.pending:
        answer = answers.get(one.id)
        call = calls.get(one.id)
        if answer is None or call is None:
            continue
        if isinstance(answer, Approve):
            approved[one.id] = (one.arguments or {}) if answer.args is None else answer.args
        elif isinstance(answer, Reject):
            refused = as_result(call, answer.reason, ok=False)
            results[one.id] = Kept(refused, failure="semantic", reason=answer.reason)
        elif isinstance(answer, Reply):
            results[one.id] = Kept(as_result(call, answer.value))
        elif not isinstance(answer, Proceed):
            results.pop(one.id, None)  # it runs again
    nested = {
        name: answered(inner, _inside(name, answers)) for name, inner in snapshot.nested.items()
    }
    left = tuple(one for one in snapshot.pending if one.id not in answers)
    return structs.replace(
        snapshot, results=results, approved=approved, nested=nested, pending=left
    )


def below(call_id: str, pending: Sequence[PendingCall]) -> tuple[PendingCall, ...]:
    """Pending calls of a sub-agent, as those of the agent that called it."""
    return tuple(structs.replace(one, id=f"{call_id}{UNDER}{one.id}") for one in pending)


def waiting_batch(
    calls: Sequence[ToolRequest],
    results: Sequence[ToolResponse],
    batch: OpenBatch,
    failures: Mapping[str, PendingCall],
) -> OpenBatch | None:
    """The batch that has run, if some of its calls wait; None if all have ended.

    Args:
        calls: the calls, in call order.
        results: what came of each.
        batch: how the batch began.
        failures: failures that a person must mend first, by call id.
    """
    pending: dict[str, PendingCall] = {}
    nested: dict[str, Snapshot] = {}
    done: dict[str, ToolResponse] = {}
    for call, result in zip(calls, results, strict=True):
        name = call.call.id
        if result.waiting is not None:
            pending.update((one.id, one) for one in result.waiting.pending)
            if result.waiting.nested is not None:
                nested[name] = result.waiting.nested
            continue
        done[name] = result
        if name in failures:
            pending[name] = failures[name]
    if not pending:
        return None
    approved = {name: args for name, args in batch.approved.items() if name not in done}
    return OpenBatch(results=done, pending=pending, approved=approved, nested=nested)


def recovered(
    messages: Sequence[Message], tools: Sequence[Tool], rounds: int
) -> tuple[tuple[Message, ...], Resumption]:
    """What a turn goes on with that a crash has cut off, from its messages in the log.

    Calls that have a result keep it. Of those without, only such run again whose tools promise
    that this does no harm, or which are answered elsewhere.

    Args:
        messages: the turn so far, results in call order.
        tools: those of the agent.
        rounds: how many a turn may have; those that are done count.
    """
    at = next((at for at in range(len(messages), 0, -1) if messages[at - 1].tool_calls), 0)
    done = sum(message.role == "assistant" for message in messages)
    tail = tuple(messages[at:])
    if not at or any(message.role != "tool" for message in tail):
        return tuple(messages), Resumption(remaining=rounds - done - 1)
    asking = messages[at - 1]
    found = {one.call_id: one for message in tail for one in message.tool_results}
    again = {tool.name for tool in tools if tool.retries is not None or tool.asks}
    results: dict[str, ToolResponse] = {}
    for call in asking.tool_calls:
        if call.id in found:
            result = found[call.id]
            failure = None if result.ok else "semantic"
            results[call.id] = ToolResponse(result=result, failure=failure)
        elif call.name not in again:
            unknown = as_result(call, UNKNOWN, ok=False)
            results[call.id] = ToolResponse(result=unknown, failure="semantic", reason=UNKNOWN)
    return tuple(messages[:at]), Resumption(
        answer=asking,
        batch=OpenBatch(results=results),
        gated=False,
        carried=tail,
        remaining=max(0, rounds - done),
    )


UNKNOWN: Final = "It is not known whether this call ran: the process ended. It was not run again."


def restore(scope: Scope, snapshot: Snapshot) -> None:
    """Sets a turn's scope to where the snapshot left it."""
    scope.goes_on(snapshot.turn, snapshot.messages)
    scope.round = snapshot.round
    scope.attempt = snapshot.attempt
    scope.charge(snapshot.spent, report=False)
    scope.estimated = snapshot.estimated


def _asking(snapshot: Snapshot) -> Message | None:
    last = snapshot.messages[-1] if snapshot.messages else None
    return last if last is not None and last.tool_calls else None


def _calls(snapshot: Snapshot) -> tuple[ToolCall, ...]:
    asking = _asking(snapshot)
    return () if asking is None else asking.tool_calls


def _inside(call_id: str, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    prefix = f"{call_id}{UNDER}"
    return {k.removeprefix(prefix): a for k, a in answers.items() if k.startswith(prefix)}
