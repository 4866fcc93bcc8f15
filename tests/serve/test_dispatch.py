"""The dispatcher of one process: jobs in, events out, places counted, and an orderly end."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, ConfigError, ToolContext, tool, user
from retinue.advisors import Memory
from retinue.chains import events
from retinue.errors import ConversationNotFound, PauseNotFound
from retinue.models.scripted import Say, Scripted, call
from retinue.serve.dispatch import InProcess
from retinue.serve.faults import Refused
from retinue.serve.jobs import Answered, Choices, ClientTool, Job
from retinue.stores import InMemory
from tests.serve.scenes import Stuck, all_of, echoing, kinds, paying, within


def job(agent: str = "echo", text: str = "Hello", **options: Any) -> Job:
    return Job(agent=agent, messages=(user(text),), **options)


async def end_of(dispatcher: InProcess, asked: Job) -> events.TurnEnded:
    got = await all_of(aiter(await dispatcher.start(asked)))
    assert isinstance(got[-1], events.TurnEnded)
    return got[-1]


async def test_a_job_is_run_and_its_events_end_with_the_end() -> None:
    dispatcher = InProcess(echoing())
    asked = job()
    running = await dispatcher.start(asked)
    assert running.id == asked.id
    got = await all_of(aiter(running))
    assert kinds(got)[0] == "TurnStarted"
    assert got[0].turn == got[-1].turn == asked.id
    assert [event.seq for event in got] == [*range(1, len(got) + 1)]
    assert got[-1].text == "Hello"
    assert dispatcher.load().running == 0
    await dispatcher.close()


async def test_an_agent_that_is_not_there_is_refused_by_name() -> None:
    dispatcher = InProcess({"echo": echoing()})
    with pytest.raises(Refused, match="no agent 'bank'; there are echo") as refused:
        await dispatcher.start(job("bank"))
    assert refused.value.code == "not_found"


async def test_a_full_process_refuses_and_takes_jobs_again_later() -> None:
    stuck = Stuck()
    agent = Agent(Scripted(stuck, "second"), name="echo")
    dispatcher = InProcess(agent, capacity=1)
    reading = asyncio.create_task(end_of(dispatcher, job()))
    await within(stuck.asked.wait())
    assert dispatcher.load().running == 1
    with pytest.raises(Refused, match="All 1 places are taken") as refused:
        await dispatcher.start(job())
    assert refused.value.code == "unavailable"
    stuck.go.set()
    assert (await within(reading)).text == "at last"
    assert (await end_of(dispatcher, job())).text == "second"


async def test_a_job_that_runs_is_not_run_a_second_time() -> None:
    stuck = Stuck()
    dispatcher = InProcess(Agent(Scripted(stuck), name="echo"))
    asked = job()
    reading = asyncio.create_task(end_of(dispatcher, asked))
    await within(stuck.asked.wait())
    with pytest.raises(Refused, match="running already"):
        await dispatcher.start(asked)
    stuck.go.set()
    await within(reading)


@pytest.mark.rule("R-LOOP-8")
async def test_a_cancel_reaches_the_model() -> None:
    stuck = Stuck()
    dispatcher = InProcess(Agent(Scripted(stuck), name="echo"))
    running = await dispatcher.start(job())
    reading = asyncio.create_task(all_of(aiter(running)))
    await within(stuck.asked.wait())
    running.cancel("The user pressed stop.")
    got = await within(reading)
    assert (got[-1].status, got[-1].reason) == ("cancelled", "The user pressed stop.")
    assert stuck.stopped.is_set()


async def test_a_turn_that_is_cancelled_unread_gives_its_place_back() -> None:
    dispatcher = InProcess(echoing())
    (await dispatcher.start(job())).cancel("never mind")
    assert dispatcher.load().running == 0


@pytest.mark.rule("R-LOOP-3")
async def test_the_time_of_a_job_stops_the_model_and_its_tools() -> None:
    seen: list[ToolContext] = []

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Waits."""
        seen.append(ctx)
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted(call("wait")), tools=[wait], name="echo")
    end = await end_of(InProcess(agent), job(seconds=0.05))
    assert (end.status, end.reason) == ("limit", "The time limit of 0.05 seconds is reached.")
    assert seen[0].cancel.cancelled


