"""OpenAI's own Python client against an advised agent: plain, streaming, tools, typed answers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from retinue import Agent, Layer, Settings, Usage, tool
from retinue.advisors import Memory, Validate
from retinue.messages import Image
from retinue.models.scripted import Say, Scripted, call
from tests.serve.scenes import Stuck, echoing, pay, weather, within
from tests.serve.serving import keys, serving

ASK: list[Any] = [{"role": "user", "content": "Is it raining?"}]
LOCATE: Any = {
    "type": "function",
    "function": {
        "name": "locate",
        "description": "Where the user is.",
        "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}},
    },
}


@asynccontextmanager
async def client(agent: Agent, key: str = "none", **options: Any) -> AsyncIterator[Any]:
    """OpenAI's client of a server that serves the agent."""
    async with (
        serving(agent, **options) as here,
        openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key=key, max_retries=0) as made,
    ):
        yield made


def answering(*steps: Any, **options: Any) -> Agent:
    return Agent(Scripted(*steps), name="helper", **options)


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


async def text_of(stream: Any) -> str:
    return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])


async def all_text(openai_client: Any, *, stream: bool) -> str:
    got = await openai_client.chat.completions.create(model="helper", messages=ASK, stream=stream)
    return await text_of(got) if stream else got.choices[0].message.content


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


class Forecast(BaseModel):
    """What the client wants."""

    city: str
    rain: bool


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


async def test_text_that_was_sent_and_taken_back_ends_the_stream_with_an_error() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Once more."))

    agent = answering("first", "second", advisors=[Layer("Again", turn=again)])
    async with client(agent) as openai_client:
        stream = await openai_client.chat.completions.create(
            model="helper", messages=ASK, stream=True
        )
        with pytest.raises(openai.APIError, match="gave up an answer"):
            await text_of(stream)


async def test_images_and_instructions_reach_the_model() -> None:
    model = Scripted("A dot.")
    content: Sequence[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
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


async def test_what_is_wrong_comes_as_the_clients_own_errors() -> None:
    access, secrets = keys("ann")
    agent = answering("never", tools=[pay])
    async with client(agent, key=secrets["ann"], access=access) as openai_client:
        with pytest.raises(openai.NotFoundError, match="no agent 'gpt-9'"):
            await openai_client.chat.completions.create(model="gpt-9", messages=ASK)
        with pytest.raises(openai.BadRequestError, match="empty"):
            await openai_client.chat.completions.create(
                model="helper", messages=[{"role": "user", "content": ""}]
            )
        with pytest.raises(openai.BadRequestError, match="no call 'x'"):
            await openai_client.chat.completions.create(
                model="helper",
                messages=[*ASK, {"role": "tool", "tool_call_id": "x", "content": "?"}],
            )
    async with client(agent, key="wrong", access=access) as openai_client:
        with pytest.raises(openai.AuthenticationError):
            await openai_client.chat.completions.create(model="helper", messages=ASK)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_is_an_error_and_never_text_that_looks_like_an_answer(
    stream: bool,
) -> None:
    agent = answering(Say(text="half an", error=RuntimeError("at db.internal")))
    async with client(agent) as openai_client:
        with pytest.raises(openai.APIError, match="The server failed") as caught:
            await all_text(openai_client, stream=stream)
    assert "db.internal" not in str(caught.value)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_pause_for_a_person_is_an_error_that_says_where_to_answer(stream: bool) -> None:
    agent = answering(call("pay", amount=5), tools=[pay], gate="sensitive")
    async with client(agent) as openai_client:
        with pytest.raises(openai.APIError, match="/v1/turns"):
            await all_text(openai_client, stream=stream)


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
