"""The tool calls of one round: the gate, the engine, and for each call the tool onion."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec
from msgspec import structs

from retinue.agent.gate import ask, pending
from retinue.agent.pause import UNDECIDED, OpenBatch, waiting_batch
from retinue.agent.plan import Plan
from retinue.chains import ChatResponse, RoundRequest, ToolRequest, compose, events
from retinue.messages import Message, ToolCall
from retinue.tools import ToolContext, ToolResponse, Waiting, invoke
from retinue.tools.invoke import waits


class Batch:
    """Runs the calls of a round with an agent's engine, gate and tool layers."""

    __slots__ = ("_chain", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chain = compose(plan.layers("tool"), self._invoke, ToolResponse, measured="tool")

    def requests(self, request: RoundRequest, answer: ChatResponse) -> list[ToolRequest]:
        """One request for each call, in call order, its tool looked up in what was on offer."""
        offered = request.tools if answer.tools is None else answer.tools
        tools = {tool.name: tool for tool in offered}
        return [
            ToolRequest(
                scope=request.scope,
                state=request.state,
                context=request.context,
                turn=request.turn,
                round=request.round,
                call=call,
                tool=tools.get(call.name),
                arguments=_arguments(call),
                tools=offered,
            )
            for call in answer.message.tool_calls
        ]

    async def gate(self, calls: Sequence[ToolRequest], batch: OpenBatch) -> OpenBatch:
        """Decides over each call, one after another, once; those of the batch are decided."""
        plan = self._plan
        if plan.gate is None:  # there are tools that pause without one
            calls = [call for call in calls if call.tool is not None and call.tool.asks]
        if not calls:
            return batch
        results, waits = dict(batch.results), dict(batch.pending)
        for call in calls:
            if call.call.id in results:
                continue
            verdict = await ask(plan.gate, call)
            if isinstance(verdict, ToolResponse):
                results[call.call.id] = verdict
            elif verdict is not None:
                waits[verdict.id] = verdict
        return structs.replace(batch, results=results, pending=waits)

    def decided(self, calls: Sequence[ToolRequest], batch: OpenBatch) -> list[Message]:
        """The messages that carry what is decided already, in call order."""
        return [
            call.scope.carrier(batch.results[call.call.id].result)
            for call in calls
            if call.call.id in batch.results
        ]

    async def run(self, calls: Sequence[ToolRequest], batch: OpenBatch) -> list[ToolResponse]:
        """Runs the calls that are not decided yet; gives what came of all, in call order."""
        if batch is UNDECIDED:
            return await self._plan.engine.run(calls, self._run)
        decided, approved = batch.results, batch.approved
        waiting = [
            call.with_(arguments=approved[call.call.id]) if call.call.id in approved else call
            for call in calls
            if call.call.id not in decided
        ]
        for call in calls:
            if call.call.id in decided:
                _report(call, decided[call.call.id], 0.0)
        ran = await self._plan.engine.run(waiting, self._run) if waiting else []
        done = iter(ran)
        return [decided.get(call.call.id) or next(done) for call in calls]

    def waits(
        self, calls: Sequence[ToolRequest], results: Sequence[ToolResponse], batch: OpenBatch
    ) -> OpenBatch | None:
        """What the batch waits for after it has run: approvals, sub-agents, and failures that a
        person must mend, where the agent has a gate. None if nothing waits."""
        if not any(map(self._is_open, results)):
            return None
        failures = {
            call.call.id: pending(call, "environment", result.result.text)
            for call, result in zip(calls, results, strict=True)
            if result.waiting is None
            and self._is_open(result)
            and call.call.id not in batch.results  # somebody has decided to go on with it
        }
        return waiting_batch(calls, results, batch, failures)

    def _is_open(self, response: ToolResponse) -> bool:
        """Whether a call may yet have another result: it waits, or a person may mend its cause."""
        mendable = response.failure == "environment" and self._plan.gate is not None
        return mendable or response.waiting is not None

    async def _run(self, request: ToolRequest) -> ToolResponse:
        """One call with its retries (R-TOOL-10): each goes through the whole tool onion."""
        call, scope = request.call, request.scope
        scope.emit(events.ToolStarted, call_id=call.id, name=call.name, arguments=request.arguments)
        began = perf_counter()
        response: ToolResponse = await self._chain(request)
        while response.failure == "transient":
            retry = None if request.tool is None else request.tool.retries
            wait = None if retry is None else retry.wait(request.attempt, response.retry_after)
            if wait is None:
                break
            scope.emit(
                events.ToolRetried,
                call_id=call.id,
                name=call.name,
                error=response.result.text,
                wait=wait,
            )
            await asyncio.sleep(wait)
            request = request.with_(attempt=request.attempt + 1)
            response = await self._chain(request)
        if response.result.call_id != call.id:  # a layer may answer with what it has kept
            result = structs.replace(response.result, call_id=call.id, name=call.name)
            response = response.with_(result=result)
        _report(request, response, perf_counter() - began)
        if scope.log.journals and not self._is_open(response):
            # At once, so that a crash does not make the call run again.
            await scope.log.keep(scope.carrier(response.result))
        return response

    async def _invoke(self, request: ToolRequest) -> ToolResponse:
        turn, scope = request.turn, request.scope
        context = ToolContext(
            call_id=request.call.id,
            turn_id=scope.id,
            conversation=turn.conversation,
            owner=turn.owner,
            data=turn.data,
            state=request.state,
            context=request.context,
            cancel=scope.stopping.cancel,
            scope=scope,
            place=scope.place,
        )
        approved = None if scope.batch is None else scope.batch.approved.get(request.call.id)
        if approved is not None and approved != request.arguments:
            why = "A layer changed the arguments after they were approved."
            return waits(request.call, Waiting((pending(request, "approval", why),)))
        names = () if request.tool is not None else [tool.name for tool in request.tools]
        return await invoke(
            self._plan.engine, request.call, request.tool, request.arguments, context, names=names
        )


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _report(request: ToolRequest, response: ToolResponse, seconds: float) -> None:
    scope, call = request.scope, request.call
    if response.waiting is not None:
        return
    scope.results[call.id] = response
    if scope.channel is not None:
        scope.emit(
            events.ToolFinished,
            call_id=call.id,
            name=call.name,
            ok=response.ok,
            text=response.result.text,
            seconds=seconds,
            blocked_by=response.blocked_by,
        )
