"""What OpenAI's own Python client hears where something cannot be, or goes wrong."""

from typing import Any

import openai
import pytest

from retinue import Agent, Layer
from retinue.models.scripted import Say, Scripted, call
from tests.serve.openai_scenes import ASK, LOCATE, Forecast, all_text, answering, client, text_of
from tests.serve.scenes import pay, weather
from tests.serve.serving import keys, serving


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


@pytest.mark.parametrize(
    "step", [call("pay", amount=5), Say(text="half an", error=RuntimeError("lost"))]
)
async def test_a_turn_that_has_run_is_not_run_again_by_a_client_that_tries_again(
    step: Any,
) -> None:
    model = Scripted(step, repeat=True)
    agent = Agent(model, name="helper", tools=[pay], gate="sensitive")
    async with (
        serving(agent) as here,
        openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key="none") as openai_client,
    ):
        with pytest.raises(openai.APIStatusError):
            await openai_client.chat.completions.create(model="helper", messages=ASK)
    assert len(model.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_half_a_character_of_a_model_fails_no_answer(stream: bool) -> None:
    model = Scripted(Say(text=["half \ud800"], thinking="\ud800"))
    async with client(Agent(model, name="helper")) as openai_client:
        assert await all_text(openai_client, stream=stream) == "half \ufffd"


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("n", 2, "leave `n` out"),
        ("logprobs", True, "no `logprobs`"),
        ("top_logprobs", 3, "no `logprobs`"),
        ("modalities", ["text", "audio"], "answers in text"),
        ("functions", [{"name": "f", "parameters": {}}], "offer them as those"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}, "no tool is called so"),
        ("tool_choice", "f", "tool_choice"),
    ],
)
async def test_what_a_client_would_wait_for_in_vain_is_refused(
    field: str, value: Any, complaint: str
) -> None:
    model = Scripted("never")
    async with client(Agent(model, name="helper", tools=[weather])) as openai_client:
        with pytest.raises(openai.BadRequestError, match=complaint):
            await openai_client.chat.completions.create(
                model="helper", messages=ASK, tools=[LOCATE], extra_body={field: value}
            )
    assert model.requests == []


async def test_wishes_that_an_agent_does_not_know_are_let_pass() -> None:
    async with client(answering("Yes.")) as openai_client:
        got = await openai_client.chat.completions.create(
            model="helper", messages=ASK, n=1, logprobs=False, modalities=["text"], user="u",
            frequency_penalty=0.5, store=True, metadata={"a": "b"}, service_tier="auto",
        )  # fmt: skip
    assert got.choices[0].message.content == "Yes."


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_without_the_form_asked_for_is_an_error(stream: bool) -> None:
    async with client(Agent(Scripted("No JSON.", repeat=True), name="helper")) as openai_client:
        with pytest.raises(openai.APIError, match="not of the form asked for"):
            await all_text(openai_client, stream=stream, response_format={"type": "json_object"})


async def test_an_answer_that_was_cut_off_in_its_form_says_so() -> None:
    cut = Say(text='{"city": "Os', finish="length")
    async with client(Agent(Scripted(cut, repeat=True), name="helper")) as openai_client:
        with pytest.raises(openai.LengthFinishReasonError):
            await openai_client.chat.completions.parse(
                model="helper", messages=ASK, response_format=Forecast
            )


async def test_a_result_belongs_to_one_call_and_a_refusal_is_what_was_said() -> None:
    model = Scripted("Yes.")
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "locate", "arguments": "{}"}}
        ],
    }
    result = {"role": "tool", "tool_call_id": "a", "content": "Oslo"}
    async with client(Agent(model, name="helper")) as openai_client:
        with pytest.raises(openai.BadRequestError, match=r"messages\[3\]: no call 'a'"):
            await openai_client.chat.completions.create(
                model="helper", messages=[*ASK, asked, result, result]
            )
        refused = {"role": "assistant", "content": None, "refusal": "I may not."}
        await openai_client.chat.completions.create(
            model="helper", messages=[*ASK, asked, result, refused, *ASK]
        )
    assert [m.text for m in model.requests[0].messages if m.role == "assistant"][-1] == "I may not."
