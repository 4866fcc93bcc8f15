"""A server of the Responses format on this machine: it answers by script, and is strict.

It refuses what the vendor refuses: fields that it does not know, calls without a result and
results without a call, reasoning that is not as it was given, or stands without the item that it
led to, and stored answers that were never stored.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec import Struct

from tests.models.listening import listening
from tests.wire.sends.recorder import Sent

KEY = "sk-vendor-key"
MODEL = "gpt-5-mini"
FIELDS = {
    "include", "input", "instructions", "max_output_tokens", "metadata", "model",
    "parallel_tool_calls", "previous_response_id", "reasoning", "store", "stream", "temperature",
    "text", "tool_choice", "tools", "top_p",
}  # fmt: skip
Item = dict[str, Any]


class Step(Struct):
    """One answer.

    Attributes:
        items: what it holds; ids are given here.
        status: the HTTP status of a refusal instead of an answer.
        error: an error after this many events of the stream.
        hold: after this many events, waits until the reader has left.
        incomplete: why the answer is cut off.
    """

    items: list[Item] = []
    status: int = 200
    error: int | None = None
    hold: int | None = None
    incomplete: str | None = None


def answer(*items: Item, **options: Any) -> Step:
    """A step of these items."""
    return Step(items=list(items), **options)


def thinks(summary: str = "") -> Item:
    """Reasoning, with a summary of it."""
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    return {"type": "reasoning", "summary": parts}


def says(text: str, **fields: Any) -> Item:
    """A message."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message", "role": "assistant", "status": "completed", "content": [part], **fields,
    }  # fmt: skip


def asks(name: str, call_id: str, **arguments: Any) -> Item:
    """A call of a tool."""
    return {
        "type": "function_call", "call_id": call_id, "name": name, "status": "completed",
        "arguments": json.dumps(arguments),
    }  # fmt: skip


class Refusal(Exception):
    """The request is not as it should be."""


