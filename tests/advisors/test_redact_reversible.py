"""Placeholders: the model never sees the values, and everybody else does."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import Memory, Redact, Validate
from retinue.chains.events import TextChunk, ThinkingChunk, ToolArguments, ToolStarted
from retinue.messages import Thinking
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, by_parent, kept, said, sent, soon, strictly
from tests.agent.reading import read

ANN, BOB = "ann@example.org", "bob@example.org"
ways = pytest.mark.parametrize("way", WAYS)


def hidden(*patterns: Any) -> Redact:
    return Redact(*(patterns or ("email",)), reversible=True, note="")


def mail(given: list[str]) -> Any:
    @tool(name="mail")
    async def send(to: str) -> str:
        """Sends it."""
        given.append(to)
        return f"sent to {to}, copy to {BOB}"

    return send


def writes(*placeholders: str) -> Scripted:
    """A model that mails to the first, answers with all, and then repeats what it was sent."""
    told = " and ".join(placeholders)
    return Scripted(
        Say(text=f"To {placeholders[0]}.", calls=[call("mail", to=placeholders[0])]),
        Say(text=list(f"It is sent to {told}.")),
        lambda request: "Again: " + request.messages[-1].text,
    )


@pytest.mark.rule("R-STREAM-3", "R-STREAM-5")
@ways
async def test_the_model_sees_placeholders_and_everybody_else_the_values(way: Way) -> None:
    given: list[str] = []
    store, model = InMemory(), writes("<EMAIL_1>", "<EMAIL_2>")
    agent = Agent(model, tools=[mail(given)], advisors=[Memory(store), hidden()])
    response = await way(agent, f"Write to {ANN}, I mean {ANN}.", conversation="c")
    assert given == [ANN]
    assert response.text == f"It is sent to {ANN} and {BOB}."
    assert sent(model, 0) == ["user: Write to <EMAIL_1>, I mean <EMAIL_1>."]
    assert sent(model, 1)[1:] == [
        "assistant: To <EMAIL_1>. +mail", "tool: sent to <EMAIL_1>, copy to <EMAIL_2>",
    ]  # fmt: skip
    assert model.requests[1].messages[1].tool_calls[0].arguments == '{"to":"<EMAIL_1>"}'
    log = [
        f"user: Write to {ANN}, I mean {ANN}.",
        f"assistant: To {ANN}. +mail",
        f"tool: sent to {ANN}, copy to {BOB}",
        f"assistant: It is sent to {ANN} and {BOB}.",
    ]
    assert await kept(store) == said(response.messages) == log
    assert response.messages[1].tool_calls[0].arguments == f'{{"to":"{ANN}"}}'
    strictly(model)


@ways
async def test_a_later_turn_is_sent_the_same_prefix_byte_for_byte(way: Way) -> None:
    store, model = InMemory(), writes("<EMAIL_1>", "<EMAIL_2>")
    agent = Agent(model, tools=[mail([])], advisors=[Memory(store), hidden()])
    await way(agent, f"Write to {ANN}.", conversation="c")
    response = await way(agent, f"And {BOB} or eve@example.org?", conversation="c")
    before, after = model.requests[1].messages, model.requests[2].messages
    assert [message.parts for message in after[: len(before)]] == [one.parts for one in before]
    assert sent(model)[-1] == "user: And <EMAIL_2> or <EMAIL_3>?"
    assert response.text == f"Again: And {BOB} or eve@example.org?"


@ways
async def test_a_placeholder_that_a_user_writes_is_not_taken_for_ours(way: Way) -> None:
    model = Scripted(lambda request: request.messages[0].text)
    response = await way(Agent(model, advisors=[hidden()]), f"<EMAIL_1> is no {ANN}, <EMAIL_7>")
    assert sent(model) == ["user: <TEXT_1> is no <EMAIL_1>, <TEXT_2>"]
    assert response.text == f"<EMAIL_1> is no {ANN}, <EMAIL_7>"


@pytest.mark.rule("R-LOOP-5")
@ways
async def test_on_re_entry_the_values_are_put_back_once(way: Way) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Again."))

    store, model = InMemory(), Scripted("x", "<TEXT_1>, <EMAIL_1>")
    agent = Agent(model, advisors=[Layer("again", turn=again), Memory(store), hidden()])
    response = await way(agent, f"<EMAIL_1>, {ANN}", conversation="c")
    assert response.text == f"<EMAIL_1>, {ANN}"
    assert (await kept(store))[-1] == f"assistant: <EMAIL_1>, {ANN}"


async def test_a_placeholder_that_a_model_makes_up_stays_as_it_is() -> None:
    model = Scripted("<EMAIL_2>, <EMAIL_1> and <b>")
    response = await Agent(model, advisors=[hidden()]).run(f"{ANN}?")
    assert response.text == f"<EMAIL_2>, {ANN} and <b>"


async def test_events_show_of_a_call_what_the_model_wrote_and_of_the_answer_the_values() -> None:
    model = Scripted(
        Say(thinking="<EMAIL_1>?", signature="proof", calls=[call("mail", to="<EMAIL_1>")]),
        Say(text=["To <EM", "AIL_", "1", "> it", " is <b", ">."]),
    )
    store = InMemory()
    agent = Agent(model, tools=[mail([])], advisors=[Memory(store), hidden()])
    events = await read(agent.stream(f"Write to {ANN}.", conversation="c"))
    assert "".join(e.fragment for e in events if isinstance(e, ToolArguments)) == (
        '{"to":"<EMAIL_1>"}'
    )
    assert [e.arguments for e in events if isinstance(e, ToolStarted)] == [{"to": "<EMAIL_1>"}]
    assert [e.text for e in events if isinstance(e, ThinkingChunk)] == [f"{ANN}?"]
    chunks = [e.text for e in events if isinstance(e, TextChunk)]
    assert chunks == ["To ", f"{ANN} it", " is <b", ">."]
    # Reasoning belongs to its provider: it goes back, and is stored, with its proof as it came.
    signed = Thinking("<EMAIL_1>?", signature="proof", provider="scripted")
    assert model.requests[1].messages[1].parts[0] == signed
    assert (await store.tail("c"))[1].message.parts[0] == signed


@dataclass
class Contact:
    name: str
    line: str


@ways
async def test_a_typed_answer_has_the_values_whatever_signs_they_have(way: Way) -> None:
    model = Scripted('{"name": "<NAME_1>", "line": "<EMAIL_1>\\n"}')
    advisors = [hidden("email", {"name": r'Ann "A\\" Lee'})]
    agent = Agent(model, output=Contact, advisors=advisors)
    response = await way(agent, f'Ann "A\\" Lee has {ANN}')
    assert response.output == Contact('Ann "A\\" Lee', f"{ANN}\n")


@ways
async def test_what_is_wrong_with_an_answer_is_told_in_placeholders(way: Way) -> None:
    def check(text: str) -> str | None:
        return f"{ANN} alone" if BOB in text else None

    model = Scripted("<EMAIL_1> and <EMAIL_2>", "<EMAIL_1>")
    agent = Agent(model, advisors=[Validate(check=check), hidden()])
    response = await way(agent, f"{ANN} or {BOB}?")
    assert response.text == ANN
    told = sent(model)[-1]
    assert "<EMAIL_1> alone" in told
    assert ANN not in str(sent(model))


async def test_a_tool_that_fails_is_told_of_in_placeholders() -> None:
    @tool
    async def find(who: str) -> str:
        """Finds."""
        raise ValueError(f"no {who}")

    model = Scripted(call("find", who="<EMAIL_1>"), "Nobody.")
    await Agent(model, tools=[find], advisors=[hidden()]).run(f"Find {ANN}.")
    assert "no <EMAIL_1>" in sent(model)[-1]


@pytest.mark.rule("R-LOOP-8")
async def test_an_answer_that_is_cut_short_is_stored_with_the_values_it_had_come_to() -> None:
    store = InMemory()
    model = Scripted(Say(text=["To <EMAIL_1>", " and <EMA"], error=ValueError("broken")))
    agent = Agent(model, advisors=[Memory(store), hidden()])
    turn = agent.stream(f"Write to {ANN}.", conversation="c")
    await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.text == f"To {ANN} and "
    assert (await kept(store))[-1] == f"assistant: To {ANN} and  …"


async def test_a_sub_agent_is_given_the_values() -> None:
    inner = Scripted("done")
    helper = Agent(inner, name="helper").as_tool("helper", "Helps.")
    outer = Scripted(call("helper", task="Write to <EMAIL_1>."), "ok")
    await Agent(outer, tools=[helper], advisors=[hidden()]).run(f"Write to {ANN}.")
    assert sent(inner) == [f"user: Write to {ANN}."]


async def test_as_a_sub_agent_it_gives_its_parent_the_values() -> None:
    model = Scripted(lambda request: request.messages[0].text)
    parent = await by_parent(Agent(model, advisors=[hidden()]), f"Write to {ANN}.")
    assert sent(model) == ["user: Write to <EMAIL_1>."]
    assert said(parent.messages)[2] == f"tool: Write to {ANN}."


@ways
async def test_with_another_outside_the_reader_and_the_log_get_marks(way: Way) -> None:
    given: list[str] = []
    store, model = InMemory(), writes("<EMAIL_1>", "<EMAIL_2>")
    advisors = [Redact("email"), Memory(store), hidden()]
    agent = Agent(model, tools=[mail(given)], advisors=advisors)
    response = await way(agent, f"Write to {ANN}.", conversation="c")
    assert given == [ANN]
    assert response.text == "It is sent to [email] and [email]."
    assert sent(model, 1)[1] == "assistant: To <EMAIL_1>. +mail"
    assert await kept(store) == said(response.messages) == [
        "user: Write to [email].", "assistant: To [email]. +mail",
        "tool: sent to [email], copy to [email]",
        "assistant: It is sent to [email] and [email].",
    ]  # fmt: skip
    assert response.messages[1].tool_calls[0].arguments == '{"to":"[email]"}'


async def test_entries_at_the_same_time_share_the_placeholders() -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        first, _ = await asyncio.gather(call_next(request), call_next(request))
        return first

    model = Scripted("to <EMAIL_1>", repeat=True)
    agent = Agent(model, advisors=[Layer("twice", chat=twice), hidden()])
    response = await soon(agent.run(f"Write to {ANN}."))
    assert response.text == f"to {ANN}"
    assert sent(model, 0) == sent(model, 1)


async def test_the_model_is_told_what_placeholders_are_behind_the_instructions() -> None:
    model = Scripted("ok", repeat=True)
    advisors = [Redact("email", reversible=True)]
    await Agent(model, instructions="Be brief.", advisors=advisors).run("Go.")
    first, note = model.requests[0].instructions
    assert (first, "<EMAIL_1>" in note) == ("Be brief.", True)
    await Agent(model, instructions="Be brief.", advisors=[hidden()]).run("Go.")
    assert model.requests[1].instructions == ("Be brief.",)


@pytest.mark.parametrize("where", ["shown", ("model", "shown"), ("tools",)])
def test_it_has_one_place(where: Any) -> None:
    with pytest.raises(ConfigError, match="leave `where` out, and put another Redact outside"):
        Redact(reversible=True, where=where)