async def test_a_paused_turn_goes_on_under_its_own_id() -> None:
    dispatcher = InProcess(paying())
    asked = job("payer", "Pay five.", conversation="c-1")
    got = await all_of(aiter(await dispatcher.start(asked)))
    assert got[-1].status == "paused"
    (waiting,) = got[-2].pending
    answers = {waiting.id: Answered("approve", args={"amount": 4})}
    resumed = Job(agent="payer", kind="resume", conversation="c-1", answers=answers)
    running = await dispatcher.start(resumed)
    assert running.id == asked.id
    got = await all_of(aiter(running))
    assert [e.text for e in got if isinstance(e, events.ToolFinished)] == ["paid 4"]
    assert got[-1].text == "Done."


async def test_what_cannot_be_resumed_is_refused_before_anything_runs() -> None:
    dispatcher = InProcess(paying())
    with pytest.raises(PauseNotFound):
        await dispatcher.start(Job(agent="payer", kind="resume", conversation="c-1"))
    with pytest.raises(ConfigError, match="needs its conversation"):
        await dispatcher.start(Job(agent="payer", kind="resume"))
    with pytest.raises(Refused, match="was cut off"):
        await dispatcher.start(Job(agent="payer", kind="recover", conversation="c-1"))
    assert dispatcher.load().running == 0


async def test_a_turn_that_was_cut_off_goes_on_from_its_log() -> None:
    store = InMemory()
    await store.append("c-1", [user("Hello again")], turn="t-1", owner="ann")
    model = Scripted("Where were we?")
    dispatcher = InProcess(Agent(model, advisors=[Memory(store)], name="echo"))
    running = await dispatcher.start(
        Job(agent="echo", kind="recover", conversation="c-1", owner="ann")
    )
    assert running.id == "t-1"
    got = await all_of(aiter(running))
    assert got[-1].text == "Where were we?"


async def test_tools_of_the_client_pause_the_turn_and_are_there_again_after_it() -> None:
    model = Scripted(call("locate"), call("locate"), "You are in Oslo.")
    agent = Agent(model, advisors=[Memory(InMemory())], name="echo")
    dispatcher = InProcess(agent)
    offered = (ClientTool("locate", "Where the user is."),)
    got = await all_of(aiter(await dispatcher.start(job(conversation="c", tools=offered))))
    for _ in range(2):
        (waiting,) = got[-2].pending
        assert (waiting.tool, waiting.kind) == ("locate", "external")
        answers = {waiting.id: Answered("reply", value={"city": "Oslo"})}
        asked = Job(agent="echo", kind="resume", conversation="c", answers=answers)
        got = await all_of(aiter(await dispatcher.start(asked)))
    assert got[-1].text == "You are in Oslo."
    assert model.requests[-1].messages[-1].tool_results[0].text == '{"city":"Oslo"}'
    assert [tool.name for tool in model.requests[-1].tools] == ["locate"]


async def test_a_tool_of_the_client_cannot_take_the_place_of_the_agents_own() -> None:
    dispatcher = InProcess(paying())
    with pytest.raises(ConfigError, match="a tool 'pay' already"):
        await dispatcher.start(job("payer", tools=(ClientTool("pay"),)))
    assert dispatcher.load().running == 0


async def test_choices_and_the_form_of_the_answer_reach_the_model() -> None:
    model = Scripted('{"city": "Oslo"}')
    dispatcher = InProcess(Agent(model, name="echo"))
    form = {"type": "object", "properties": {"city": {"type": "string"}}}
    end = await end_of(dispatcher, job(choices=Choices(max_tokens=9), output=form))
    assert end.status == "completed"
    assert model.requests[0].settings.max_tokens == 9
    assert model.requests[0].output is not None


async def test_a_failure_of_the_program_is_told_by_its_kind_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = RuntimeError("cannot reach db.internal")
    dispatcher = InProcess(Agent(Scripted(error), name="echo"))
    end = await end_of(dispatcher, job())
    assert (end.status, end.error) == ("failed", "RuntimeError")
    assert end.reason == "The server failed; its log says why."
    assert "db.internal" in caplog.text


@pytest.mark.rule("R-MEM-9")
async def test_a_conversation_of_another_owner_is_not_found() -> None:
    dispatcher = InProcess(echoing())
    await end_of(dispatcher, job(conversation="c", owner="ann"))
    end = await end_of(dispatcher, job(conversation="c", owner="bob"))
    assert (end.status, end.error) == ("failed", ConversationNotFound.__name__)


