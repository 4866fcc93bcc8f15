"""Works of the advisors: what eleven of them cost a turn, and what the two that scan cost."""

import random
import time
from collections.abc import Callable

from bench.headline.caching import many_tools
from bench.models import one_shot
from bench.works import QUESTION, Figures, cpu_us
from retinue import Agent
from retinue.advisors import (
    Forward,
    Interceptors,
    Logging,
    Memory,
    QuestionAnswer,
    Redact,
    ReReading,
    Safeguard,
    Thinking,
    ToolErrors,
    UsageCollector,
)
from retinue.advisors.safeguard.rulebook import Rulebook
from retinue.advisors.toolsearch.indexes import KeywordIndex
from retinue.chains.events import Event
from retinue.retrieval import Document


class Look:
    """An interceptor that changes nothing."""

    def before_request(self, request: object) -> None:
        """Looks."""


def eleven() -> list[object]:
    """Eleven advisors, as an application may have them."""

    async def retrieve(query: str, top_k: int) -> list[Document]:
        return [Document(id="1", text="Paris is the capital of France.")]

    def hear(event: Event) -> None:
        """Listens."""

    return [
        Safeguard([f"forbidden{n}" for n in range(1_000)]),
        UsageCollector(),
        Logging(),
        QuestionAnswer(retrieve),
        Memory(),
        Interceptors([Look()]),
        Redact("email"),
        ReReading(),
        ToolErrors(),
        Thinking(),
        Forward(hear),
    ]


def least_ms(once: Callable[[], object], runs: int = 20) -> float:
    """CPU time of one call, the least of several."""
    taken: list[float] = []
    for _ in range(runs):
        began = time.process_time()
        once()
        taken.append(time.process_time() - began)
    return 1_000 * min(taken)


async def advised_turn() -> Figures:
    """A turn through eleven advisors, and through none."""
    agent, plain = Agent(one_shot(), advisors=eleven()), Agent(one_shot())
    return {
        "us": await cpu_us(lambda: agent.run(QUESTION)),
        "bare_us": await cpu_us(lambda: plain.run(QUESTION)),
    }


async def guarding() -> Figures:
    """10,000 words looked for in 100 kB of text that has none of them."""
    rules = Rulebook([f"forbidden{n} word" for n in range(10_000)], whole=True)
    dice = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ("".join(dice.choices(letters, k=dice.randint(2, 9))) for _ in range(20_000))
    text = " ".join(words)[:100_000]
    assert rules.find(text) is None
    return {"ms": least_ms(lambda: rules.find(text))}


async def searching() -> Figures:
    """One query over 1,000 tools."""
    index = KeywordIndex([tool.spec for tool in many_tools(1_000)])
    return {
        "ms": least_ms(
            lambda: index.search("archive what is stored under number437, and get the weather", 5)
        )
    }


ADVISED = {each.__name__: each for each in (advised_turn, guarding, searching)}
