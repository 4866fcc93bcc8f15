"""The barrier at the end of a batch: fold the writes, then decide how to go on (R-LOOP-2)."""

from collections.abc import Mapping, Sequence

from retinue.agent.phases import Course, Phase
from retinue.chains import RoundRequest, RoundResponse, Scope
from retinue.chains.state import Slot, fold
from retinue.messages import Message, ToolCall, assistant
from retinue.tools import ToolResponse, as_result


def barrier(
    request: RoundRequest,
    messages: tuple[Message, ...],
    answer: Message,
    results: Sequence[ToolResponse],
    slots: Mapping[str, Slot],
    *,
    direct: bool,
    course: Course,
) -> RoundResponse:
    """The round's response after its batch.

    Args:
        request: the round.
        messages: the transcript up to the calls.
        answer: the model's message that asked for them.
        results: what came of each call, in call order.
        slots: the declared slots.
        direct: whether every call's result is the final answer, as all its tools declare.
        course: where the round stands.
    """
    state = fold(request.state, [one.writes if one.ok else {} for one in results], slots)
    carrier = request.scope.carrier
    after = (*messages, *[carrier(one.result) for one in results])
    if direct and all(one.ok for one in results):
        course.to(Phase.COMPLETED)
        final = assistant("\n".join(one.result.text for one in results))
        request.scope.log.originals[final.id] = (
            final,
            None,
        )  # shown, and not in the log (R-TOOL-7)
        return RoundResponse(
            messages=after, message=final, results=tuple(results), state=state, status="completed"
        )
    course.to(Phase.READY)
    return RoundResponse(messages=after, message=answer, results=tuple(results), state=state)


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls of a transcript that have no result yet, in call order."""
    waiting: dict[str, ToolCall] = {}
    for message in messages:  # in order: a provider may use an id again in a later round
        for result in message.tool_results:
            waiting.pop(result.call_id, None)
        waiting.update((call.id, call) for call in message.tool_calls)
    return list(waiting.values())


def close_calls(
    scope: Scope,
    messages: tuple[Message, ...],
    done: Mapping[str, ToolResponse],
    why: str,
) -> tuple[Message, ...]:
    """The transcript with a result for every call: the one it had, or one that says why not."""
    return messages + tuple(
        scope.carrier(done[call.id].result if call.id in done else as_result(call, why, ok=False))
        for call in unanswered_calls(messages)
    )
