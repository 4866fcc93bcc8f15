"""A server on this machine that keeps what it is sent and answers politely."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec import Struct

ANSWER = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
STREAM = (
    b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)

CLAUDE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
CLAUDE_STREAM = (
    b'event: message_start\ndata: {"type":"message_start","message":{"type":"message",'
    b'"role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
    ],
}
RESPONSE_STREAM = (
    b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"resp_1",'
    b'"object":"response","status":"completed","output":[]}}\n\n'
)

GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
    ],
}
GEMINI_STREAM = (
    b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},'
    b'"finishReason":"STOP"}]}\r\n\r\n'
)


class Sent(Struct, frozen=True):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    query: str = ""


class Recorder:
    """What has arrived at `url`, the last one at the end."""

    def __init__(self) -> None:
        self.requests: list[Sent] = []
        self.url = ""

    @property
    def last(self) -> Sent:
        """The request that came last."""
        return self.requests[-1]

    async def answer(self, request: web.Request) -> web.Response:
        """Keeps a request, and answers it."""
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            Sent(request.path, headers, body, await request.read(), request.query_string)
        )
        end = request.path.rpartition("/")[2]
        if end.endswith(":generateContent"):
            return web.json_response(GEMINI)
        if end.endswith(":streamGenerateContent"):
            return web.Response(body=GEMINI_STREAM, content_type="text/event-stream")
        if body.get("stream"):
            stream = {"messages": CLAUDE_STREAM, "responses": RESPONSE_STREAM}.get(end, STREAM)
            return web.Response(body=stream, content_type="text/event-stream")
        return web.json_response({"messages": CLAUDE, "responses": RESPONSE}.get(end, ANSWER))


@asynccontextmanager
async def recording() -> AsyncIterator[Recorder]:
    """A recorder that listens until the end of the block."""
    recorder = Recorder()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{path:.*}", recorder.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield recorder
    finally:
        await runner.cleanup()
