"""The tool calls of one round: the gate, the engine, and for each call the tool onion."""

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import msgspec
from msgspec import structs

from retinue.agent.gate import ask
from retinue.agent.plan import Plan
from retinue.chains import ChatResponse, RoundRequest, ToolRequest, compose, events
from retinue.messages import ToolCall
from retinue.tools import ToolContext, ToolResponse, invoke


class Batch:
    """Runs the calls of a round with an agent's engine, gate and tool layers."""

    __slots__ = ("_chain", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chain = compose(plan.layers("tool"), self._invoke, ToolResponse)

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

    async def gate(self, calls: Sequence[ToolRequest]) -> dict[str, ToolResponse]:
        """Asks the gate about each call, one after another; gives those that shall not run."""
        decided: dict[str, ToolResponse] = {}
        gate = self._plan.gate
        if gate is not None:
            for call in calls:
                response = await ask(gate, call)
                if response is not None:
                    decided[call.call.id] = response
        return decided

    async def run(
        self, calls: Sequence[ToolRequest], decided: Mapping[str, ToolResponse]
    ) -> list[ToolResponse]:
        """Runs the calls that are not decided yet; gives what came of all, in call order."""
        waiting = [call for call in calls if call.call.id not in decided]
        for call in calls:
            if call.call.id in decided:
                _report(call, decided[call.call.id], 0.0)
        ran = await self._plan.engine.run(waiting, self._run) if waiting else []
        done = iter(ran)
        return [decided.get(call.call.id) or next(done) for call in calls]

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
        )
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
