"""What is sent is what the vendor's own client library sends, field for field."""

import re
from typing import Any

import google.genai as genai
import pytest
from google.genai import types

from tests.wire.sends.gemini.matrix import Case
from tests.wire.sends.gemini.test_requests import CASES, KEY, ours
from tests.wire.sends.recorder import Recorder, Sent

_CODED = ("data", "thoughtSignature")  # fields of bytes
_OURS = frozenset({"contents", "generationConfig"})  # what is no part of the client's config

# The client inherits from a class of aiohttp that does not like it.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


async def theirs(recorder: Recorder, case: Case) -> Sent:
    """The request as the vendor's client sends it, said in the client's own types."""
    body = case.sent
    config: dict[str, Any] = dict(body.get("generationConfig", {}))
    config |= {name: value for name, value in body.items() if name not in _OURS}
    place = types.HttpOptions(base_url=recorder.url.removesuffix("/v1"), api_version="v1beta")
    client = genai.Client(api_key=KEY, http_options=place)
    wanted: dict[str, Any] = {
        "model": case.model,
        "contents": [types.Content.model_validate(turn) for turn in body["contents"]],
        "config": types.GenerateContentConfig.model_validate(config),
    }
    async with client.aio as models:
        if case.ours.get("stream"):
            async for _ in await models.models.generate_content_stream(**wanted):
                pass
        else:
            await models.models.generate_content(**wanted)
    return recorder.last


def spelt_alike(value: Any, schema: bool = False) -> Any:
    """The body without differences of spelling: the vendor takes names and base64 of both kinds.

    Schemas are the user's own words and stay as they are.
    """
    if isinstance(value, list):
        return [spelt_alike(each, schema) for each in value]
    if not isinstance(value, dict) or schema:
        return value
    alike: dict[str, Any] = {}
    for name, held in value.items():
        name = re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
        if name in _CODED and isinstance(held, str):
            held = held.replace("-", "+").replace("_", "/")
        alike[name] = spelt_alike(held, name.endswith("JsonSchema") or name in ("args", "response"))
    return alike


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_body_is_the_one_of_the_client_library(recorder: Recorder, case: Case) -> None:
    there = await theirs(recorder, case)
    here = await ours(recorder, case)
    assert here.path == there.path
    assert here.query == there.query
    # The client sends an empty configuration where there is none.
    assert spelt_alike({"generationConfig": {}} | here.body) == spelt_alike(there.body)


async def test_the_headers_are_the_ones_of_the_client_library(recorder: Recorder) -> None:
    there = (await theirs(recorder, CASES[0])).headers
    here = (await ours(recorder, CASES[0])).headers
    for name in ("x-goog-api-key", "content-type"):
        assert here[name] == there[name]
