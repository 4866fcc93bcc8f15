"""The tutorial advisor: the model reads the question twice, and nobody else does."""

from typing import Any

import pytest

from retinue import Agent, Image, Layer, tool, user
from retinue.advisors import Memory, ReReading
from retinue.chains import OnionWarning
from retinue.messages import Text
from retinue.models.scripted import Scripted, call
from tests.advisors.talking import WAYS, Way, by_parent, said, sent

ways = pytest.mark.parametrize("way", WAYS)
TWICE = "user: why?\nRead the question again: why?"


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


@pytest.mark.rule("R-ONION-5", "R-MEM-3")
@ways
async def test_the_model_reads_the_question_twice_in_every_round(way: Way) -> None:
    model = Scripted(call("search"), "because")
    agent = Agent(model, tools=[search], advisors=[ReReading()])
    response = await way(agent, "why?")
    assert sent(model, 0) == [TWICE]
    assert sent(model, 1) == [TWICE, "assistant: +search", "tool: found x"]
    assert response.text == "because"
    assert said(response.messages)[0] == "user: why?", "the transcript has it once"


async def test_in_a_sub_agent_the_task_is_read_twice() -> None:
    model = Scripted("because")
    await by_parent(Agent(model, advisors=[ReReading()]), "why?")
    assert sent(model) == [TWICE]


@ways
async def test_only_the_last_question_is_read_twice(way: Way) -> None:
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(), ReReading()])
    await way(agent, "before?", conversation="c")
    await way(agent, "why?", conversation="c")
    assert sent(model) == ["user: before?", "assistant: one", TWICE]


@pytest.mark.rule("R-LOOP-5")
@ways
async def test_on_re_entry_the_question_is_read_twice_and_not_the_feedback(way: Way) -> None:
    async def shorter(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Shorter."))

    model = Scripted("because of that", "because")
    agent = Agent(model, advisors=[Layer("shorter", turn=shorter), ReReading()])
    await way(agent, "why?")
    assert sent(model) == [TWICE, "assistant: because of that", "user: Shorter."]


async def test_a_picture_stays_where_it_is_and_one_alone_is_sent_as_it_is() -> None:
    picture = Image(url="http://x/cat.png")
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(), ReReading()])
    await agent.run(["what?", picture], conversation="c")
    assert model.requests[0].messages[0].parts == (
        Text("what?"), picture, Text("\nRead the question again: what?"),
    )  # fmt: skip
    await agent.run([picture], conversation="c")
    assert model.requests[1].messages[0].parts == (Text("what?"), picture)
    assert model.requests[1].messages[2].parts == (picture,)


@pytest.mark.rule("R-ONION-9")
def test_two_of_them_are_warned_about() -> None:
    with pytest.warns(OnionWarning, match="four times"):
        Agent(Scripted(), advisors=[ReReading(), ReReading()])


async def test_what_is_repeated_is_data() -> None:
    question = 'a {name} and a {"json": "%s"}'
    model = Scripted("one")
    await Agent(model, advisors=[ReReading()]).run(question)
    assert model.requests[0].messages[0].text.count(question) == 2


async def test_a_layer_that_leaves_no_question_is_no_error() -> None:
    async def bare(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(messages=()))

    model = Scripted("one")
    await Agent(model, advisors=[Layer("bare", chat=bare), ReReading()]).run(user("why?"))
    assert sent(model) == []