async def test_draining_lets_turns_end_and_takes_no_more() -> None:
    stuck = Stuck()
    dispatcher = InProcess(Agent(Scripted(stuck), name="echo"))
    reading = asyncio.create_task(end_of(dispatcher, job()))
    await within(stuck.asked.wait())
    draining = asyncio.create_task(dispatcher.drain(60))
    await asyncio.sleep(0)
    assert dispatcher.load().draining
    with pytest.raises(Refused, match="shutting down"):
        await dispatcher.start(job())
    stuck.go.set()
    assert (await within(reading)).status == "completed"
    await within(draining)


async def test_a_turn_that_does_not_end_in_time_is_cancelled() -> None:
    stuck = Stuck()
    dispatcher = InProcess(Agent(Scripted(stuck), name="echo"))
    reading = asyncio.create_task(end_of(dispatcher, job()))
    await within(stuck.asked.wait())
    await within(dispatcher.drain(0.01))
    end = await within(reading)
    assert (end.status, end.reason) == ("cancelled", "The server is shutting down.")


async def test_a_store_is_closed_when_its_turns_have_stopped() -> None:
    told: list[str] = []

    class Watched(InMemory):
        async def append(self, *args: Any, **options: Any) -> None:
            await super().append(*args, **options)
            told.append("append")

        async def close(self) -> None:
            told.append("close")

    began = asyncio.Event()

    @tool
    async def wait() -> None:
        """Waits."""
        began.set()
        await asyncio.Event().wait()

    memory = Memory(Watched())
    dispatcher = InProcess(
        Agent(Scripted(call("wait")), tools=[wait], advisors=[memory], name="echo")
    )
    reading = asyncio.create_task(end_of(dispatcher, job(conversation="c")))
    await within(began.wait())
    stored = len(told)
    await within(dispatcher.close())
    assert len(told) > stored + 1  # what became of the call, and the end
    assert told[-1] == "close"
    assert (await within(reading)).status == "cancelled"
    assert told[-1] == "close"


async def test_closing_waits_for_no_reader() -> None:
    words = Scripted(Say(text=["word "] * 2_000))
    dispatcher = InProcess(Agent(words, name="echo"))
    events_of = aiter(await dispatcher.start(job()))
    await within(anext(events_of))
    await within(dispatcher.close())
    assert (await all_of(events_of))[-1].status == "cancelled"


async def test_agents_declare_what_they_are() -> None:
    cards = InProcess({"bank": paying()}).agents()
    assert list(cards) == ["bank"]
    card = cards["bank"]
    assert (card.model, card.keeps) == ("scripted:script", True)
    assert [(tool.name, tool.sensitive) for tool in card.tools] == [("pay", True)]
    assert [layer.name for layer in card.layers] == ["Memory"]


async def test_an_agent_without_a_memory_gets_one_where_there_is_a_store() -> None:
    store = InMemory()
    model = Scripted("one", "two")
    dispatcher = InProcess(Agent(model, name="echo"), store=store)
    card = dispatcher.agents()["echo"]
    assert card.keeps
    assert [layer.name for layer in card.layers] == ["Memory"]
    await end_of(dispatcher, job(conversation="c"))
    await end_of(dispatcher, job(conversation="c"))
    assert [m.text for m in model.requests[1].messages] == ["Hello", "one", "Hello"]


@pytest.mark.parametrize(
    ("agents", "complaint"),
    [
        ({}, "no agent to serve"),
        ({"a": 1}, "no Agent but 1"),
        ({"": Agent(Scripted())}, "under the name ''"),
        ({"a\n": Agent(Scripted())}, "under the name"),
        ({"a/b": Agent(Scripted())}, "under the name"),
    ],
)
def test_what_cannot_be_served_is_refused(agents: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        InProcess(agents)


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5])
def test_a_capacity_that_is_none_is_refused(capacity: Any) -> None:
    with pytest.raises(ConfigError, match="capacity"):
        InProcess(echoing(), capacity=capacity)


async def test_text_before_a_call_can_be_left_out() -> None:
    said = Say(text="Let me see. ", calls=[call("weather", city="Oslo")])

    @tool
    def weather(city: str) -> str:
        """The weather."""
        return f"rain in {city}"

    agent = Agent(Scripted(said, "Rain."), tools=[weather], name="echo")
    got = await all_of(aiter(await InProcess(agent).start(job(final_only=True))))
    assert [e.text for e in got if isinstance(e, events.TextChunk)] == ["Rain."]
