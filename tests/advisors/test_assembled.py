"""The onion of one design as a whole: guard → retrieval → validation → [memory → tool search → the
model; log → tools], with calls that are eligible only while a budget lasts."""

import logging
from dataclasses import dataclass

import pytest

from retinue import Agent, ChatRequest, ChatResponse, ToolContext, Usage, tool
from retinue.advisors import (
    Logging,
    Memory,
    QuestionAnswer,
    Safeguard,
    ToolSearch,
    UsageCollector,
    Validate,
)
from retinue.chains.events import AttemptDiscarded, ToolFinished
from retinue.models.scripted import Say, Scripted, call
from retinue.retrieval import Document
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, kept, strictly
from tests.agent.reading import read

FACT = "Flights to Velmora leave on Tuesdays."


@dataclass
class Trip:
    """A booked trip."""

    city: str
    day: str


class Desk:
    """A travel desk: the agent, and what came of it."""

    def __init__(self, *script: object, budget: int = 1_000) -> None:
        self.asked: list[str] = []
        self.booked: list[str] = []
        self.store = InMemory()
        self.usage = UsageCollector()
        self.model = Scripted(*script)  # pyright: ignore[reportArgumentType]
        self._left = budget

        @tool
        def book_flight(city: str, ctx: ToolContext) -> str:
            """Books a flight to a city."""
            self.booked.append(city)
            return f"booked {city}"

        others = [
            book_flight.with_(name=f"archive_{n}", description=f"Archives kind {n}.")
            for n in range(30)
        ]
        self.agent = Agent(
            self.model,
            tools=[book_flight, *others],
            advisors=[
                Safeguard({"weapons": ["bomb"]}),
                QuestionAnswer(self._retrieve),
                Validate(Trip),
                Memory(self.store),
                ToolSearch(mode="always", limit=3),
                Logging(logging.getLogger("tests.desk")),
                self.usage,
            ],
            eligible=self._affords,
        )

    async def _retrieve(self, query: str, top_k: int) -> list[Document]:
        self.asked.append(query)
        return [Document(id="1", text=FACT)]

    def _affords(self, answer: ChatResponse) -> bool:
        self._left -= (answer.usage or Usage()).total
        return self._left > 0


def shown(request: ChatRequest) -> list[str]:
    return [one.name for one in request.tools]


SPENT = Usage(input=100, output=10)


def found() -> list[object]:
    return [
        Say(calls=[call("search_tools", query="book a flight")], usage=SPENT),
        Say(calls=[call("book_flight", city="Velmora")], usage=SPENT),
        Say(text="You fly on Tuesday.", usage=SPENT),
        Say(text='{"city": "Velmora", "day": "Tuesday"}', usage=SPENT),
    ]


@pytest.mark.behaviour("B-LO-3", "B-VA-4", "B-TS-1")
@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_goes_through_the_whole_onion_and_each_layer_does_its_part(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(*found())
    with caplog.at_level(logging.INFO, "tests.desk"):
        result = await way(desk.agent, "Fly me to Velmora.", conversation="c")
    assert result.output == Trip("Velmora", "Tuesday")
    assert desk.booked == ["Velmora"]
    assert desk.asked == ["Fly me to Velmora."]
    assert [FACT in "".join(m.text for m in one.messages) for one in desk.model.requests] == [
        True, True, True, True,
    ]  # fmt: skip
    assert shown(desk.model.requests[0]) == ["search_tools"]
    assert shown(desk.model.requests[1])[:2] == ["search_tools", "book_flight"]
    assert len(shown(desk.model.requests[1])) <= 4
    strictly(desk.model)
    log = await kept(desk.store)
    assert log[0] == "user: Fly me to Velmora."
    assert log[-1] == 'assistant: {"city": "Velmora", "day": "Tuesday"}'
    assert next(line for line in log if line.startswith("(superseded)")).endswith(
        "You fly on Tuesday."
    )
    lines = [record.getMessage().partition(" ")[0] for record in caplog.records]
    assert (lines.count("chat"), lines.count("tool")) == (4, 2)
    assert desk.usage.total.usage == Usage(input=400, output=40)


async def test_a_forbidden_question_costs_nothing_and_leaves_nothing() -> None:
    desk = Desk()
    result = await desk.agent.run("Where do I buy a BOMB?", conversation="c")
    assert (result.status, result.blocked_by) == ("blocked", "Safeguard")
    assert "weapons" in (result.reason or "")
    assert desk.asked == []
    assert desk.model.requests == []
    assert await kept(desk.store) == []


async def test_beyond_the_budget_calls_are_not_run_and_the_log_stays_valid() -> None:
    desk = Desk(*found()[:2], Say(text='{"city": "Oslo", "day": "Monday"}'), budget=150)
    result = await desk.agent.run("Fly me to Velmora.", conversation="c")
    assert result.status == "completed"
    assert desk.booked == []
    assert len(desk.model.requests) == 2
    result = await desk.agent.run("To Oslo, then.", conversation="c")
    assert result.output == Trip("Oslo", "Monday")
    strictly(desk.model)


async def test_a_reader_sees_the_invalid_answer_taken_back_and_both_tools_finish() -> None:
    desk = Desk(*found())
    events = await read(desk.agent.stream("Fly me to Velmora.", conversation="c"))
    assert sum(isinstance(one, AttemptDiscarded) for one in events) == 1
    finished = [one.name for one in events if isinstance(one, ToolFinished)]
    assert finished == ["search_tools", "book_flight"]
