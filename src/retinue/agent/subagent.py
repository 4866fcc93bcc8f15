"""An agent as a tool of another one (R-TOOL-12)."""

from typing import TYPE_CHECKING, Annotated, Any

from retinue.agent.pause import below
from retinue.chains import Scope
from retinue.errors import ToolError
from retinue.tools import CallWaits, Tool, ToolContext, Waiting

if TYPE_CHECKING:
    from retinue.agent.agent import Agent

Task = Annotated[str, "What to do, with all that is needed to do it."]


def agent_tool(agent: "Agent", name: str, description: str, data: Any) -> Tool:
    """A tool that gives its task to an agent and returns the answer.

    The agent runs with its own onion, engine and limits and none of the parent's state. What it
    uses is added to the parent's account and bound by what is left of the parent's tokens, its
    events go to the parent's reader under the call's id, and it is cancelled with the parent.
    """

    async def ask(task: Task, ctx: ToolContext) -> Any:
        parent: Scope = ctx.scope
        paused = None if parent.batch is None else parent.batch.nested.get(ctx.call_id)
        child = agent.nested(task, parent, ctx.call_id, data, paused)
        known, estimated = len(child.scope.spent), child.scope.estimated  # before its pause
        try:
            response = await child.conduct()
        finally:
            parent.charge(child.scope.spent[known:], report=False)
            parent.estimated += child.scope.estimated - estimated
        if response.status == "paused":
            raise CallWaits(Waiting(below(ctx.call_id, response.pending), response.snapshot))
        if response.status != "completed":
            raise ToolError(f"{name} ended as {response.status}: {response.reason}")
        return response.text if response.form is None else response.output

    return Tool(ask, name=name, description=description)
