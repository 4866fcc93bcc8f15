"""An engine whose calls are steps: each runs once, and what came of it is recorded.

A call has one step for its outcome, and before it, unless its tool declares `retry`, one that says
that it begins. So a run that finds the beginning without the outcome knows that a process ended in
between, and does not run the call again: the model is told that nobody knows whether it ran.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec import Struct

from retinue.agent.pause import UNKNOWN
from retinue.chains import Spent, ToolRequest
from retinue.chains.log import Keeper
from retinue.durable.documents import Ran, check_plain, encode, ran_in
from retinue.durable.execution import Execution, Place, current, outside
from retinue.tools import Engine, Tool, ToolContext, ToolResponse, as_result
from retinue.tools.engines.base import C, R

One = Callable[[ToolRequest], Awaitable[ToolResponse]]


class _Steps(Struct, frozen=True):
    """The places of one call: where it begins, if that matters, and where its outcome stands."""

    begin: Place | None
    outcome: Place


class RecordedEngine:
    """Runs calls with another engine, or gives what came of them.

    Args:
        engine: where they run. Calls of a batch run at once as far as it lets them.
        keeper: the agent's memory, which may know what came of a call that has no record.
    """

    def __init__(self, engine: Engine, keeper: Keeper | None) -> None:
        self._engine = engine
        self._keeper = keeper

    @property
    def timeout(self) -> float | None:
        """The engine's."""
        return self._engine.timeout

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes, in call order."""
        execution = current()
        if execution is None:
            return await self._engine.run(calls, one)
        # The places are taken in call order, before any call can be faster than another.
        steps = {id(call): _reserved(execution, call.tool) for call in calls}
        run = cast("One", one)

        async def recorded(call: C) -> R:
            request = cast("ToolRequest", call)
            return cast("R", await self._recorded(execution, request, steps[id(call)], run))

        results = await self._engine.run(calls, recorded)
        execution.after(list(steps.values())[-1].outcome)
        return results

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """Runs a function where the engine runs functions."""
        return await self._engine.body(tool, arguments, ctx)

    async def close(self) -> None:
        """Closes the engine."""
        await self._engine.close()

    async def _recorded(
        self, execution: Execution, request: ToolRequest, steps: _Steps, one: One
    ) -> ToolResponse:
        name, live = request.call.name, None
        begun = execution.token
        if steps.begin is not None:
            begun = await execution.at(steps.begin, f"begin {name}", _given(begun))

        async def run() -> str:
            nonlocal live
            spent: Sequence[Spent] = ()
            if begun != execution.token:
                live = await self._found(request)
            else:
                with outside() as spent:
                    live = await one(request)
            check_plain(f"state, which {name!r} wrote", live.writes)
            return encode(Ran.of(live, spent))

        record = ran_in(await execution.at(steps.outcome, f"tool {name}", run))
        scope, response = request.scope, record.response
        if live is None:
            scope.charge(record.spent, report=False)
        else:
            response = response.with_(result=live.result)  # which the log may hold already
        if response.waiting is None:
            scope.results[request.call.id] = response
        return response

    async def _found(self, request: ToolRequest) -> ToolResponse:
        """What is known of a call that was begun by a process that is gone."""
        conversation = request.conversation
        if self._keeper is not None and conversation is not None:
            turn = await self._keeper.unfinished(conversation, request.owner)
            if turn is not None and turn.turn == request.turn_id:
                for message in turn.messages:
                    for result in message.tool_results:
                        if result.call_id == request.call.id:
                            failure = None if result.ok else "semantic"
                            return ToolResponse(result=result, failure=failure)
        unknown = as_result(request.call, UNKNOWN, ok=False)
        return ToolResponse(result=unknown, failure="semantic", reason=UNKNOWN)


def _reserved(execution: Execution, tool: Tool | None) -> _Steps:
    may_run_again = tool is None or tool.retries is not None
    begin = None if may_run_again else execution.reserve()
    return _Steps(begin, execution.reserve())


def _given(text: str) -> Callable[[], Awaitable[str]]:
    async def give() -> str:
        return text

    return give
