"""What an agent is built from, checked once and then only read."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from retinue.agent.gate import Gate
from retinue.agent.limits import Limits, time_is_up
from retinue.chains import (
    ChatRequest,
    ChatResponse,
    Hook,
    Output,
    Repair,
    Scope,
    Settings,
    Slot,
    Spent,
    Transforms,
    TurnRequest,
    name_of,
)
from retinue.models import Model, ModelRetry
from retinue.tools import Engine, Tool

Instructions = str | Callable[[TurnRequest], str | Awaitable[str | None] | None] | None
"""The system prompt, or a function that gives it for a turn; it may be `async`."""

Eligible = Callable[[ChatResponse], bool | Awaitable[bool]]
"""Whether the calls that an answer asks for may run at all; it may be `async`."""


class Plan(Struct, frozen=True, kw_only=True):
    """An agent's parts."""

    name: str
    model: Model
    retry: ModelRetry
    instructions: Instructions
    tools: tuple[Tool, ...]
    advisors: tuple[object, ...]
    engine: Engine
    limits: Limits
    gate: Gate | None
    eligible: Eligible | None
    slots: Mapping[str, Slot]
    settings: Settings
    output: Output | None
    repair: Repair | None
    price: Callable[[list[Spent]], float | None] | None

    @property
    def shown_layers(self) -> tuple[object, ...]:
        """The advisors, and innermost the repair of the answer, where a form is asked for."""
        repaired = self.output is not None and self.repair is not None
        return (*self.advisors, self.repair) if repaired else self.advisors

    def layers(self, hook: str) -> list[tuple[str, Hook[Any, Any]]]:
        """The layers of one hook, the outermost first."""
        return [
            (name_of(advisor), function)
            for advisor in self.advisors
            if (function := getattr(advisor, hook, None)) is not None
        ]

    def streams(self) -> list[tuple[str, Callable[[ChatRequest], Transforms]]]:
        """The stream hooks, the innermost first: in the order that an answer meets them."""
        return [
            (name_of(advisor), hook)
            for advisor in reversed(self.advisors)
            if (hook := getattr(advisor, "stream", None)) is not None
        ]

    async def instruct(self, request: TurnRequest) -> tuple[str, ...]:
        """The agent's own instructions for a turn."""
        text = self.instructions
        if callable(text):
            text = text(request)
            if inspect.isawaitable(text):
                text = await text
        return (text,) if text else ()

    async def is_eligible(self, answer: ChatResponse) -> bool:
        """Whether the calls of this answer may run."""
        if self.eligible is None:
            return True
        verdict = self.eligible(answer)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)

    def over_budget(self, scope: Scope) -> str | None:
        """Why the turn may use no more, or None."""
        limits = self.limits
        if scope.deadline is not None and scope.deadline <= asyncio.get_running_loop().time():
            return time_is_up(scope.seconds)
        if scope.token_limit is not None and scope.tokens >= scope.token_limit:
            return f"The budget of {scope.token_limit} tokens is used up."
        if limits.cost is not None and self.price is not None:
            known = [price for one in scope.spent if (price := self.price([one])) is not None]
            if sum(known) >= limits.cost:
                return f"The budget of ${limits.cost:g} is used up."
        return None
