"""What is sent is what the vendor's own client library sends, field for field."""

import contextlib
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseInputItemParam
from pydantic import BaseModel, TypeAdapter

from retinue.chains.output import Output
from retinue.models.responses.model import Responses
from tests.models.calling import ask
from tests.wire.sends.recorder import Recorder, Sent
from tests.wire.sends.responses.matrix import CALLS, SETTINGS, TALKS, Case
from tests.wire.sends.responses.matrix_thoughts import THOUGHTS

KEY = "sk-something"
CASES = [*TALKS, *CALLS, *THOUGHTS, *SETTINGS]
ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseInputItemParam])
"""All items that the vendor's client knows, with their fields."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def client(recorder: Recorder, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=recorder.url, api_key=KEY, max_retries=0, **options)


async def theirs(recorder: Recorder, case: Case) -> Sent:
    """The request as the vendor's client sends it."""
    wanted: dict[str, Any] = {"store": case.made.get("store", False), **case.theirs}
    if case.include:
        wanted["include"] = case.include
    async with client(recorder) as theirs:
        answer: Any = await theirs.responses.create(model=case.model, **wanted)
        if wanted.get("stream"):
            async with answer:
                async for _ in answer:
                    pass
    return recorder.last


async def ours(recorder: Recorder, case: Case) -> Sent:
    """The request as this library sends it."""
    model = Responses(case.model, base_url=recorder.url, api_key=KEY, gateway="openai", **case.made)
    await ask(model, *case.messages, settings=case.settings, **case.ours)
    return recorder.last


def test_the_matrix_is_wide_enough_and_has_no_case_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_body_is_the_one_of_the_client_library(recorder: Recorder, case: Case) -> None:
    there = await theirs(recorder, case)
    here = await ours(recorder, case)
    assert here.path == there.path == "/v1/responses"
    assert here.body == there.body
    ITEMS.validate_python(here.body["input"])


async def test_the_headers_are_the_ones_of_the_client_library(recorder: Recorder) -> None:
    async with client(recorder, organization="org-1", project="proj-1") as theirs:
        await theirs.responses.create(model="gpt-5-mini", input="Hi")
    there = recorder.last.headers
    model = Responses(
        "gpt-5-mini", base_url=recorder.url, api_key=f" {KEY}\n", gateway="openai",
        organization="org-1", project="proj-1", headers={"X-Team": "red"},
    )  # fmt: skip
    await ask(model)
    here = recorder.last.headers
    for name in ("authorization", "content-type", "openai-organization", "openai-project"):
        assert here[name] == there[name]
    assert here["x-team"] == "red"


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
        with contextlib.suppress(Exception):  # "ok" is no JSON; the request is what counts
            await theirs.responses.parse(model="gpt-5-mini", input="Hi", text_format=form)
    there = recorder.last.body["text"]
    model = Responses("gpt-5-mini", base_url=recorder.url, api_key=KEY, gateway="openai")
    await ask(model, output=Output.of(form))
    assert recorder.last.body["text"] == there


async def test_every_case_of_the_talks_is_also_right_for_a_stream(recorder: Recorder) -> None:
    for case in TALKS:
        here = await ours(
            recorder, Case(name="", messages=case.messages, ours={"stream": True}, theirs={})
        )
        assert here.body["input"] == case.theirs["input"]
        assert here.body["stream"] is True
