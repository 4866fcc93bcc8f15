"""Recorded turns, run again on their recorded answers."""

from typing import Any

import pytest

from retinue import Agent, Approve, ConfigError, Layer, Reply, Slot, ToolReturn, tool
from retinue.advisors import Memory, Validate
from retinue.errors import ConversationNotFound, ModelBroken
from retinue.messages import Usage, user
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory, Timeline
from retinue.testing.differences import differences
from retinue.testing.replay import Recording, replay
from retinue.tools import Tool, ask_user

RAN: list[str] = []


@tool
def look(at: str) -> str:
    """Looks."""
    RAN.append(at)
    return f"fog in {at}"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


async def recorded(
    *steps: Any,
    tools: list[Tool] | None = None,
    questions: tuple[str, ...] = ("Look.",),
    **more: Any,
) -> tuple[InMemory, Agent]:
    """A store with a conversation `c`, and the agent that has had it."""
    store = InMemory()
    advisors = [Memory(store), *more.pop("advisors", ())]
    agent = Agent(Scripted(*steps), tools=tools or [look], advisors=advisors, **more)
    for question in questions:
        await agent.run(question, conversation="c")
    return store, agent


async def test_the_agent_that_ran_a_turn_gives_it_again_and_nothing_runs_or_is_written() -> None:
    store, agent = await recorded(
        Say(text="I look.", thinking="Hm.", signature="s", calls=[call("look", at="Oslo")]),
        Say(text="Fog.", usage=Usage(input=5, output=1)),
    )
    before = await store.tail("c")
    RAN.clear()
    played = await replay(await Recording.of(store, "c"), agent)
    assert (played.status, played.text, RAN) == ("completed", "Fog.", [])
    assert [message.parts for message in played.messages] == [e.message.parts for e in before]
    assert played.calls == (("look", {"at": "Oslo"}),)
    assert await store.tail("c") == before
    assert isinstance(agent.model, Scripted)
    assert len(agent.model.requests) == 2


async def test_requests_are_those_of_the_recorded_turn() -> None:
    store, agent = await recorded(
        "One.", call("look", at="Oslo"), "Two.", questions=("First.", "Second.")
    )
    played = await replay(await Recording.of(store, "c"), agent)
    assert isinstance(agent.model, Scripted)
    for then, now in zip(agent.model.requests[1:], played.requests, strict=True):
        assert [m.parts for m in now.messages] == [m.parts for m in then.messages]


async def test_an_earlier_turn_is_replayed_on_what_came_before_it_alone() -> None:
    store, agent = await recorded("One.", "Two.", "Three.", questions=("1", "2", "3"))
    turn = (await Timeline(store).points("c"))[1].turn
    played = await replay(await Recording.of(store, "c", turn), agent)
    assert played.text == "Two."
    assert [m.text for m in played.requests[0].messages] == ["1", "One.", "2"]


async def test_given_up_answers_are_replayed_too() -> None:
    store, agent = await recorded("x", "42", advisors=[Validate(int)], questions=("How many?",))
    played = await replay(await Recording.of(store, "c"), agent)
    assert (played.status, played.text, len(played.requests)) == ("completed", "42", 2)
    assert differences(played, await replay(await Recording.of(store, "c"), agent)) == ()


async def test_what_earlier_turns_gave_up_is_not_sent_in_a_replay_either() -> None:
    store, agent = await recorded(
        "x", "42", "43", advisors=[Validate(int)], questions=("How many?", "And now?")
    )
    played = await replay(await Recording.of(store, "c"), agent)
    assert [m.text for m in played.requests[0].messages] == ["How many?", "42", "And now?"]


async def test_a_turn_that_was_asked_anew_is_replayed_without_the_one_it_replaced() -> None:
    store, agent = await recorded("One.", "Two.", "Other.", questions=("1", "2"))
    await agent.regenerate("c", question="two")
    played = await replay(await Recording.of(store, "c"), agent)
    assert played.text == "Other."
    assert [m.text for m in played.requests[0].messages] == ["1", "One.", "two"]


async def test_a_changed_advisor_shows_in_what_is_sent() -> None:
    store, agent = await recorded(call("look", at="Oslo"), "Fog.")
    recording = await Recording.of(store, "c")

    async def elsewhere(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(arguments={"at": "Rome"}))

    async def shout(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text(response.text.upper()))

    changed = agent.with_(
        advisors=[*agent.advisors, Layer("shout", turn=shout), Layer("elsewhere", tool=elsewhere)],
        tools=[],
    )
    changes = differences(await replay(recording, agent), await replay(recording, changed))
    said = [(one.where, one.what, one.lines) for one in changes]
    assert ("tool calls", "arguments", ('- look {"at":"Oslo"}', '+ look {"at":"Rome"}')) in said
    assert ("end", "answer", ("- Fog.", "+ FOG.")) in said
    tools = next(lines for where, what, lines in said if what == "tools")
    assert tools[0].startswith("- look: Looks.")


async def test_a_layer_that_asks_more_gets_no_answer_and_one_that_asks_less_leaves_some() -> None:
    store, agent = await recorded("Fog.")
    recording = await Recording.of(store, "c")

    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Longer."))

    async def at_once(request: Any, call_next: Any) -> Any:
        return request.respond("Closed.")

    more = await replay(recording, agent.with_(advisors=[Layer("again", turn=again)]))
    assert more.status == "unrecorded"
    assert "has 1 answers of the model and none to its call 2" in (more.reason or "")
    assert len(more.requests) == 2
    less = await replay(recording, agent.with_(advisors=[Layer("at once", turn=at_once)]))
    assert (less.status, less.text, less.unasked) == ("completed", "Closed.", 1)