class Vendor:
    """What it is asked, and what it answers.

    Attributes:
        url: the base URL.
        requests: what has arrived, the last one at the end.
        refusals: what it found wrong.
        holding: set while an answer waits in the middle.
        left: set when the reader of such an answer has gone.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self.url = ""
        self.requests: list[Sent] = []
        self.refusals: list[str] = []
        self.holding = asyncio.Event()
        self.left = asyncio.Event()
        self._steps = iter(steps)
        self._given: dict[str, tuple[Item, Item | None]] = {}  # by id: the item, and what follows
        self._stored: dict[str, list[Item]] = {}  # by id of the answer
        self._count = 0

    def input(self, number: int = -1) -> list[Item]:
        """The items of a request."""
        return self.requests[number].body["input"]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Sent(request.path, headers, body, await request.read()))
        try:
            self._check(request, body)
        except Refusal as refusal:
            self.refusals.append(str(refusal))
            return web.json_response({"error": {"message": str(refusal)}}, status=400)
        step = next(self._steps, None)
        if step is None or step.status != 200:
            told = {"error": {"message": "no more" if step is None else "as the script says"}}
            return web.json_response(told, status=400 if step is None else step.status)
        response = self._response(step, body)
        if not body.get("stream"):
            return web.json_response(response)
        return await self._stream(request, response, step)

    # -- the answer -----------------------------------------------------------------------------

    def _response(self, step: Step, body: dict[str, Any]) -> dict[str, Any]:
        encrypted = "reasoning.encrypted_content" in body.get("include", ())
        output = [self._named(item, encrypted) for item in step.items]
        for item, following in zip(output, [*output[1:], None], strict=True):
            self._given[item["id"]] = (item, following)
        self._count += 1
        response_id = f"resp_{self._count}"
        if body.get("store", True):
            self._stored[response_id] = output
        return {
            "id": response_id,
            "object": "response",
            "model": body["model"],
            "status": "incomplete" if step.incomplete else "completed",
            "error": None,
            "incomplete_details": {"reason": step.incomplete} if step.incomplete else None,
            "output": output,
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 6,
                "output_tokens_details": {"reasoning_tokens": 2},
                "total_tokens": 16,
            },
        }

    def _named(self, item: Item, encrypted: bool) -> Item:
        self._count += 1
        named = {"id": f"{item['type']}_{self._count}", **item}
        if item["type"] == "reasoning" and encrypted:
            named["encrypted_content"] = f"gAAAA-{self._count}"
        return named

    async def _stream(
        self, request: web.Request, response: dict[str, Any], step: Step
    ) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        try:
            for number, event in enumerate(events_of(response)):
                if number == step.hold:
                    self.holding.set()
                    await asyncio.sleep(60)  # ends when the reader leaves
                if number == step.error:
                    event = {"type": "error", "code": "server_error", "message": "It broke."}
                data = json.dumps({**event, "sequence_number": number})
                await reply.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
                if number == step.error:
                    break
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise
        return reply

    # -- the request ----------------------------------------------------------------------------

    def _check(self, request: web.Request, body: dict[str, Any]) -> None:
        headers = request.headers
        if KEY not in (headers.get("authorization", "")[7:], headers.get("api-key")):
            raise Refusal("Incorrect API key provided.")
        if unknown := set(body) - FIELDS:
            raise Refusal(f"Unknown parameter: {sorted(unknown)}.")
        items: list[Item] = body["input"]
        if not items:
            raise Refusal("The input is empty.")
        before = self._before(body.get("previous_response_id"))
        self._check_calls([*before, *items])
        for item, following in zip(items, [*items[1:], {}], strict=True):
            if item.get("type") == "reasoning":
                self._check_reasoning(item, following, stored=body.get("store", True))

    def _before(self, previous: str | None) -> list[Item]:
        if previous is None:
            return []
        if previous not in self._stored:
            raise Refusal(f"Previous response with id '{previous}' not found.")
        return self._stored[previous]

    def _check_calls(self, items: list[Item]) -> None:
        calls = [i["call_id"] for i in items if i.get("type") == "function_call"]
        results = [i["call_id"] for i in items if i.get("type") == "function_call_output"]
        for call_id in calls:
            if call_id not in results:
                raise Refusal(f"No tool output found for function call {call_id}.")
        for call_id in results:
            if call_id not in calls:
                raise Refusal(f"No tool call found for function call output {call_id}.")

    def _check_reasoning(self, item: Item, following: Item, *, stored: bool) -> None:
        given, expected = self._given.get(item["id"], (None, None))
        if item != given:
            raise Refusal(f"Item '{item['id']}' of type 'reasoning' is not as it was.")
        if not stored and "encrypted_content" not in item:
            raise Refusal(f"Item with id '{item['id']}' not found.")
        if expected is not None and following.get("id") != expected["id"]:
            raise Refusal(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required"
                " following item."
            )


def events_of(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that tell of an answer, as the vendor sends them."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(response["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        empty = {
            name: {"content": [], "summary": [], "arguments": "", "input": ""}.get(name, value)
            for name, value in item.items()
            if name != "encrypted_content"
        }
        yield {"type": "response.output_item.added", "output_index": place, "item": empty}
        for kind, name, text in _growth(item):
            for start in range(0, len(text), 5):
                yield {"type": f"response.{kind}.delta", **at, "delta": text[start : start + 5]}
            yield {"type": f"response.{kind}.done", **at, name: text}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _growth(item: Item) -> Iterator[tuple[str, str, str]]:
    for part in item.get("summary", ()):
        yield "reasoning_summary_text", "text", part["text"]
    for part in item.get("content", ()):
        if part["type"] == "refusal":
            yield "refusal", "refusal", part["refusal"]
        else:
            kind = "reasoning_text" if part["type"] == "reasoning_text" else "output_text"
            yield kind, "text", part["text"]
    if item["type"] == "function_call":
        yield "function_call_arguments", "arguments", item["arguments"]
    if item["type"] == "custom_tool_call":
        yield "custom_tool_call_input", "input", item["input"]


@asynccontextmanager
async def vendor(*steps: Step) -> AsyncIterator[Vendor]:
    """A server that answers these steps, one a request, until the end of the block."""
    serving = Vendor(steps)
    async with listening("/v1/responses", serving.handle) as address:
        serving.url = f"{address}/v1"
        yield serving
