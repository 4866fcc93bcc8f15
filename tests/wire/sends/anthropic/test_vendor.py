"""What is sent is what the vendor's own client library sends, field for field."""

from typing import Any

import anthropic
import pytest

from retinue.models.anthropic.abilities import NEWEST
from retinue.models.anthropic.model import Anthropic
from tests.models.calling import ask
from tests.wire.sends.anthropic.matrix import MEDIA, TALKS, Case
from tests.wire.sends.anthropic.matrix_thoughts import SETTINGS, THOUGHTS
from tests.wire.sends.anthropic.matrix_tools import CALLS
from tests.wire.sends.recorder import Recorder, Sent

KEY = "sk-something"
CASES = [*TALKS, *MEDIA, *CALLS, *THOUGHTS, *SETTINGS]
LENGTH = 1000

# The client warns of models that are old, and of thinking with a budget.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def theirs(recorder: Recorder, case: Case) -> Sent:
    """The request as the vendor's client sends it."""
    wanted: dict[str, Any] = {"max_tokens": LENGTH, **case.theirs}
    async with anthropic.AsyncAnthropic(
        base_url=recorder.url.removesuffix("/v1"), api_key=KEY, max_retries=0
    ) as client:
        answer: Any = await client.messages.create(model=case.model, **wanted)
        if wanted.get("stream"):
            async with answer:
                async for _ in answer:
                    pass
    return recorder.last


async def ours(recorder: Recorder, case: Case) -> Sent:
    """The request as this library sends it."""
    model = Anthropic(
        case.model, base_url=recorder.url, api_key=KEY, cache="none", version=case.version
    )
    settings = case.settings
    if settings.max_tokens is None:
        settings = settings.over(type(settings)(max_tokens=LENGTH))
    await ask(model, *case.messages, settings=settings, **case.ours)
    return recorder.last


def spelt_out(body: dict[str, Any]) -> dict[str, Any]:
    """The body with texts as blocks: a text alone is the vendor's shorthand for one."""

    def blocks(content: Any) -> Any:
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    messages = [{**m, "content": blocks(m["content"])} for m in body["messages"]]
    system = {"system": blocks(body["system"])} if "system" in body else {}
    return {**body, **system, "messages": messages, "stream": body.get("stream", False)}


def test_the_matrix_is_wide_enough_and_has_no_case_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_body_is_the_one_of_the_client_library(recorder: Recorder, case: Case) -> None:
    there = await theirs(recorder, case)
    here = await ours(recorder, case)
    assert here.path == there.path == "/v1/messages"
    assert spelt_out(here.body) == spelt_out(there.body)


async def test_the_headers_are_the_ones_of_the_client_library(recorder: Recorder) -> None:
    there = (await theirs(recorder, TALKS[0])).headers
    here = (await ours(recorder, TALKS[0])).headers
    for name in ("authorization", "anthropic-version", "content-type"):
        assert here[name] == there[name]
    assert here["anthropic-version"] == NEWEST
    assert "x-api-key" not in here


async def test_the_older_version_gets_the_key_in_its_own_header(recorder: Recorder) -> None:
    model = Anthropic(
        "claude-haiku-4-5", base_url=recorder.url, api_key=f" {KEY}\n", version="2023-06-01",
        headers={"anthropic-beta": "files-api-2025-04-14"},
    )  # fmt: skip
    await ask(model)
    assert recorder.last.headers["x-api-key"] == KEY
    assert recorder.last.headers["anthropic-version"] == "2023-06-01"
    assert recorder.last.headers["anthropic-beta"] == "files-api-2025-04-14"
    assert "authorization" not in recorder.last.headers
