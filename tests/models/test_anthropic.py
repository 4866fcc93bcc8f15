"""Making a Claude model, and what its provider can do to a call."""

from typing import Any

import pytest

from retinue.errors import (
    ConfigError,
    MissingKeyError,
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    UnknownModelError,
    classify,
)
from retinue.messages import Usage
from retinue.models import Anthropic, Model, resolve
from retinue.models.anthropic.abilities import MODELS, UNKNOWN
from retinue.models.base import ModelRetry, generate
from retinue.models.capabilities import Capabilities
from tests.models.anthropic_rig import KEY, claude
from tests.models.calling import BOTH, TEXT, Heard, ask, chat


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# -- making one ---------------------------------------------------------------------------------


def test_a_text_names_a_claude(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-the-environment")
    model = resolve("anthropic:claude-haiku-4-5")
    assert isinstance(model, Anthropic)
    assert isinstance(model, Model)
    assert (model.provider, model.name) == ("anthropic", "claude-haiku-4-5")
    assert "sk-from" not in repr(model)
    assert "api.anthropic.com" in repr(model)
    with pytest.raises(UnknownModelError, match="write 'anthropic:claude-haiku-4-5'"):
        resolve("claude-haiku-4-5")


def test_a_missing_key_is_told_by_the_name_of_its_variable() -> None:
    with pytest.raises(MissingKeyError, match="anthropic needs a key: set ANTHROPIC_API_KEY"):
        resolve("anthropic:claude-haiku-4-5")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://localhost:1", "http://localhost:1/v1/messages"),
        ("http://localhost:1/", "http://localhost:1/v1/messages"),
        ("http://localhost:1/v1", "http://localhost:1/v1/messages"),
        ("http://localhost:1/anthropic/v1/messages", "http://localhost:1/anthropic/v1/messages"),
    ],
)
def test_an_address_is_taken_with_and_without_its_path(
    address: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Anthropic("m", base_url=address).url == url
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    assert Anthropic("m", api_key="sk-something").url == url


def test_an_address_of_the_environment_that_cannot_be_one_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "localhost:1")
    with pytest.raises(ConfigError, match="ANTHROPIC_BASE_URL must look like"):
        Anthropic("m", api_key="sk-something")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "no model name"),
        ({"base_url": "localhost:1"}, "base_url must look like"),
        ({"base_url": "https://me:pass@x.invalid"}, "must not hold a user"),
        ({"timeout": 0}, "timeout must be"),
        ({"cache": "all"}, "cache must be one of auto, none, system, tools, conversation"),
        ({"version": "newest"}, "version must be a date such as '2026-10-21'"),
        ({"api_key": "sk-hiddén"}, "holds characters that no key has"),
    ],
)
def test_what_cannot_work_is_refused_when_the_model_is_made(
    options: dict[str, Any], words: str
) -> None:
    options = {"name": "m", "api_key": "sk-something"} | options
    with pytest.raises(ConfigError, match=words) as caught:
        Anthropic(**options)
    assert "hidd" not in str(caught.value)


def test_what_a_model_takes_is_declared_or_given() -> None:
    assert Anthropic("claude-opus-5-5", api_key="k").capabilities == MODELS["claude-opus-5-5"]
    unknown = Anthropic("claude-opus-9", api_key="k", version="2023-06-01")
    assert unknown.capabilities == UNKNOWN
    mine = Anthropic("claude-opus-9", api_key="k", capabilities=Capabilities(output=100))
    assert mine.capabilities.output == 100


# -- refusals -----------------------------------------------------------------------------------

STATUS = {
    400: (ModelRefused, "semantic", "prompt is too long"),
    401: (ModelRefused, "environment", "invalid x-api-key"),
    402: (ModelRefused, "environment", "credit balance is too low"),
    403: (ModelRefused, "environment", "does not have permission"),
    404: (ModelRefused, "semantic", "model: not found"),
    408: (ModelOverloaded, "transient", "Something went wrong"),
    409: (ModelOverloaded, "transient", "Something went wrong"),
    413: (ModelRefused, "semantic", "exceeds the maximum size"),
    429: (ModelOverloaded, "transient", "rate limit"),
    500: (ModelOverloaded, "transient", "Internal server error"),
    502: (ModelOverloaded, "transient", "502 Bad Gateway"),
    529: (ModelOverloaded, "transient", "Overloaded"),
}


