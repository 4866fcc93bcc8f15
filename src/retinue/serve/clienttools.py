"""The layer by which a turn offers tools that its client runs itself.

They travel in the turn's context, so that a pause keeps them and a resume offers them again. The
layer is put on where agents are served; no agent need know of it.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from retinue.chains import Advisor, CallNext, TurnRequest, TurnResponse
from retinue.errors import ConfigError
from retinue.serve.jobs import ClientTool
from retinue.tools import Tool

RESERVED: Final = "retinue."
"""How keys of the context begin that no client may set."""

_KEY: Final = f"{RESERVED}client_tools"


class ClientTools(Advisor):
    """Adds the client's tools to those on offer."""

    traits = frozenset({"changes-tools"})

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Puts them behind the agent's own."""
        listed = request.context.get(_KEY)
        if not listed:
            return await call_next(request)
        offered = msgspec.convert(listed, tuple[ClientTool, ...])
        tools = tuple(map(_tool, offered))
        return await call_next(request.with_(tools=(*request.tools, *tools)))


def context_of(tools: Sequence[ClientTool]) -> dict[str, Any]:
    """What the context of a turn must hold for these tools to be on offer."""
    return {_KEY: msgspec.to_builtins(tools)} if tools else {}


def check_tools(tools: Sequence[ClientTool], own: Sequence[Tool]) -> None:
    """Refuses tools that could not be offered.

    Args:
        tools: the client's.
        own: the agent's.

    Raises:
        ConfigError: names the tool, and what is wrong with it.
    """
    taken = {tool.name for tool in own}
    for tool in tools:
        if tool.name in taken:
            raise ConfigError(f"There is a tool {tool.name!r} already; give yours another name.")
        taken.add(tool.name)
        _tool(tool).check()


def _tool(given: ClientTool) -> Tool:
    def outside(**arguments: Any) -> None:
        raise AssertionError(f"the client runs this, not even for {arguments!r}")

    return Tool(
        outside,
        name=given.name,
        description=given.description,
        parameters=given.parameters,
        asks="external",
    )
