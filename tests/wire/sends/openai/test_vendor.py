"""What is sent is what the vendor's own client library sends, field for field."""

import contextlib
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel, TypeAdapter, ValidationError

from retinue.chains.output import Output
from retinue.models.openai.model import OpenAI
from tests.models.calling import BOTH, ask
from tests.wire.sends.openai.encoding import KEY
from tests.wire.sends.openai.matrix import CALLS, CASES, HI, MEDIA, TALKS, Case
from tests.wire.sends.recorder import Recorder, Sent

MESSAGES: TypeAdapter[list[Any]] = TypeAdapter(list[ChatCompletionMessageParam])
"""All messages that the vendor's client knows, with their fields."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def client(recorder: Recorder, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=recorder.url, api_key=KEY, max_retries=0, **options)


def model_at(recorder: Recorder, name: str = "gpt-4.1", **options: Any) -> OpenAI:
    options = {"api_key": KEY, "gateway": "openai"} | options
    return OpenAI(name, base_url=recorder.url, **options)


async def theirs(recorder: Recorder, case: Case) -> Sent:
    """The request as the vendor's client sends it."""
    wanted = dict(case.theirs)
    if wanted.get("stream"):
        wanted["stream_options"] = {"include_usage": True}  # else no tokens are counted
    async with client(recorder) as theirs:
        answer: Any = await theirs.chat.completions.create(model=case.model, **wanted)
        if wanted.get("stream"):
            async with answer:
                async for _ in answer:
                    pass
    return recorder.last


async def ours(recorder: Recorder, case: Case, **further: Any) -> Sent:
    """The request as this library sends it."""
    model = model_at(recorder, case.model)
    await ask(model, *case.messages, settings=case.settings, **(case.ours | further))
    return recorder.last


def test_the_matrix_is_wide_enough_and_has_no_case_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_body_is_the_one_of_the_client_library(recorder: Recorder, case: Case) -> None:
    there = await theirs(recorder, case)
    here = await ours(recorder, case)
    assert len(recorder.requests) == 2
    assert here.path == there.path == "/v1/chat/completions"
    assert here.body == there.body
    MESSAGES.validate_python(here.body["messages"])


async def test_the_messages_of_a_stream_are_those_of_a_whole_answer(recorder: Recorder) -> None:
    for case in (*TALKS, *MEDIA, *CALLS):
        here = await ours(recorder, case, stream=True)
        assert here.body["messages"] == case.theirs["messages"]
        assert here.body["stream"] is True
        assert here.body["stream_options"] == {"include_usage": True}


@BOTH
async def test_the_headers_are_the_ones_of_the_client_library(
    recorder: Recorder, stream: bool
) -> None:
    async with client(recorder, organization="org-1", project="proj-1") as theirs:
        await theirs.chat.completions.create(
            model="gpt-4.1", messages=[{"role": "user", "content": "Hi"}], stream=stream
        )
    there = recorder.last.headers
    model = model_at(
        recorder,
        api_key=f" {KEY}\n",
        organization="org-1",
        project="proj-1",
        headers={"X-Team": "red"},
    )
    await ask(model, stream=stream)
    here = recorder.last.headers
    for name in ("authorization", "content-type", "openai-organization", "openai-project"):
        assert here[name] == there[name]
    assert here["x-team"] == "red"


async def test_nobody_is_billed_who_is_not_named(recorder: Recorder) -> None:
    here = (await ours(recorder, Case(name="", theirs={}))).headers
    assert not {"openai-organization", "openai-project"} & set(here)


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


class Family(BaseModel):
    people: list[Person]
    head: Person | None


@pytest.mark.parametrize("form", [Person, Family])
async def test_the_form_of_an_answer_is_the_one_of_the_client_library(
    recorder: Recorder, form: type[BaseModel]
) -> None:
    async with client(recorder) as theirs:
        with contextlib.suppress(ValidationError):  # "ok" is no JSON; the request is what counts
            await theirs.chat.completions.parse(
                model="gpt-4.1",
                messages=[{"role": "user", "content": "Hi"}],
                response_format=form,
            )
    there = recorder.last.body
    await ask(model_at(recorder), "Hi", output=Output.of(form))
    assert len(recorder.requests) == 2
    assert recorder.last.body["response_format"] == there["response_format"]
    assert recorder.last.body["messages"] == there["messages"] == [HI]
