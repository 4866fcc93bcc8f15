"""The agent: built once from its parts, then only run."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self

from msgspec import Struct

from retinue.agent.building import (
    Family,
    brought,
    check_parts,
    check_price,
    checked_tools,
    has_validator,
)
from retinue.agent.gate import Gate
from retinue.agent.limits import Limits
from retinue.agent.loop import Loop
from retinue.agent.plan import Eligible, Instructions, Plan
from retinue.agent.resuming import Resumable
from retinue.agent.run import Turn, conduct
from retinue.agent.subagent import agent_tool
from retinue.chains import (
    Explanation,
    Output,
    Repair,
    Scope,
    Settings,
    Slot,
    TurnResponse,
)
from retinue.chains.assembly import check, view, warn
from retinue.chains.channel import Channel
from retinue.chains.snapshot import Snapshot
from retinue.chains.state import by_name
from retinue.errors import ConfigError
from retinue.messages import Input
from retinue.models import Model, ModelRetry, cost, resolve
from retinue.tools import NOTHING, Concurrent, Engine, Tool
from retinue.tools.shapes import listed


class Agent(Resumable):
    """A language model with its retinue of advisors.

    An agent is built once and holds configuration only; any number of turns may run on it at the
    same time. It never changes: `with_` makes another one.

    Args:
        model: a `Model`, or a string such as "openai:gpt-5-mini" or "local".
        instructions: the system prompt, or a function of the turn's request that gives it.
        tools: tools, or plain functions, which become tools.
        advisors: the onion, the outermost first.
        engine: how a batch of calls is run; `Concurrent()` by default. An engine belongs to one
            agent.
        limits: what a turn may use up.
        gate: asked about each call before it runs: "sensitive" lets the turn pause for sensitive
            tools, a function decides as it likes. Without one, all calls run.
        eligible: whether the calls of an answer may run at all.
        slots: declared state slots.
        settings: how the model shall answer.
        output: the form of the final answer: a type or a JSON Schema. `result.output` reads it. An
            answer that does not fit is asked for again, twice at most, unless an advisor validates.
        retry: how failed model calls are tried again.
        name: what it is called in pictures and as a tool.

    Raises:
        ConfigError: what cannot work is refused here, by name.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        instructions: Instructions = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        advisors: Iterable[object] = (),
        engine: Engine | None = None,
        limits: Limits | None = None,
        gate: Gate | None = None,
        eligible: Eligible | None = None,
        slots: Iterable[Slot] = (),
        settings: Settings | None = None,
        output: Any = None,
        retry: ModelRetry | None = None,
        name: str = "agent",
    ) -> None:
        self._build(
            {
                "model": model, "instructions": instructions, "tools": tools,
                "advisors": advisors, "engine": engine, "limits": limits, "gate": gate,
                "eligible": eligible, "slots": slots, "settings": settings,
                "output": output, "retry": retry, "name": name,
            },
            Family(),
        )  # fmt: skip

    def _build(self, given: dict[str, Any], family: Family) -> None:
        given.update((name, listed(name, given[name])) for name in ("tools", "advisors", "slots"))
        check_parts(given)
        advisors: tuple[object, ...] = given["advisors"]
        self._given = given
        self._warnings = check(advisors)
        warn(self._warnings)
        limits: Limits = given["limits"] or Limits()
        model, output = resolve(given["model"]), given["output"]
        if limits.cost is not None:
            check_price(model)
        self._plan = Plan(
            name=given["name"],
            model=model,
            retry=given["retry"] or ModelRetry(),
            instructions=given["instructions"],
            tools=checked_tools(given["tools"], advisors),
            advisors=advisors,
            engine=given["engine"] or Concurrent(),
            limits=limits,
            gate=given["gate"],
            eligible=given["eligible"],
            slots=by_name(
                [("the agent", slot) for slot in given["slots"]] + brought(advisors, "slots")
            ),
            settings=given["settings"] or Settings(),
            output=None if output is None else Output.of(output),
            repair=None if has_validator(advisors) else Repair(),
            price=None if limits.cost is None else cost,
        )
        self._family = family
        family.claim(self._plan.engine)
        self._loop = Loop(self._plan)

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self._plan.name

    @property
    def model(self) -> Model:
        """The model that answers."""
        return self._plan.model

    @property
    def engine(self) -> Engine:
        """What runs the tools."""
        return self._plan.engine

    @property
    def output(self) -> Output | None:
        """The form that answers have where a turn asks for no other, or None."""
        return self._plan.output

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, those of advisors included."""
        return self._plan.tools

    @property
    def advisors(self) -> tuple[object, ...]:
        """The onion, the outermost first."""
        return self._plan.advisors

    def __repr__(self) -> str:
        model = self._plan.model
        return f"Agent({f'{model.provider}:{model.name}'!r}, name={self.name!r})"

    async def run(
        self,
        question: Input,
        *,
        conversation: str | None = None,
        owner: str | None = None,
        data: Any = None,
        state: Mapping[str, Any] = NOTHING,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
    ) -> TurnResponse:
        """Runs one turn.

        Args:
            question: a text, parts, a message, or several messages.
            conversation: the id under which a memory keeps the turn.
            owner: whose conversation it is.
            data: an object for tools and layers, as `ctx.data` and `request.data`.
            state: first values of state slots.
            context: values for layers; handed back in `result.context`.
            settings: how the model shall answer this turn, over the agent's own.
            output: the form of this turn's answer, instead of the agent's.

        Returns:
            how it ended. A limit, a block or a pause is a status, not an exception.

        Raises:
            ConfigError: the input is empty or of no known kind; nothing was done.
            Exception: what the model, the store or a layer raised, unwrapped.
        """
        request = self._request(
            question, conversation, owner, data, state, context, settings, output, None
        )
        return await conduct(self._loop, request, self._plan.limits)

    def stream(
        self,
        question: Input,
        *,
        conversation: str | None = None,
        owner: str | None = None,
        data: Any = None,
        state: Mapping[str, Any] = NOTHING,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
        final_only: bool = False,
        detached: bool = False,
    ) -> Turn:
        """Runs one turn and gives its events as they come: `async for event in agent.stream(...)`.

        Args:
            question, conversation, owner, data, state, context, settings, output: as for `run`.
            final_only: leave out text that the model says before it calls a tool.
            detached: start now, and go on when the reader leaves.

        Raises:
            ConfigError: the input is empty or of no known kind; nothing was done.
        """
        request = self._request(
            question, conversation, owner, data, state, context, settings, output, Channel()
        )
        request.scope.final_only = final_only
        return Turn(self._loop, request, self._plan.limits, detached=detached)

    def run_sync(self, question: Input, **options: Any) -> TurnResponse:
        """`run` for scripts, in an event loop of its own.

        Args:
            question: what is asked.
            options: those of `run`.

        Raises:
            ConfigError: it was called inside a running event loop; await `run` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._run_once(question, options))
        raise ConfigError(
            "run_sync() was called inside a running event loop, which it would block; write"
            " `await agent.run(...)` there."
        )

    def with_(self, **changes: Any) -> Self:
        """Another agent with some parts changed; this one stays as it is.

        Args:
            changes: arguments of the constructor.

        Raises:
            ConfigError: there is no such argument, or the new agent cannot work.
        """
        unknown = sorted(changes.keys() - self._given.keys())
        if unknown:
            raise ConfigError(f"An agent has no {unknown[0]!r}; it has {', '.join(self._given)}.")
        agent = object.__new__(type(self))
        agent._build({**self._given, **changes}, self._family)
        return agent

    def as_tool(
        self, name: str | None = None, description: str | None = None, *, data: Any = None
    ) -> Tool:
        """This agent as a tool of another one (R-TOOL-12).

        Args:
            name: what the other model calls it; the agent's name by default.
            description: what it is good for.
            data: the object for this agent's own tools; the caller's is not handed down.

        Raises:
            ConfigError: the name or the description is no text.
        """
        check_parts({"name": name, "description": description}, of="as_tool")
        name = name or self.name
        return agent_tool(self, name, description or f"Gives a task to {name}.", data)

    def nested(
        self, task: str, parent: Scope, call_id: str, data: Any, paused: Snapshot | None = None
    ) -> "Nested":
        """A turn inside a turn: it writes to the parent's reader under the call's id. One that was
        paused goes on from its snapshot."""
        request = self._request(
            task, None, None, data, NOTHING, NOTHING, None, None, parent.channel
        )
        if paused is not None:
            request = self.continued(request.scope, paused).with_(data=data)
        scope = request.scope
        scope.path, scope.place = (*parent.path, call_id), parent.place
        scope.price = parent.price
        scope.meters = {**parent.meters}
        if parent.token_limit is not None:
            # The parent has counted already what was used before a pause.
            left = max(0, parent.token_limit - parent.tokens) + scope.tokens
            scope.token_limit = min(left, scope.token_limit or left)
        return Nested(scope, partial(conduct, self._loop, request, self._plan.limits))

    def explain(self) -> Explanation:
        """The onion as data; print it for a picture (R-ONION-10)."""
        model = self._plan.model
        return Explanation(
            agent=self.name,
            model=f"{model.provider}:{model.name}",
            layers=tuple(map(view, self._plan.shown_layers)),
            tools=tuple(each.name for each in self._plan.tools),
            warnings=tuple(self._warnings),
        )

    async def close(self) -> None:
        """Lets go of the model's connections and the engine's threads and processes.

        An agent made by `with_` has the same model and engine, unless it was given others.
        """
        try:
            await self._plan.model.close()
        finally:
            await self._plan.engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run_once(self, question: Input, options: dict[str, Any]) -> TurnResponse:
        try:
            return await self.run(question, **options)
        finally:
            await self._plan.model.close()


class Nested(Struct, frozen=True):
    """A turn of a sub-agent: its scope, and the way to run it."""

    scope: Scope
    conduct: Callable[[], Any]
