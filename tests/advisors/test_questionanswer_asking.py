"""Follow-ups made complete, retrievers that fail or take too long, and what is refused."""

import asyncio
import logging
from typing import Any

import pytest

from retinue import Agent, Usage
from retinue.advisors import Memory, QuestionAnswer
from retinue.errors import ConfigError, ModelRefused, RetrievalError
from retinue.models.scripted import Say, Scripted
from retinue.retrieval import Document
from tests.advisors.talking import WAYS, Way, by_stream, kept, sent, soon
from tests.agent.reading import read

ways = pytest.mark.parametrize("way", WAYS)
ASKED = "Who founded the Zorblax?"
USED = Usage(input=10, output=2)


class Broken(Exception):
    """What a retriever of an application raises."""


def fail(query: str) -> str:
    raise Broken("no route; api_key=abcdef123456")


@pytest.mark.rule("R-USAGE-4")
@ways
async def test_a_follow_up_is_made_complete_by_a_call_on_the_side(way: Way) -> None:
    queries: list[str] = []
    model = Scripted(
        Say(text="Mira Quell.", usage=USED),
        Say(text="When did Mira Quell found the Zorblax?\n", usage=USED),
        Say(text="In 1987.", usage=USED),
    )
    advisor = QuestionAnswer(queries.append, condense=True)
    memory = Memory()
    agent = Agent(model, advisors=[memory, advisor])
    await way(agent, ASKED, conversation="c")
    response = await way(agent, "When was that?", conversation="c")
    assert queries == [ASKED, "When did Mira Quell found the Zorblax?"]
    assert response.text == "In 1987."
    assert (response.usage.input, len(response.spent)) == (20, 2)
    (asked,) = model.requests[1].messages
    assert asked.text == (f"user: {ASKED}\nassistant: Mira Quell.\n\nThe question: When was that?")
    assert sent(model)[-1] == "user: When was that?"
    assert "user: When was that?" in await kept(memory.store)


@pytest.mark.behaviour("B-ST-6")
async def test_none_of_the_call_on_the_side_is_streamed() -> None:
    model = Scripted("Mira Quell.", "secret rewriting", "In 1987.")
    agent = Agent(model, advisors=[Memory(), QuestionAnswer(fact, condense=True)])
    await agent.run(ASKED, conversation="c")
    seen = await read(agent.stream("When was that?", conversation="c"))
    assert "secret rewriting" not in str(seen)


def fact(query: str) -> str:
    return "In 1987."


async def test_a_first_question_is_complete_already_and_costs_no_call() -> None:
    model = Scripted("Mira Quell.")
    await Agent(model, advisors=[QuestionAnswer(fact, condense=True)]).run(ASKED)
    assert len(model.requests) == 1


async def test_an_empty_rewriting_leaves_the_question_as_it_is() -> None:
    queries: list[str] = []
    model = Scripted("Mira Quell.", "  ", "In 1987.")
    agent = Agent(model, advisors=[Memory(), QuestionAnswer(queries.append, condense=True)])
    await agent.run(ASKED, conversation="c")
    await agent.run("When was that?", conversation="c")
    assert queries[-1] == "When was that?"


async def test_a_long_conversation_is_cut_for_the_call_on_the_side() -> None:
    model = Scripted("x" * 10_000, repeat=True)
    agent = Agent(model, advisors=[Memory(), QuestionAnswer(fact, condense=True)])
    for number in range(6):
        await agent.run(f"Question {number}?", conversation="c")
    text = model.requests[-2].messages[0].text
    assert "Question 2?" in text
    assert "Question 1?" not in text
    assert len(text) < 7_000


@ways
async def test_what_the_retriever_raises_reaches_the_caller_as_it_is(way: Way) -> None:
    model = Scripted()
    with pytest.raises(Broken, match="no route"):
        await way(Agent(model, advisors=[QuestionAnswer(fail)]), ASKED)
    assert model.requests == []