async def test_a_replay_that_breaks_off_has_the_messages_so_far() -> None:
    store, agent = await recorded(call("look", at="Oslo"), "Fog.")

    async def once(request: Any, call_next: Any) -> Any:
        if request.messages[-1].role == "tool":
            raise RuntimeError("Enough.")
        return await call_next(request)

    broken = agent.with_(advisors=[*agent.advisors, Layer("once", chat=once)])
    played = await replay(await Recording.of(store, "c"), broken)
    assert (played.status, played.reason) == ("failed", "Enough.")
    assert [message.role for message in played.messages] == ["user", "assistant", "tool"]


async def test_a_question_that_was_asked_again_is_replayed_with_its_answer() -> None:
    store, question = InMemory(), user("Look.")
    agent = Agent(Scripted(ModelBroken("No."), "Fog."), advisors=[Memory(store)])
    with pytest.raises(ModelBroken):
        await agent.run(question, conversation="c")
    await agent.run(question, conversation="c")
    recording = await Recording.of(store, "c")
    assert [message.text for message in recording.question] == ["Look."]
    assert (await replay(recording, agent)).text == "Fog."


async def test_models_that_layers_choose_or_ask_on_the_side_are_not_reached() -> None:
    side = Scripted("never", repeat=True)
    failed: list[str] = []

    async def other(request: Any, call_next: Any) -> Any:
        try:
            await request.consult("Is it so?", model=side)
        except Exception as error:
            failed.append(str(error))
        return await call_next(request.with_(model=side))

    store, agent = await recorded("Fog.")
    changed = agent.with_(advisors=[Layer("other", chat=other)])
    played = await replay(await Recording.of(store, "c"), changed)
    assert (played.text, played.aside, side.requests) == ("Fog.", 1, [])
    assert "not in the log" in failed[0]
    assert played.requests[0].model is side


async def test_a_layer_that_raises_is_a_failed_replay_and_not_an_error() -> None:
    async def broken(request: Any, call_next: Any) -> Any:
        raise ValueError("broken")

    store, agent = await recorded("Fog.")
    changed = agent.with_(advisors=[Layer("broken", turn=broken)])
    played = await replay(await Recording.of(store, "c"), changed)
    assert (played.status, played.reason) == ("failed", "broken")


@pytest.mark.rule("R-HITL-3")
async def test_calls_that_somebody_was_asked_about_have_their_recorded_results() -> None:
    @tool(sensitive=True)
    def pay(amount: int) -> str:
        """Pays."""
        RAN.append("paid")
        return f"paid {amount}"

    store, agent = await recorded(
        [call("pay", amount=1), call("ask_user", question="Who?")],
        "Done.",
        tools=[pay, ask_user()],
        gate="sensitive",
    )
    waiting = await agent.pending("c")
    await agent.resume("c", {waiting[0].id: Approve({"amount": 2}), waiting[1].id: Reply("Ann")})
    RAN.clear()
    played = await replay(await Recording.of(store, "c"), agent)
    assert (played.status, played.text, RAN) == ("completed", "Done.", [])
    results = [one.text for m in played.messages for one in m.tool_results]
    assert results == ["paid 2", "Ann"]


async def test_a_turn_that_waits_is_replayed_up_to_there() -> None:
    store, agent = await recorded(
        call("ask_user", question="Who?"), tools=[ask_user()], gate="sensitive"
    )
    played = await replay(await Recording.of(store, "c"), agent)
    assert played.status == "unrecorded"
    assert len(played.requests) == 2
    assert "no result of this call" in played.requests[1].messages[-1].tool_results[0].text


async def test_state_that_tools_wrote_may_be_given_with_the_other_options() -> None:
    @tool
    def note() -> ToolReturn:
        """Notes."""
        return ToolReturn("noted", writes={"n": 1})

    store, agent = await recorded(call("note"), "Done.", tools=[note], slots=[Slot("n", default=0)])
    recording = await Recording.of(store, "c")
    assert [r.state["n"] for r in (await replay(recording, agent)).requests] == [0, 0]
    played = await replay(recording, agent, state={"n": 1}, data=object(), context={"a": 1})
    assert [r.state["n"] for r in played.requests] == [1, 1]


async def test_an_agent_without_a_memory_is_given_what_came_before() -> None:
    store, _ = await recorded("One.", "Two.", questions=("1", "2"))
    played = await replay(await Recording.of(store, "c"), Agent(Scripted()))
    assert [m.text for m in played.requests[0].messages] == ["1", "One.", "2"]


async def test_what_is_not_there_is_refused() -> None:
    store, agent = await recorded("Fog.")
    with pytest.raises(ConversationNotFound):
        await Recording.of(store, "nobody's")
    with pytest.raises(ConversationNotFound):
        await Recording.of(store, "c", owner="ben")
    with pytest.raises(ConfigError, match="has no turn 'x'; the last is"):
        await Recording.of(store, "c", "x")

    async def pass_on(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    diary = Layer("diary", turn=pass_on, traits=frozenset({"memory"}))
    with pytest.raises(ConfigError, match="diary keeps conversations in a way of its own"):
        await replay(await Recording.of(store, "c"), agent.with_(advisors=[diary]))


async def test_a_turn_that_no_model_answered_has_nothing_to_replay() -> None:
    async def at_once(request: Any, call_next: Any) -> Any:
        return request.respond("Closed.")

    store, _ = await recorded(advisors=[Layer("at once", turn=at_once)])
    with pytest.raises(ConfigError, match="No model has answered in turn"):
        await Recording.of(store, "c")
