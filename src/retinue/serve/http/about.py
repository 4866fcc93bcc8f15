"""Operations on the server itself: its agents, its load, its health."""

from typing import Final

from retinue.serve.http.bodies import AgentList, Health, LoadView
from retinue.serve.http.operations import Answer, Call, Operation, json_response


async def agents(call: Call) -> Answer:
    """Lists what is served."""
    return json_response(AgentList([*call.gateway.agents().values()]))


async def load(call: Call) -> Answer:
    """Shows who is busy."""
    now = call.gateway.load()
    return json_response(LoadView(now.running, now.queued, now.capacity, now.draining, now.workers))


async def alive(call: Call) -> Answer:
    """Says that the process answers."""
    return json_response(Health("alive"))


async def ready(call: Call) -> Answer:
    """Says whether it takes new turns."""
    if call.gateway.ready:
        return json_response(Health("ready"))
    return json_response(Health("not ready"), 503)


OPERATIONS: Final = (
    Operation(
        name="agents",
        method="GET",
        path="/v1/agents",
        scope="turns",
        summary="Lists the agents and what each declares of itself.",
        handler=agents,
        gives=AgentList,
    ),
    Operation(
        name="load",
        method="GET",
        path="/v1/load",
        scope="metrics",
        summary="Shows the turns that run and wait, and the workers.",
        handler=load,
        gives=LoadView,
    ),
    Operation(
        name="alive",
        method="GET",
        path="/healthz",
        scope=None,
        summary="Says that the process lives.",
        handler=alive,
        gives=Health,
    ),
    Operation(
        name="ready",
        method="GET",
        path="/readyz",
        scope=None,
        summary="Says whether the server takes new turns.",
        handler=ready,
        gives=Health,
        refuses=("unavailable",),
    ),
)
