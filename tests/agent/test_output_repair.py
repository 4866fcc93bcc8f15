"""Agents that ask for a form: an answer that does not fit is sent back, and nothing else is."""

from dataclasses import dataclass
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, Usage, tool
from retinue.chains import Output
from retinue.errors import OutputError
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.reading import read
from tests.strict import check_transcript


@dataclass
class City:
    name: str
    size: int


OSLO = '{"name": "Oslo", "size": 7}'
WRONG = '{"name": "Oslo", "size": "big"}'


def texts(model: Scripted, number: int = -1) -> list[str]:
    return [message.text for message in model.requests[number].messages]


@pytest.mark.behaviour("B-VA-1")
@pytest.mark.parametrize(
    ("script", "calls"), [((OSLO,), 1), ((WRONG, OSLO), 2), (("Oslo!", WRONG, OSLO), 3)]
)
async def test_an_answer_that_does_not_fit_is_asked_for_again(
    script: tuple[str, ...], calls: int
) -> None:
    model = Scripted(*script)
    result = await Agent(model, output=City).run("where?")
    assert result.output == City("Oslo", 7)
    assert (result.status, result.reason, len(model.requests)) == ("completed", None, calls)
    check_transcript(model.requests[-1].messages)


@pytest.mark.behaviour("B-VA-1")
async def test_an_answer_that_never_fits_is_returned_after_three_calls_and_says_so() -> None:
    model = Scripted(WRONG, repeat=True)
    result = await Agent(model, output=City).run("where?")
    assert (result.status, result.text, len(model.requests)) == ("completed", WRONG, 3)
    assert result.reason is not None
    assert result.reason.startswith("Not valid after 3 attempts. The answer is not of the form")
    with pytest.raises(OutputError, match='size: should be int, got "big"'):
        _ = result.output


async def test_the_model_is_told_what_is_wrong_and_the_schema_only_if_it_wrote_prose() -> None:
    model = Scripted("It is Oslo.", WRONG, OSLO)
    await Agent(model, output=City).run("where?")
    _, _, after_prose, _, after_misfit = texts(model)
    assert "the answer: should be JSON" in after_prose
    assert '"required":["name","size"]' in after_prose
    assert '- size: should be int, got "big"' in after_misfit
    assert "JSON alone" in after_misfit
    assert "required" not in after_misfit


async def test_an_answer_that_was_cut_off_is_asked_for_shorter() -> None:
    model = Scripted(Say(text='{"name": "Os', finish="length"), OSLO)
    await Agent(model, output=City).run("where?")
    assert "cut off" in texts(model)[-1]


async def test_an_empty_answer_is_asked_for_again() -> None:
    model = Scripted("", OSLO)
    result = await Agent(model, output=City).run("where?")
    assert result.output == City("Oslo", 7)


@pytest.mark.behaviour("B-VA-4", "B-VA-2")
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_repair_after_three_side_effects_runs_no_tool_again(streamed: bool) -> None:
    booked: list[str] = []

    @tool
    def book(what: str) -> str:
        """Books."""
        booked.append(what)
        return "booked"

    model = Scripted(
        [call("book", what="train"), call("book", what="boat")],
        Say(text="Now the hotel.", calls=[call("book", what="hotel")]),
        WRONG,
        OSLO,
    )
    log = Log()
    agent = Agent(model, tools=[book], output=City, advisors=[log])
    if streamed:
        turn = agent.stream("book it")
        await read(turn)
        result = await turn.result()
    else:
        result = await agent.run("book it")
    assert sorted(booked) == ["boat", "hotel", "train"]
    assert (result.output, len(model.requests)) == (City("Oslo", 7), 4)
    check_transcript(model.requests[-1].messages)
    roles = [message.role for message in log.valid]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]


@pytest.mark.behaviour("B-VA-2")
async def test_rounds_of_tool_calls_are_no_attempts() -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    looks = [Say(text="no JSON", calls=[call("look")]) for _ in range(3)]
    model = Scripted(*looks, WRONG, call("look"), WRONG, OSLO)
    result = await Agent(model, tools=[look], output=City).run("?")
    assert (result.output, result.rounds) == (City("Oslo", 7), 7)


async def test_a_turn_may_ask_for_a_form_of_its_own() -> None:
    model = Scripted("Hi!", "Oslo", OSLO, "3", "Hello!")
    agent = Agent(model)
    assert (await agent.run("hi")).output is None
    assert (await agent.run("where?", output=City)).output == City("Oslo", 7)
    assert (await agent.run("how many?", output=int)).output == 3
    assert (await agent.run("hi")).text == "Hello!"


async def test_a_form_that_a_layer_asks_for_is_seen_to_as_well() -> None:
    async def ask(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(output=Output.of(City)))

    model = Scripted("Oslo", OSLO)
    result = await Agent(model, advisors=[Layer("form", turn=ask)]).run("where?")
    assert result.output == City("Oslo", 7)


async def test_what_did_not_complete_or_came_from_a_layer_is_not_asked_for_again() -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no")

    async def cached(request: Any, call_next: Any) -> Any:
        return request.respond("from the cache")

    for hook in ("turn", "chat"):
        for function, status in ((refuse, "blocked"), (cached, "completed")):
            hooks: dict[str, Any] = {hook: function}
            model = Scripted()
            result = await Agent(model, output=City, advisors=[Layer("x", **hooks)]).run("?")
            assert (result.status, model.requests) == (status, [])
            assert result.blocked_by == "x"


async def test_an_answer_that_a_layer_gives_is_read_in_the_form() -> None:
    async def cached(request: Any, call_next: Any) -> Any:
        return request.respond(OSLO)

    agent = Agent(Scripted(), output=City, advisors=[Layer("cache", turn=cached)])
    assert (await agent.run("?")).output == City("Oslo", 7)


async def test_an_answer_that_tools_gave_is_not_asked_for_again() -> None:
    @tool(return_direct=True)
    def fetch() -> str:
        """Fetches."""
        return "as it is"

    model = Scripted(call("fetch"))
    result = await Agent(model, tools=[fetch], output=City).run("?")
    assert (result.text, len(model.requests)) == ("as it is", 1)
    refused = Scripted(Say(text="I would fetch.", calls=[call("fetch")]))
    agent = Agent(refused, tools=[fetch], output=City, eligible=lambda answer: False)
    assert (await agent.run("?")).text == "I would fetch."
    assert len(refused.requests) == 1


async def test_a_limit_ends_the_asking() -> None:
    say = Say(text=WRONG, usage=Usage(input=15, output=10))
    model = Scripted(say, repeat=True)
    result = await Agent(model, output=City, limits=Limits(tokens=40)).run("where?")
    assert (result.status, len(model.requests)) == ("limit", 2)


async def test_an_answer_that_a_layer_changes_afterwards_is_read_anew() -> None:
    async def grow(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text(OSLO.replace("7", "8")))

    result = await Agent(Scripted(OSLO), output=City, advisors=[Layer("x", turn=grow)]).run("?")
    assert result.output == City("Oslo", 8)


def test_the_repair_is_shown_innermost_where_a_form_is_asked_for() -> None:
    assert Agent(Scripted(), output=City).explain().chain("turn") == ("output",)
    assert Agent(Scripted()).explain().chain("turn") == ()


@pytest.mark.rule("R-STREAM-5")
async def test_a_reader_takes_back_what_did_not_fit() -> None:
    turn = Agent(Scripted(WRONG, OSLO), output=City).stream("where?")
    events = await read(turn)
    assert [type(e).__name__ for e in events].count("AttemptDiscarded") == 1
    assert (await turn.result()).text == OSLO
