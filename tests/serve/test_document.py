"""The OpenAPI document is true to the wire: what it describes, and what comes back, agree.

Requests are made from the document, good ones and bad ones. No answer is an error of the server,
and each is one that the document has.
"""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import retinue.serve
from retinue import Agent, Usage
from retinue.advisors import Memory
from retinue.chains import ChatRequest
from retinue.models.scripted import Say, Scripted, call
from retinue.serve import agui, openai_api
from retinue.serve.http import about, conversations, turns
from retinue.serve.http.operations import Operation
from retinue.serve.http.server import Server
from retinue.stores import InMemory
from tests.serve.scenes import BOUND, echo, weather

CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
OPERATIONS = (
    *turns.OPERATIONS,
    *conversations.OPERATIONS,
    *openai_api.OPERATIONS,
    *agui.OPERATIONS,
    *about.OPERATIONS,
)
CASES = [
    pytest.param(one, mode, id=f"{one.name}-{mode.value}")
    for one in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or one.body is not None or one.query is not None
]


def looking(request: ChatRequest) -> Say:
    """Says what it is told, but where it is told to look, it looks first."""
    if request.messages[-1].text != "Look.":
        return echo(request)
    usage = Usage(input=7, output=3, cache_read=2)
    return Say(thinking="Hm.", text="Well.", calls=[call("weather", city="Oslo")], usage=usage)


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """The document of a server that runs in a thread of its own."""
    model = Scripted(looking, repeat=True)
    agent = Agent(model, tools=[weather], advisors=[Memory(InMemory())], name="echo")
    app = retinue.serve.app(agent)
    ready = threading.Event()
    server = Server(app, app.state.gateway, port=0, on_ready=lambda _: ready.set(), grace=0.1)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    assert ready.wait(BOUND)
    yield schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    loop.call_soon_threadsafe(server.drain)
    thread.join(BOUND)
    loop.close()


@pytest.mark.parametrize(("one", "mode"), CASES)
def test_what_the_document_says_is_what_comes(api: Any, one: Operation, mode: Any) -> None:
    described = api[one.path][one.method.lower()]

    @settings(max_examples=15)
    @given(described.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        response = case.call(timeout=BOUND)
        assert response.status_code < 500, response.text
        case.validate_response(response, checks=CHECKS)

    holds()


def test_every_event_of_a_stream_is_one_that_the_document_has(api: Any) -> None:
    body = {"input": "Look.", "stream": True, "measure": True}
    case = api["/v1/turns"]["POST"].Case(body=body, media_type="application/json")
    response = case.call(timeout=BOUND)
    assert response.headers["content-type"] == ["text/event-stream; charset=utf-8"]
    for kind in ("thinking", "tool_arguments", "tool_finished", "usage", "layers_timed"):
        assert f"event: {kind}\n" in response.text
    case.validate_response(response, checks=CHECKS)
