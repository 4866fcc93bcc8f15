"""OpenAI's own Python client against an advised agent: plain, streaming, tools, typed answers."""

from collections.abc import Sequence
from typing import Any

import openai
import pytest

from retinue import Agent, Settings, Usage, tool
from retinue.advisors import Memory, Validate
from retinue.messages import Image
from retinue.models.scripted import Say, Scripted, call
from tests.serve.openai_scenes import ASK, LOCATE, Forecast, answering, client, text_of
from tests.serve.scenes import Stuck, echoing, weather, within
from tests.serve.serving import serving


async def test_an_agent_answers_as_a_model_does() -> None:
    said = Say(text="Yes.", usage=Usage(input=10, output=2, cache_read=4))
    async with client(answering(said)) as openai_client:
        got = await openai_client.chat.completions.create(
            model="helper", messages=ASK, temperature=0.5, max_completion_tokens=50
        )
    assert got.choices[0].message.content == "Yes."
    assert got.choices[0].finish_reason == "stop"
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (10, 2)
    assert got.usage.prompt_tokens_details.cached_tokens == 4


async def test_an_answer_streams_chunk_by_chunk_with_its_usage_at_the_end() -> None:
    said = Say(text=["Ye", "s."], thinking="Look out.", usage=Usage(input=10, output=2))
    async with client(answering(said)) as openai_client:
        stream = await openai_client.chat.completions.create(
            model="helper", messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert [delta.content for delta in deltas if delta.content] == ["Ye", "s."]
    assert "".join(getattr(d, "reasoning_content", None) or "" for d in deltas) == "Look out."
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 12


async def test_tools_of_the_agent_run_here_and_the_client_sees_the_answer() -> None:
    steps = (call("weather", city="Oslo"), "It rains in Oslo.")
    agent = answering(*steps, tools=[weather])
    async with client(agent) as openai_client:
        got = await openai_client.chat.completions.create(model="helper", messages=ASK)
    assert got.choices[0].message.content == "It rains in Oslo."
    assert got.choices[0].message.tool_calls is None


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_of_the_client_are_run_by_the_client(stream: bool) -> None:
    model = Scripted(call("locate", precise=True), "You are in Oslo.")
    messages = [*ASK]
    async with client(Agent(model, tools=[weather], name="helper")) as openai_client:
        asking = {"model": "helper", "messages": messages, "tools": [LOCATE]}
        if stream:
            async with openai_client.chat.completions.stream(**asking) as events:
                async for _ in events:
                    pass
                got = await events.get_final_completion()
        else:
            got = await openai_client.chat.completions.create(**asking)
        (choice,) = got.choices
        assert choice.finish_reason == "tool_calls"
        (asked,) = choice.message.tool_calls
        assert (asked.function.name, asked.function.arguments) == ("locate", '{"precise":true}')
        messages += [
            choice.message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": asked.id, "content": "Oslo"},
        ]
        got = await openai_client.chat.completions.create(
            model="helper", messages=messages, tools=[LOCATE]
        )
    assert got.choices[0].message.content == "You are in Oslo."
    last = model.requests[-1]
    assert [m.role for m in last.messages] == ["user", "assistant", "tool"]
    assert last.messages[-1].tool_results[0].text == "Oslo"
    assert [one.name for one in last.tools] == ["weather", "locate"]


async def test_a_tool_choice_and_the_other_settings_reach_the_model() -> None:
    model = Scripted(call("locate"))
    async with client(Agent(model, name="helper")) as openai_client:
        await openai_client.chat.completions.create(
            model="helper",
            messages=ASK,
            tools=[LOCATE],
            tool_choice={"type": "function", "function": {"name": "locate"}},
            parallel_tool_calls=False,
            stop="END",
            seed=7,
            reasoning_effort="low",
        )
    assert model.requests[0].settings == Settings(
        tool_choice="locate", parallel_tool_calls=False, stop=("END",), seed=7, effort="low"
    )


async def test_a_typed_answer_is_parsed_by_the_client() -> None:
    model = Scripted('{"city": "Oslo", "rain": true}')
    async with client(Agent(model, name="helper")) as openai_client:
        got = await openai_client.chat.completions.parse(
            model="helper", messages=ASK, response_format=Forecast
        )
    assert got.choices[0].message.parsed == Forecast(city="Oslo", rain=True)
    assert model.requests[0].output is not None


async def test_a_typed_answer_that_was_asked_for_again_streams_once_and_right() -> None:
    model = Scripted('{"city": "Oslo"}', '{"city": "Oslo", "rain": true}')
    async with (
        client(Agent(model, name="helper")) as openai_client,
        openai_client.chat.completions.stream(
            model="helper", messages=ASK, response_format=Forecast
        ) as events,
    ):
        got = await events.get_final_completion()
    assert got.choices[0].message.parsed == Forecast(city="Oslo", rain=True)


async def test_text_that_a_layer_may_take_back_is_sent_when_it_cannot_any_more() -> None:
    def check(value: Any) -> str | None:
        return None if value == "good" else "Say good."

    agent = answering("bad", "good", advisors=[Validate(check=check)])
    async with client(agent) as openai_client:
        stream = await openai_client.chat.completions.create(
            model="helper", messages=ASK, stream=True
        )
        assert await text_of(stream) == "good"


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_images_and_instructions_reach_the_model(role: str) -> None:
    model = Scripted("A dot.")
    content: Sequence[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    messages: list[Any] = [
        {"role": role, "content": "Be brief."},
        {"role": "user", "content": content},
    ]
    async with client(Agent(model, name="helper")) as openai_client:
        await openai_client.chat.completions.create(model="helper", messages=messages)
    first, second = model.requests[0].messages
    assert (first.role, first.text) == ("system", "Be brief.")
    assert second.parts[1] == Image(b"\x89PNG\r\n\x1a\n", media_type="image/png")


async def test_agents_are_listed_as_models() -> None:
    async with client(answering("never")) as openai_client:
        assert [model.id async for model in openai_client.models.list()] == ["helper"]
        assert (await openai_client.models.retrieve("helper")).id == "helper"
        with pytest.raises(openai.NotFoundError):
            await openai_client.models.retrieve("other")


async def test_a_client_that_closes_its_stream_stops_the_model() -> None:
    stuck = Stuck()
    async with client(answering(stuck)) as openai_client:
        stream = await openai_client.chat.completions.create(
            model="helper", messages=ASK, stream=True
        )
        await within(stuck.asked.wait())
        await stream.close()
        await within(stuck.stopped.wait())


async def test_the_client_keeps_the_conversation_and_the_agents_memory_is_not_used() -> None:
    async with client(echoing()) as openai_client:
        for _ in range(2):
            got = await openai_client.chat.completions.create(
                model="echo", messages=[*ASK, {"role": "assistant", "content": "No."}, *ASK]
            )
            assert got.choices[0].message.content == "Is it raining?"


async def test_what_is_said_before_a_tool_is_apart_from_the_answer() -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "rain"

    agent = answering(Say(text="Let me look.", calls=[call("look")]), "Yes.", tools=[look])
    async with client(agent) as openai_client:
        stream = await openai_client.chat.completions.create(
            model="helper", messages=ASK, stream=True
        )
        assert await text_of(stream) == "Let me look.\n\nYes."


async def test_the_embedded_model_talks_to_the_client() -> None:
    agent = Agent("local", name="helper", settings=Settings(max_tokens=8), advisors=[Memory()])
    async with client(agent) as openai_client:
        messages = [{"role": "user", "content": "Say hello."}]
        stream = await openai_client.chat.completions.create(
            model="helper", messages=messages, stream=True, seed=1
        )
        streamed = await text_of(stream)
        got = await openai_client.chat.completions.create(model="helper", messages=messages, seed=1)
    assert streamed.strip()
    assert got.usage.completion_tokens > 0


async def test_reasoning_stands_beside_the_answer() -> None:
    async with client(answering(Say(text="Yes.", thinking="Look out."))) as openai_client:
        got = await openai_client.chat.completions.create(model="helper", messages=ASK)
    message: Any = got.choices[0].message
    assert (message.content, message.reasoning_content) == ("Yes.", "Look out.")


async def test_a_stream_that_keeps_its_text_back_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.http.sse.BEAT", 0.02)

    async def slowly(request: Any) -> Say:
        return Say(text=["1"] * 40, delay=0.005)

    async with serving(Agent(Scripted(slowly), name="helper")) as here:
        body = {
            "model": "helper",
            "messages": ASK,
            "stream": True,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        }
        async with here.stream("/v1/chat/completions", body) as frames:
            text = await within(frames.response.text())
    assert ": \n\n" in text
