"""AG-UI's public client against an advised agent: what it shows, holds and sends.

The client checks each event against the protocol and their order against its rules, strips what the
protocol does not know, and complains of it. So every run here also shows that it had no reason to.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from retinue import Agent, Layer, Settings, Usage, tool
from retinue.advisors import Memory
from retinue.errors import ToolError
from retinue.messages import Image
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.serve.agui_client.client import Client, Seen, client_of
from tests.serve.scenes import Stuck, pay, paying, weather, within
from tests.serve.serving import keys, serving

LOCATE = {"name": "locate", "description": "Where the user is.", "parameters": {"type": "object"}}


@asynccontextmanager
async def client(node: str, agent: Agent, **config: Any) -> AsyncIterator[Client]:
    """The client of a server that serves the agent."""
    async with serving(agent) as here, client_of(node, f"{here.url}/v1/ag-ui", **config) as made:
        yield made


def remembering(*steps: Any, **options: Any) -> Agent:
    return Agent(Scripted(*steps), advisors=[Memory(InMemory())], name="helper", **options)


def well(seen: Seen) -> Seen:
    """A run that the client had nothing to say against."""
    assert (seen.failed, seen.said) == (None, [])
    assert seen.kinds[0] == "RUN_STARTED"
    return seen


async def test_a_run_streams_its_text(node: str) -> None:
    said = Say(text=["It ", "rains."], usage=Usage(input=10, output=3, cache_read=4, reasoning=1))
    async with client(node, remembering(said)) as agui:
        seen = well(await agui.ask("Is it raining?"))
    assert seen.events[0]["protocolVersion"] == "1.0"
    assert [one["delta"] for one in seen.of("TEXT_MESSAGE_CONTENT")] == ["It ", "rains."]
    assert seen.held == [("user", "Is it raining?"), ("assistant", "It rains.")]
    assert (seen.last["outcome"], seen.result) == ({"type": "success"}, {"status": "completed"})
    assert seen.last["usage"] == [
        {
            "inputTokens": 10,
            "outputTokens": 3,
            "totalTokens": 13,
            "reasoningTokens": 1,
            "cachedInputTokens": 4,
        }
    ]


async def test_a_thread_goes_on_in_the_next_run(node: str) -> None:
    model = Scripted("one", "two")
    async with client(node, Agent(model, advisors=[Memory(InMemory())])) as agui:
        well(await agui.ask("first"))
        seen = well(await agui.ask("second"))
    assert [one.text for one in model.requests[1].messages] == ["first", "one", "second"]
    assert [text for _, text in seen.held] == ["first", "one", "second", "two"]


async def test_an_agent_without_memory_is_sent_the_thread(node: str) -> None:
    thinking = Say(thinking="Hm.", text="Wait.", calls=[call("weather", city="Oslo")])
    model = Scripted(thinking, "Rain.", "No.")
    async with client(node, Agent(model, tools=[weather])) as agui:
        well(await agui.ask("Is it raining?"))
        well(await agui.ask("Still?"))
    roles = [one.role for one in model.requests[2].messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert model.requests[2].messages[2].tool_results[0].text == "rain in Oslo"


async def test_thinking_and_the_agents_tools_are_shown(node: str) -> None:
    calls = [call("weather", city="Oslo"), call("weather", city="Bergen")]
    said = Say(thinking=["Look ", "out."], text="Wait.", calls=calls)
    async with client(node, remembering(said, "Rain.", tools=[weather])) as agui:
        seen = well(await agui.ask("Is it raining?"))
    assert seen.held == [
        ("user", "Is it raining?"),
        ("reasoning", "Look out."),
        ("assistant", "Wait."),
        ("tool", "rain in Oslo"),
        ("tool", "rain in Bergen"),
        ("assistant", "Rain."),
    ]
    asked = [one["function"]["arguments"] for one in seen.messages[2]["toolCalls"]]
    assert asked == ['{"city":"Oslo"}', '{"city":"Bergen"}']
    assert seen.kinds.count("STEP_STARTED") == seen.kinds.count("STEP_FINISHED") == 2


async def test_tools_of_the_front_end_are_run_there(node: str) -> None:
    model = Scripted(call("locate"), "You are in Oslo.")
    async with client(node, Agent(model, advisors=[Memory(InMemory())])) as agui:
        seen = well(await agui.ask("Where am I?", tools=[LOCATE]))
        (asked,) = seen.messages[-1]["toolCalls"]
        assert seen.last["outcome"]["pendingToolCallIds"] == [asked["id"]]
        agui.add(role="tool", toolCallId=asked["id"], content="Oslo")
        seen = well(await agui.run(tools=[LOCATE]))
    assert model.requests[1].messages[-1].tool_results[0].text == "Oslo"
    assert seen.held[1:] == [
        ("assistant", [("locate", {})]),
        ("tool", "Oslo"),
        ("assistant", "You are in Oslo."),
    ]


@pytest.mark.rule("R-HITL-3")
async def test_a_person_approves_with_other_arguments(node: str) -> None:
    async with client(node, paying()) as agui:
        seen = well(await agui.ask("Pay five."))
        (interrupt,) = seen.interrupts
        (asked,) = seen.messages[-1]["toolCalls"]
        assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", asked["id"])
        edited = interrupt["responseSchema"]["properties"]["editedArgs"]
        assert edited["properties"]["amount"]["type"] == "integer"
        assert seen.kinds[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        payload = {"approved": True, "editedArgs": {"amount": 4}}
        seen = well(await agui.run(resume=[answer(interrupt, payload=payload)]))
    assert seen.interrupts == []
    assert "TOOL_CALL_START" not in seen.kinds  # the call stands there already
    assert seen.held == [
        ("user", "Pay five."),
        ("assistant", [("pay", {"amount": 4})]),
        ("tool", "paid 4"),
        ("assistant", "Done."),
    ]


async def test_a_snapshot_leaves_what_was_thought(node: str) -> None:
    pausing = Say(thinking="Hm.", calls=[call("pay", amount=5)])
    agent = remembering(Say(thinking="Ah.", text="Hi."), pausing, tools=[pay], gate="sensitive")
    async with client(node, agent) as agui:
        well(await agui.ask("Hello"))
        seen = well(await agui.ask("Pay five."))
    assert "MESSAGES_SNAPSHOT" in seen.kinds
    assert seen.held == [
        ("user", "Hello"),
        ("reasoning", "Ah."),
        ("assistant", "Hi."),
        ("user", "Pay five."),
        ("reasoning", "Hm."),
        ("assistant", [("pay", {"amount": 5})]),
    ]


@pytest.mark.rule("R-TOOL-12")
async def test_a_pause_of_a_sub_agent_is_answered_under_the_call_that_runs_it(node: str) -> None:
    agent = remembering(call("payer", task="Pay five."), "Done.", tools=[paying().as_tool()])
    async with client(node, agent) as agui:
        seen = well(await agui.ask("Pay five."))
        (interrupt,) = seen.interrupts
        (asked,) = seen.messages[-1]["toolCalls"]
        assert interrupt["toolCallId"] == asked["id"]
        assert interrupt["metadata"] == {"tool": "pay", "arguments": {"amount": 5}}
        seen = well(await agui.run(resume=[answer(interrupt, payload={"approved": True})]))
    assert seen.held[1:] == [
        ("assistant", [("payer", {"task": "Pay five."})]),
        ("tool", "Done."),
        ("assistant", "Done."),
    ]


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"payload": {"approved": False, "reason": "Too dear."}}, "Too dear."),
        ({"status": "cancelled"}, "The user cancelled it."),
    ],
)
async def test_a_person_refuses(node: str, given: dict[str, Any], told: str) -> None:
    async with client(node, paying()) as agui:
        (interrupt,) = well(await agui.ask("Pay five.")).interrupts
        seen = well(await agui.run(resume=[answer(interrupt, **given)]))
    assert seen.held[2:] == [("tool", told), ("assistant", "Done.")]


async def test_a_tool_that_was_tried_again_has_its_new_result(node: str) -> None:
    tries: list[str] = []

    @tool
    def save() -> str:
        """Saves."""
        tries.append("once")
        if len(tries) == 1:
            raise ToolError("The disk is full.", failure="environment")
        return "saved"

    agent = remembering(call("save"), "Done.", tools=[save], gate="sensitive")
    async with client(node, agent) as agui:
        seen = well(await agui.ask("Save it."))
        (interrupt,) = seen.interrupts
        assert interrupt["reason"] == "retinue:environment"
        seen = well(await agui.run(resume=[answer(interrupt)]))
    assert seen.held[2:] == [("tool", "saved"), ("assistant", "Done.")]


def answer(interrupt: dict[str, Any], status: str = "resolved", **more: Any) -> dict[str, Any]:
    return {"interruptId": interrupt["id"], "status": status, **more}


async def test_what_was_taken_back_is_gone_and_the_rest_is_as_it_was(node: str) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Once more."))

    model = Scripted(Say(thinking="Hm.", text="A cat."), Say(thinking="Ah.", text="A dot."))
    image = {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}
    asked = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": image}]
    async with client(node, Agent(model, advisors=[Layer("Again", turn=again)])) as agui:
        seen = well(await agui.ask(asked))
    assert seen.kinds.count("MESSAGES_SNAPSHOT") == 1
    assert seen.held[0] == ("user", asked)
    assert seen.held[-1] == ("assistant", "A dot.")
    assert ("assistant", "A cat.") not in seen.held
    assert model.requests[0].messages[0].parts[1] == Image(b"\x89PNG\r\n\x1a\n")


async def test_a_failure_is_a_run_error_and_the_thread_goes_on(node: str) -> None:
    said = Say(text="half an", usage=Usage(input=3, output=2), error=RuntimeError("at db.internal"))
    async with client(node, remembering(said, "Sorry.")) as agui:
        seen = well(await agui.ask("Hello"))
        assert seen.last["type"] == "RUN_ERROR"
        assert (seen.last["message"], seen.last["code"]) == (
            "The server failed; its log says why.",
            "RuntimeError",
        )
        seen = well(await agui.ask("Again"))
    assert seen.held[-1] == ("assistant", "Sorry.")


async def test_a_run_that_the_user_stops_stops_the_model(node: str) -> None:
    stuck = Stuck()
    async with client(node, remembering(stuck, "Here.")) as agui:
        agui.add(role="user", content="Hello")
        agui.start()
        await within(stuck.asked.wait())
        agui.abort()
        await within(stuck.stopped.wait())
        seen = await within(agui.seen())
        assert seen.failed is None
        assert "RUN_FINISHED" not in seen.kinds
        seen = well(await agui.ask("Are you there?"))
    assert seen.held[-1] == ("assistant", "Here.")


async def test_what_the_page_knows_reaches_the_layers(node: str) -> None:
    found: dict[str, Any] = {}

    async def look(request: Any, call_next: Any) -> Any:
        found.update(request.context)
        return await call_next(request)

    agent = Agent(Scripted("Hi."), advisors=[Layer("Look", turn=look)])
    async with client(node, agent, initialState={"cart": 2}) as agui:
        page = [{"description": "city", "value": "Oslo"}]
        seen = well(await agui.ask("Hello", context=page, forwardedProps={"theme": "dark"}))
    assert found == {
        "ag_ui_context": page,
        "ag_ui_state": {"cart": 2},
        "ag_ui_forwarded_props": {"theme": "dark"},
    }
    assert seen.state == {"cart": 2}


async def test_a_client_without_a_key_is_told_so(node: str) -> None:
    access, secrets = keys("ann")
    agent = Agent(Scripted("Hello, Ann."), name="helper")
    async with serving(agent, access=access) as here:
        url = f"{here.url}/v1/ag-ui/helper"
        async with client_of(node, url) as agui:
            seen = await agui.ask("Hello")
            assert seen.failed is not None
            assert "unauthenticated" in seen.failed
        headers = {"Authorization": f"Bearer {secrets['ann']}"}
        async with client_of(node, url, headers=headers) as agui:
            seen = well(await agui.ask("Hello"))
    assert seen.held[-1] == ("assistant", "Hello, Ann.")


async def test_the_embedded_model_talks_to_the_client(node: str) -> None:
    agent = Agent(
        "local",
        name="helper",
        settings=Settings(max_tokens=8, seed=1),
        tools=[pay],
        gate="sensitive",
        advisors=[Memory(InMemory())],
    )
    async with client(node, agent) as agui:
        well(await agui.ask("Say hello."))
        seen = well(await agui.ask("Say it again."))
    roles = [role for role, _ in seen.held]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert all(text.strip() for _, text in seen.held)
    assert seen.last["usage"][0]["outputTokens"] > 0
