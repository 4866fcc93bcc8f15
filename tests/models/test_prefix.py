"""Each request begins with the bytes of the one before, up to what is new: so that a provider's
cache of prompts finds what it has read already."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, get_args

import pytest

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.messages import ThinkingDelta, codec
from retinue.models.anthropic.abilities import NEWEST, abilities_of
from retinue.models.anthropic.cache import BREAKPOINTS, Cache
from retinue.models.anthropic.encode import RequestEncoder as AnthropicEncoder
from retinue.models.gateways import GATEWAYS
from retinue.models.openai.encode import RequestEncoder as ChatEncoder
from retinue.models.responses.encode import RequestEncoder as ResponsesEncoder
from retinue.models.scripted import Say, Scripted, call

MARK = b',"cache_control":{"type":"ephemeral"}'
Encode = Callable[[ChatRequest], bytes]


@tool
def weather(city: str) -> str:
    """The weather now."""
    return f"sunny in {city}"


@tool
def clock() -> str:
    """The time."""
    return "12:00"


def reasoning(provider: str, number: int) -> dict[str, Any]:
    """What a script says of one thought, as the provider would prove it."""
    if provider == "anthropic":
        return {"thinking": f"Thought {number}.", "signature": f"sig{number}"}
    if provider == "openai-responses":
        item = {
            "type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA",
        }  # fmt: skip
        kept = {"output": [item], "following": {"type": "function_call", "id": f"fc_{number}"}}
        return {"deltas": [ThinkingDelta(opaque=json.dumps(kept))]}
    if provider == "openrouter":
        details = [{"type": "reasoning.text", "text": f"Thought {number}."}]
        return {
            "thinking": f"Thought {number}.",
            "deltas": [ThinkingDelta(opaque=json.dumps(details))],
        }
    return {"thinking": f"Thought {number}."}


async def requests(provider: str) -> Sequence[ChatRequest]:
    """Two turns of one conversation: rounds with reasoning, parallel calls and results."""
    script = Scripted(
        Say(
            text="Let me see.", calls=[call("weather", city="Oslo"), call("clock")],
            **reasoning(provider, 1),
        ),
        Say(calls=[call("weather", city="Ærø 🌦")], **reasoning(provider, 2)),
        Say(calls=[call("nonsense", x=1)], **reasoning(provider, 3)),
        Say(text="Sunny.", thinking="Done."),
        Say(calls=[call("clock")], **reasoning(provider, 4)),
        "Noon.",
        provider=provider.removesuffix("-responses"),
    )  # fmt: skip
    agent = Agent(
        script, tools=[weather, clock], advisors=[Memory()], instructions="Be brief."
    )  # fmt: skip
    assert (await agent.run("Weather?", conversation="c")).text == "Sunny."
    assert (await agent.run("And the time?", conversation="c")).text == "Noon."
    return script.requests


def encoder_of(provider: str, cache: Cache = "auto") -> Encode:
    if provider == "anthropic":
        name = "claude-sonnet-4-6"
        anthropic = AnthropicEncoder(name, abilities_of(name), NEWEST, cache)
        return lambda request: anthropic.encode(request).content
    row = GATEWAYS[provider.removesuffix("-responses")]
    if provider.endswith("-responses"):
        takes = row.capabilities_in_responses("gpt-5-mini")
        return ResponsesEncoder("gpt-5-mini", row, takes).encode
    return ChatEncoder("m", row, row.capabilities("m")).encode


def end_of_log(body: bytes) -> int:
    """Where the last message ends, and the next would begin."""
    at = body.find(b'],"tools":[')
    follows = (
        at if at > body.find(b'"input":[' if b'"input":[' in body else b'"messages":[') else -1
    )
    return follows if follows >= 0 else body.rindex(b"]}")


PROVIDERS = ["openai", "deepseek", "openrouter", "mistral", "openai-responses", "anthropic"]


@pytest.mark.rule("R-LOOP-9", "R-STREAM-7", "R-TOOL-5")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_request_goes_on_where_the_one_before_ended(provider: str) -> None:
    encode = encoder_of(provider)
    bodies = [encode(request).replace(MARK, b"") for request in await requests(provider)]
    assert len(bodies) == 6
    for before, after in pairwise(bodies):
        end = end_of_log(before)
        assert after[:end] == before[:end]
        assert after[end : end + 2] == b",{"
        assert after.endswith(before[end:])  # tools and settings, where they stand behind
    assert b"Be brief." in bodies[0][: end_of_log(bodies[0])]


@pytest.mark.rule("R-MEM-1", "R-STREAM-7")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_comes_back_from_a_store_is_sent_in_the_same_bytes(provider: str) -> None:
    last = (await requests(provider))[-1]
    stored = tuple(codec.decode(codec.encode(message)) for message in last.messages)
    encode = encoder_of(provider)
    assert encode(last.with_(messages=stored)) == encode(last)


@pytest.mark.parametrize("extra", [{}, {"cache_control": {"type": "ephemeral"}}])
@pytest.mark.parametrize("cache", get_args(Cache))
async def test_anthropic_is_never_sent_more_breakpoints_than_it_takes(
    cache: Cache, extra: dict[str, Any]
) -> None:
    encode = encoder_of("anthropic", cache)
    asked = [one.with_(settings=Settings(extra=extra)) for one in await requests("anthropic")]
    counts = [encode(request).count(b'"cache_control":') for request in asked]
    assert max(counts) <= BREAKPOINTS
    assert (max(counts) > len(extra)) == (cache != "none")


@pytest.mark.parametrize("cache", ["conversation", "auto"])
async def test_a_request_to_anthropic_reads_what_the_one_before_wrote(cache: Cache) -> None:
    encode = encoder_of("anthropic", cache)
    bodies = [encode(request) for request in await requests("anthropic")]
    for before, after in pairwise(bodies):
        written = before[: before.rindex(MARK)].replace(MARK, b"")
        marked = [after[:at].replace(MARK, b"") for at in places(after)]
        assert written in marked


def places(body: bytes) -> list[int]:
    """Where the marks are."""
    found = [body.find(MARK)]
    while (at := body.find(MARK, found[-1] + 1)) >= 0:
        found.append(at)
    return found