@pytest.mark.rule("R-FAIL-1", "R-FAIL-2", "R-FAIL-3")
@BOTH
@pytest.mark.parametrize("status", STATUS)
async def test_a_refusal_says_who_what_and_what_to_do(
    rig: Any, session: str, status: int, stream: bool
) -> None:
    kind, failure, words = STATUS[status]
    rig.script(session, [{"status": status}])
    with pytest.raises(ModelError) as caught:
        await ask(claude(rig, session), stream=stream)
    error = caught.value
    assert type(error) is kind
    assert error.status == status
    assert error.retryable is (kind is ModelOverloaded)
    assert classify(error) == failure
    text = str(error)
    assert text.startswith("anthropic (127.0.0.1:")
    assert f"HTTP {status}" in text
    assert words in text
    assert KEY not in text


async def test_an_account_without_credit_is_a_persons_business(rig: Any, session: str) -> None:
    words = "Your credit balance is too low to access the Anthropic API."
    rig.script(session, [{"status": 400, "error": {"message": words}}])
    with pytest.raises(ModelRefused, match="Top up") as caught:
        await ask(claude(rig, session))
    assert classify(caught.value) == "environment"


async def test_a_wrong_key_is_told_by_where_it_comes_from(
    rig: Any, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", rig.anthropic(session))
    with pytest.raises(ModelRefused, match="Check ANTHROPIC_API_KEY") as caught:
        await ask(claude(rig, session, api_key=None))
    assert "sk-ant-of-nobody" not in str(caught.value)


@pytest.mark.rule("R-FAIL-2")
async def test_a_failure_before_the_first_token_is_tried_again(rig: Any, session: str) -> None:
    rig.script(
        session,
        [
            {
                "fail": {"times": 1, "status": 529, "retry_after": 0},
                "text": TEXT,
                "usage": {"input": 7, "output": 3},
            }
        ],
    )
    heard = Heard()
    model = claude(rig, session)
    await generate(model, chat("hi", stream=True), heard, ModelRetry(base=0))
    assert heard.text == TEXT
    assert heard.message.usage == Usage(7, 3, 0, 0)


# -- faults of the way --------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "step",
    [
        {"split": 1},
        {"split": "utf8"},
        {"eol": "\r\n"},
        {"eol": "\r"},
        {"pings": True},
        {"comments": True},
        {"ids": True},
        {"multiline": True},
        {"no_space": True},
        {"ascii": True},
        {"gzip": True},
        {"no_end": "done"},
    ],
    ids=str,
)
@pytest.mark.behaviour("B-ST-11")
async def test_an_answer_is_read_however_it_is_framed(
    rig: Any, session: str, step: dict[str, Any], stream: bool
) -> None:
    rig.script(session, [step | {"text": TEXT, "reasoning": "Hm."}])
    answer = await ask(claude(rig, session), stream=stream)
    assert answer.text == TEXT
    assert answer.message.thinking == "Hm."
    assert answer.message.finish == "stop"
    assert answer.meta["request_id"].startswith("req_")


@pytest.mark.behaviour("B-ST-12")
@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    ("step", "kind", "text"),
    [
        ({"error_at": 4, "error": {"message": "boom"}}, ModelOverloaded, "ab"),
        ({"close": 700}, ModelBroken, None),
        ({"close": 1000, "text": {"fill": 100_000}}, ModelUnreachable, ""),
        ({"no_end": "finish"}, ModelBroken, "abc"),
        ({"no_end": 1}, ModelUnreachable, ""),
        ({"html": True}, ModelBroken, ""),
    ],
    ids=str,
)
async def test_a_stream_that_breaks_is_an_error_after_what_was_said(
    rig: Any, session: str, step: dict[str, Any], kind: type[ModelError], text: str | None
) -> None:
    rig.script(session, [{"text": list("abc")} | step])
    heard = Heard()
    with pytest.raises(ModelError) as caught:
        await claude(rig, session).generate(chat("hi", stream=True), heard)
    assert type(caught.value) is kind
    assert text is None or heard.text == text


@pytest.mark.parametrize(
    ("how", "usage"),
    [
        ("last", Usage(9, 4, 3, 1, 2)),
        ("output_only", Usage(9, 4, 3, 1)),
        ("delta_only", Usage(9, 4, 3, 1, 2)),
        ("zeros", None),
        ("absent", None),
    ],
)
@pytest.mark.behaviour("B-US-1", "B-US-2")
async def test_counts_are_the_same_however_they_are_reported(
    rig: Any, session: str, how: str, usage: Usage | None
) -> None:
    counts = {"input": 9, "output": 4, "cache_read": 3, "cache_write": 1, "reasoning": 2}
    rig.script(session, [{"text": "x", "usage_as": how, "usage": counts}])
    answer = await ask(claude(rig, session), stream=True)
    assert answer.message.usage == usage
