"""The turn loop: model, tools, model, until there is an answer (R-LOOP-1).

The loop knows no advisor. It is the core of the turn and round onions; `chat.py` and `batch.py`
are the cores of the other two. Each onion is composed once. Streaming or not is only whether the
scope has a reader.
"""

import asyncio
from collections.abc import Awaitable

from msgspec import structs

from retinue.agent.barrier import barrier, close_calls
from retinue.agent.batch import Batch
from retinue.agent.chat import Chat
from retinue.agent.ending import cut_off, ended
from retinue.agent.limits import Repeats
from retinue.agent.pause import UNDECIDED, Resumption, snapshot_of
from retinue.agent.phases import Course, Phase
from retinue.agent.plan import Plan
from retinue.chains import (
    CallNext,
    ChatRequest,
    ChatResponse,
    Hook,
    RoundRequest,
    RoundResponse,
    Settings,
    Status,
    TurnRequest,
    TurnResponse,
    compose,
    events,
)
from retinue.chains.send import settle
from retinue.errors import ConfigError
from retinue.messages import Message, new_id


class Loop:
    """Runs turns. One loop serves any number of them at once; it holds nothing of any.

    Attributes:
        turn: the turn onion with the loop as its core.
        consult: a model call on the side.
    """

    __slots__ = ("_batch", "_chat", "_plan", "_repaired", "_round", "consult", "turn")

    def __init__(self, plan: Plan) -> None:
        chat = Chat(plan)
        self._plan = plan
        self._batch = Batch(plan)
        self._chat = compose(plan.layers("chat"), chat.ask, ChatResponse, measured="chat")
        self._round = compose(
            plan.layers("round"), self._run_round, RoundResponse, measured="round"
        )
        turns = [(name, _noted(hook)) for name, hook in plan.layers("turn")]
        repair = plan.repair
        core = self._run_turn if repair is None else self._enter
        self.turn = compose(turns, core, TurnResponse, measured="turn")
        repairs = [] if repair is None else [(repair.name, _noted(repair.turn))]
        self._repaired = compose(repairs, self._run_turn, TurnResponse, measured="turn")
        self.consult = chat.consult

    def _enter(self, request: TurnRequest) -> Awaitable[TurnResponse]:
        """The innermost turn layer is the repair of the answer, where a form is asked for."""
        return self._run_turn(request) if request.output is None else self._repaired(request)

    async def _run_turn(self, request: TurnRequest) -> TurnResponse:
        scope = request.scope
        before = scope.finished
        if before is not None and before.status != "completed":
            raise ConfigError(
                f"The turn ended as {before.status}; a layer must pass that on, not call its inner"
                " layers again."
            )
        scope.log.transcript = request.messages
        try:
            response = await self._run_rounds(request)
        except asyncio.CancelledError:
            halted = scope.stopping.absorb()
            if halted is None or halted.status != "limit":
                raise
            response = cut_off(request, "limit", halted.reason)
            await scope.log.record(response.messages)
        scope.finished = scope.latest = response
        return response

    async def _run_rounds(self, request: TurnRequest) -> TurnResponse:
        plan, scope = self._plan, request.scope
        instructions = (*await plan.instruct(request), *request.instructions)
        messages, settings = request.messages, request.settings
        scope.state = request.state
        if request.reentry or request.resumed:
            settings = _freed(settings)
        repeats = Repeats(plan.limits.repeats)
        last: RoundResponse | None = None
        resumed = scope.resumption
        rounds = plan.limits.rounds - 1 if resumed is None else resumed.remaining
        for remaining in range(rounds, -1, -1):
            await scope.stopping.check()
            reason = plan.over_budget(scope)
            if reason is not None:
                # A turn that goes on has open calls.
                messages = close_calls(scope, messages, {}, f"Not run. {reason}")
                return ended(request, messages, last, "limit", reason)
            if scope.resumption is None or scope.resumption.answer is None:
                scope.round += 1
            scope.emit(events.RoundStarted)
            answer: RoundResponse = await self._round(
                RoundRequest(
                    scope=scope,
                    state=scope.state,
                    context=request.context,
                    turn=request,
                    round=scope.round,
                    messages=messages,
                    remaining=remaining,
                    instructions=instructions,
                    tools=request.tools,
                    settings=settings,
                    output=request.output,
                )
            )
            messages, scope.state = answer.messages, answer.state
            if messages is not scope.log.transcript and answer.status != "blocked":
                await scope.log.amend(messages)
            if answer.status is not None:
                response = ended(request, messages, answer, answer.status, answer.reason)
                if answer.status != "paused" or scope.batch is None:
                    return response
                return response.with_(
                    snapshot=snapshot_of(request, messages, scope.batch, remaining)
                )
            if repeats.again(answer):
                return ended(request, messages, answer, "limit", plan.limits.repeated)
            settings, last = _freed(settings), answer
        return ended(request, messages, last, "limit", plan.limits.no_round_left)

    async def _run_round(self, request: RoundRequest) -> RoundResponse:
        scope, turn, course = request.scope, request.turn, Course()
        scope.log.transcript = request.messages
        resumed, scope.resumption = scope.resumption, None
        if resumed is not None and resumed.answer is not None:
            scope.begin_batch(resumed.carried)
            asked = ChatResponse(message=resumed.answer, tools=request.tools)
            return await self._run_batch(request, asked, request.messages, course, resumed)
        answer: ChatResponse = await self._chat(
            ChatRequest(
                scope=scope,
                state=request.state,
                context=request.context,
                turn=turn,
                round=request.round,
                messages=turn.history + request.messages,
                instructions=request.instructions,
                tools=request.tools,
                settings=request.settings,
                output=request.output,
                stream=scope.channel is not None or scope.token_limit is not None,
            )
        )
        await scope.stopping.check()
        course.to(Phase.ANSWERED)
        if answer.blocked_by is not None:  # a layer may give the same message again and again
            answer = answer.with_(message=answer.message.with_(id=new_id()))
        if not (scope.final_only and answer.message.tool_calls):
            waits = turn.held and not answer.message.tool_calls
            settle(scope, answer.text, "a layer changed the answer", waits=waits)
        if scope.standing is not None:
            scope.standing.answer = answer.message
        if answer.refused:
            course.to(Phase.BLOCKED)
            return _done(request, answer, request.messages, "blocked")
        messages = (*request.messages, scope.log.logged(answer.message))
        if answer.message.tool_calls:
            scope.begin_batch()
        await scope.log.record(messages)
        if not answer.message.tool_calls:
            course.to(Phase.COMPLETED)
            return _done(request, answer, messages, "completed")
        if not await self._plan.is_eligible(answer):
            course.to(Phase.COMPLETED)
            messages = close_calls(scope, messages, {}, "Not run: tools may not run in this turn.")
            await scope.log.record(messages)
            return _done(request, answer, messages, "completed")
        return await self._run_batch(request, answer, messages, course, None)

    async def _run_batch(
        self,
        request: RoundRequest,
        answer: ChatResponse,
        messages: tuple[Message, ...],
        course: Course,
        resumed: Resumption | None,
    ) -> RoundResponse:
        scope, plan = request.scope, self._plan
        scope.call_ids.update([call.id for call in answer.message.tool_calls])
        calls = self._batch.requests(request, answer)
        batch = UNDECIDED if resumed is None else resumed.batch
        if resumed is None or not resumed.gated:
            batch = await self._batch.gate(calls, batch)
        scope.batch = batch
        course.to(Phase.GATED)
        if batch.pending:
            course.to(Phase.PAUSED)
            return _done(request, answer, messages, "paused", batch.reason)
        if request.remaining <= 0:
            course.to(Phase.LIMIT)
            why = plan.limits.no_round_left
            messages = close_calls(scope, messages, batch.results, f"Not run. {why}")
            await scope.log.record(messages)
            return _done(request, answer, messages, "limit", why)
        if scope.standing is not None:
            scope.standing.closed = True  # what was said before the calls stands as commentary
        if resumed is not None:
            await scope.log.go_on(*self._batch.decided(calls, batch))
        results = await self._batch.run(calls, batch)
        course.to(Phase.EXECUTED)
        waits = self._batch.waits(calls, results, batch)
        if waits is not None:
            scope.batch = waits
            course.to(Phase.PAUSED)
            return _done(request, answer, messages, "paused", waits.reason)
        direct = all(call.tool is not None and call.tool.return_direct for call in calls)
        response = barrier(
            request, messages, answer.message, results, plan.slots, direct=direct, course=course
        )
        scope.state = response.state
        await scope.log.record(response.messages)
        return response


def _noted(hook: Hook[TurnRequest, TurnResponse]) -> Hook[TurnRequest, TurnResponse]:
    """The hook of a turn layer; what it gives is what a layer outside it goes on from."""

    async def noted(
        request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        response = await hook(request, call_next)
        request.scope.latest = response
        return response

    return noted


def _done(
    request: RoundRequest,
    answer: ChatResponse,
    messages: tuple[Message, ...],
    status: Status,
    reason: str | None = None,
) -> RoundResponse:
    return RoundResponse(
        messages=messages,
        message=None if answer.refused and not answer.text else answer.message,
        state=request.state,
        status=status,
        reason=reason or answer.reason,
        blocked_by=answer.blocked_by,
    )


def _freed(settings: Settings) -> Settings:
    """After the first round a forced tool choice is lifted, or the model would call for ever."""
    if settings.tool_choice in (None, "auto", "none"):
        return settings
    return structs.replace(settings, tool_choice=None)
