"""What is sent is what the vendor's documentation wants, field for field."""

from typing import Any

import pytest

from retinue.models import Gemini
from tests.models.calling import ask
from tests.wire.sends.gemini.matrix import MEDIA, TALKS, Case
from tests.wire.sends.gemini.matrix_thoughts import SETTINGS, THOUGHTS
from tests.wire.sends.gemini.matrix_tools import CALLS, OFFERS
from tests.wire.sends.recorder import Recorder, Sent

KEY = "AIza-something"
KIND = "gemini:11:True:True:True:True"  # what the bytes of a message depend on
CASES = [*TALKS, *MEDIA, *OFFERS, *CALLS, *THOUGHTS, *SETTINGS]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def ours(recorder: Recorder, case: Case) -> Sent:
    """The request as this library sends it."""
    model = Gemini(
        case.model, base_url=recorder.url.removesuffix("/v1") + "/v1beta", api_key=KEY,
        **case.options,
    )  # fmt: skip
    answer = await ask(model, *case.messages, settings=case.settings, **case.ours)
    assert answer.text == "ok"
    return recorder.last


def test_the_matrix_is_wide_enough_and_has_no_case_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.rule("R-STREAM-7", "R-TOOL-6")
@pytest.mark.behaviour("B-TH-2", "B-ME-9")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_body_is_the_documented_one(recorder: Recorder, case: Case) -> None:
    sent = await ours(recorder, case)
    assert sent.body == case.sent
    method = "streamGenerateContent" if case.ours.get("stream") else "generateContent"
    assert sent.path == f"/v1beta/models/{case.model}:{method}"


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_key_is_in_its_header_and_never_in_the_address(
    recorder: Recorder, stream: bool
) -> None:
    model = Gemini("gemini-3.8-flash", base_url=recorder.url, api_key=f" {KEY}\n",
                   headers={"x-goog-user-project": "mine"})  # fmt: skip
    await ask(model, stream=stream)
    assert recorder.last.headers["x-goog-api-key"] == KEY
    assert recorder.last.headers["x-goog-user-project"] == "mine"
    assert recorder.last.headers["content-type"] == "application/json"
    assert "authorization" not in recorder.last.headers
    assert KEY not in recorder.last.path + model.url
    assert recorder.last.query == ("alt=sse" if stream else "")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("gemini-3.8-flash", "/v1/models/gemini-3.8-flash:generateContent"),
        ("models/gemini-3.8-flash", "/v1/models/gemini-3.8-flash:generateContent"),
        ("tunedModels/mine", "/v1/tunedModels/mine:generateContent"),
        ("a?b#c", "/v1/models/a?b#c:generateContent"),
    ],
)
async def test_the_model_is_in_the_address(recorder: Recorder, name: str, path: str) -> None:
    await ask(Gemini(name, base_url=recorder.url + "/"))
    assert recorder.last.path == path
    assert "x-goog-api-key" not in recorder.last.headers


async def test_a_message_is_encoded_once_for_each_kind_of_model(recorder: Recorder) -> None:
    case = CALLS[0]
    for name in ("gemini-3.8-flash", "gemini-3.7-flash"):
        await ask(Gemini(name, base_url=recorder.url), *case.messages)
    kept: dict[str, Any] = vars(case.messages[1])
    assert [name for name in kept if name.startswith("gemini:")] == [KIND]
    first = kept[KIND]
    await ask(Gemini("gemini-2.5-pro", base_url=recorder.url), *case.messages)
    assert recorder.last.body["contents"][1]["parts"] != [first.parts]
    assert kept[KIND] is first
    assert vars(case.messages[1].with_(meta={"a": 1})).keys().isdisjoint({KIND})