@ways
async def test_by_choice_the_turn_goes_on_without_and_says_so_in_the_log(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    model = Scripted("No idea.")
    with caplog.at_level(logging.WARNING, "retinue"):
        agent = Agent(model, advisors=[QuestionAnswer(fail, on_error="ignore")])
        response = await way(agent, ASKED)
    assert (response.text, response.context["sources"]) == ("No idea.", ())
    assert sent(model) == [f"user: {ASKED}"]
    (line,) = caplog.messages
    assert line.startswith("QuestionAnswer goes on without documents: Broken: no route")
    assert "abcdef123456" not in line


async def test_a_mistake_in_the_program_is_never_ignored() -> None:
    def misused(query: str) -> str:
        raise ConfigError("top_k=0")

    with pytest.raises(ConfigError, match="top_k=0"):
        await Agent(Scripted(), advisors=[QuestionAnswer(misused, on_error="ignore")]).run(ASKED)


async def test_ignoring_an_error_is_still_strict() -> None:
    advisor = QuestionAnswer(fail, on_error="ignore", strict=True)
    response = await Agent(Scripted(), advisors=[advisor]).run(ASKED)
    assert (response.blocked_by, response.text) == ("QuestionAnswer", "I found nothing about that.")


async def test_a_failed_rewriting_is_an_error_of_the_retrieval() -> None:
    def agent(on_error: Any) -> Agent:
        model = Scripted("one", ModelRefused("no"), "two")
        advisor = QuestionAnswer(fact, condense=True, on_error=on_error)
        return Agent(model, advisors=[Memory(), advisor])

    failing, going_on = agent("raise"), agent("ignore")
    await failing.run(ASKED, conversation="c")
    with pytest.raises(ModelRefused):
        await failing.run("When?", conversation="c")
    await going_on.run(ASKED, conversation="c")
    assert (await going_on.run("When?", conversation="c")).text == "two"


@ways
async def test_a_retriever_that_takes_too_long_is_given_up(way: Way) -> None:
    ended = asyncio.Event()

    async def hang(query: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return query

    agent = Agent(Scripted(), advisors=[QuestionAnswer(hang, timeout=0.01)])
    with pytest.raises(RetrievalError, match=r"hang took longer than 0\.01 seconds; make it"):
        await soon(way(agent, ASKED))
    assert ended.is_set()


async def test_a_time_out_of_the_retriever_itself_is_its_own_error() -> None:
    async def slow_server(query: str) -> str:
        raise TimeoutError("the server")

    with pytest.raises(TimeoutError, match="the server"):
        await Agent(Scripted(), advisors=[QuestionAnswer(slow_server)]).run(ASKED)


async def test_a_reader_that_leaves_ends_the_retrieval() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(query: str) -> str:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()
        return query

    turn = Agent(Scripted(), advisors=[QuestionAnswer(hang, timeout=None)]).stream(ASKED)
    async with turn:
        await soon(began.wait())
    await soon(ended.wait())
    assert turn.outcome is not None
    assert turn.outcome.status == "cancelled"


@pytest.mark.parametrize("on_error", ["raise", "ignore"])
async def test_a_least_score_where_there_are_no_scores_is_a_mistake(on_error: Any) -> None:
    advisor = QuestionAnswer(fact, min_score=0.5, on_error=on_error)
    with pytest.raises(ConfigError, match=r"min_score=0\.5\) needs scores, and the retriever fact"):
        await Agent(Scripted(), advisors=[advisor]).run(ASKED)


async def test_a_wording_that_gives_no_text_is_a_mistake() -> None:
    nothing: Any = lambda question, documents: None  # noqa: E731
    advisor = QuestionAnswer(fact, wording=nothing)
    with pytest.raises(ConfigError, match=r"wording=…\) gave None; it must give the text"):
        await by_stream(Agent(Scripted(), advisors=[advisor]), ASKED)


async def test_what_the_retriever_gives_is_checked() -> None:
    pages: Any = lambda query: [{"page_content": "x"}]  # noqa: E731
    advisor = QuestionAnswer(pages)
    with pytest.raises(RetrievalError, match="gave dict; it must give texts or Documents"):
        await Agent(Scripted(), advisors=[advisor]).run(ASKED)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retriever": None}, "None is no retriever"),
        ({"retriever": Document}, "the class Document is no retriever"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_k": "4"}, "top_k='4'"),
        ({"min_score": "high"}, "min_score='high'"),
        ({"strict": "answer"}, "give False, True or 'refuse'"),
        ({"on_error": "log"}, "give 'raise' or 'ignore'"),
        ({"strict": True, "nothing_found": " "}, "is blank"),
        ({"timeout": 0}, "give seconds, or None"),
        ({"timeout": float("nan")}, "give seconds, or None"),
        ({"timeout": "10"}, "timeout='10'"),
        ({"wording": str.upper}, "is a function"),
        ({"wording": "Use: {documents}"}, "is a function"),
    ],
    ids=repr,
)
def test_what_cannot_work_is_refused_before_any_work(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        QuestionAnswer(**{"retriever": fact, **options})
