"""retinue in the harness that measures agent libraries on the same work.

The harness imports this file as one of its adapters, in a process where its own modules `common`
and `bench` are at hand. So it stands alone, and repeats what it shares with the works here.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from common import (  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    BASE,
    PROMPT,
    SYSTEM,
    TOOLS,
    Base,
    script,
)

from retinue import Agent, ChatRequest, Layer, Limits, assistant, events, tool, user
from retinue.messages import FinishDelta, TextDelta, ToolCallDelta
from retinue.models import OpenAI
from retinue.models.base import Send

FREE = Limits(rounds=10_000, repeats=10_000)


class Fake:
    """The harness's script as a model."""

    provider = "fake"

    def __init__(self, name: str) -> None:
        self.name = name

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers as the script says after so many tool results."""
        done = sum(message.role == "tool" for message in request.messages)
        kind, value = script(self.name, done)
        if kind == "calls":
            for index, (call_id, name, arguments) in enumerate(value):
                await send(ToolCallDelta(index, call_id, name, arguments))
        else:
            for piece in value:
                await send(TextDelta(piece))
        await send(FinishDelta("stop"))
        return None

    async def close(self) -> None:
        """Nothing is held."""


async def pass_on(request: Any, call_next: Any) -> Any:
    """A layer that does nothing."""
    return await call_next(request)


class Adapter(Base):
    """What the harness calls."""

    IMPORT = "from retinue import Agent; from retinue.models import OpenAI; OpenAI('x')"

    def build(self, model: str, tools: int = 0, layers: int = 0, fake: bool = False) -> Agent:
        """An agent for one work."""
        return Agent(
            Fake(model) if fake else OpenAI(model, base_url=BASE, api_key="x"),
            instructions=SYSTEM,
            tools=[tool(function) for function in TOOLS[:tools]],
            advisors=[Layer(f"layer {n}", chat=pass_on) for n in range(layers)],
            limits=FREE,
        )

    async def run(self, agent: Agent, prompt: str) -> str:
        """One turn of a new conversation."""
        return (await agent.run(prompt)).text

    async def stream(self, agent: Agent, prompt: str, on_text: Callable[[str], object]) -> None:
        """The same, streamed."""
        async for event in agent.stream(prompt):
            if isinstance(event, events.TextChunk):
                on_text(event.text)

    async def fill(self, path: str, n: int) -> None:
        """A conversation of n messages in the default store."""
        from retinue.stores import SQLite

        store = SQLite(Path(path) / "chat.db")
        for start in range(0, n, 100):
            some = [(user(f"question {k}"), assistant(f"answer {k}")) for k in range(50)]
            await store.append("s1", [m for pair in some for m in pair], turn=f"fill {start}")
        await store.close()

    async def resume(self, path: str, prompt: str = PROMPT) -> str:
        """The store opened anew, and one turn."""
        from retinue.advisors import Memory
        from retinue.stores import SQLite

        store = SQLite(Path(path) / "chat.db")
        agent = Agent(Fake("oneshot"), instructions=SYSTEM, advisors=[Memory(store)])
        answer = (await agent.run(prompt, conversation="s1")).text
        await store.close()
        return answer
