"""A server of the Gemini format on this machine: it answers by script, and is strict.

It refuses what the vendor refuses: fields that it does not know, empty texts, turns of no parts,
calls without as many results after them, results of other calls, signatures that it never gave or
that stand elsewhere, and, in the turn that goes on, calls without one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec import Struct

from retinue.models.gemini.messages import UNSIGNED
from tests.models.listening import listening
from tests.wire.sends.recorder import Sent

KEY = "AIza-vendor-key"
MODEL = "gemini-3.8-flash"
FIELDS = {
    "contents", "generationConfig", "safetySettings", "systemInstruction", "toolConfig", "tools",
}  # fmt: skip
COUNTS = {
    "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 4,
    "thoughtsTokenCount": 2, "totalTokenCount": 16,
}  # fmt: skip
Part = dict[str, Any]


class Step(Struct):
    """One answer.

    Attributes:
        parts: what it holds; signatures are given here.
        status: the HTTP status of a refusal instead of an answer.
        error: an error after this many chunks of the stream.
        hold: after this many chunks, waits until the reader has left.
        finish: why it ended.
    """

    parts: list[Part] = []
    status: int = 200
    error: int | None = None
    hold: int | None = None
    finish: str = "STOP"


def answer(*parts: Part, **options: Any) -> Step:
    """A step of these parts."""
    return Step(parts=list(parts), **options)


def says(text: str) -> Part:
    """A text; the last of an answer is signed."""
    return {"text": text}


def thinks(text: str) -> Part:
    """A summary of thoughts."""
    return {"text": text, "thought": True}


def asks(name: str, **arguments: Any) -> Part:
    """A call without an id, as this vendor often sends it; the first of an answer is signed."""
    return {"functionCall": {"name": name, "args": arguments}}


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
        self._given: dict[str, str] = {}  # by signature: the part that it stands on
        self._count = 0

    def contents(self, number: int = -1) -> list[dict[str, Any]]:
        """The turns of a request."""
        return self.requests[number].body["contents"]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            Sent(request.path, headers, body, await request.read(), request.query_string)
        )
        try:
            self._check(request, body)
        except Refusal as refusal:
            self.refusals.append(str(refusal))
            return _refused(400, str(refusal))
        step = next(self._steps, None)
        if step is None or step.status != 200:
            return _refused(400 if step is None else step.status, "as the script says")
        parts = self._signed(step.parts)
        if request.path.endswith(":generateContent"):
            return web.json_response(_chunk(parts, step.finish, usageMetadata=COUNTS))
        return await self._stream(request, parts, step)

    # -- the answer -----------------------------------------------------------------------------

    def _signed(self, parts: list[Part]) -> list[Part]:
        """The parts with signatures where the vendor puts them: first call, or last text."""
        calls = [at for at, part in enumerate(parts) if "functionCall" in part]
        texts = [at for at, part in enumerate(parts) if "text" in part and "thought" not in part]
        place = calls[0] if calls else texts[-1] if texts else None
        signed: list[Part] = []
        for at, part in enumerate(parts):
            if at == place or not part.keys() & {"functionCall", "text"}:
                self._count += 1
                signature = f"c2ln{self._count:04}"
                part = {**part, "thoughtSignature": signature}
                self._given[signature] = _kind(part)
            signed.append(part)
        return signed

    async def _stream(
        self, request: web.Request, parts: list[Part], step: Step
    ) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        chunks = [_chunk([piece]) for part in parts for piece in _pieces(part)]
        chunks.append(_chunk([], step.finish, usageMetadata=COUNTS))
        try:
            for number, chunk in enumerate(chunks):
                if number == step.hold:
                    self.holding.set()
                    await asyncio.sleep(60)  # ends when the reader leaves
                if number == step.error:
                    chunk = {"error": {"code": 500, "message": "It broke.", "status": "INTERNAL"}}
                await reply.write(f"data: {json.dumps(chunk)}\r\n\r\n".encode())
                if number == step.error:
                    break
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise
        return reply

    # -- the request ----------------------------------------------------------------------------

    def _check(self, request: web.Request, body: dict[str, Any]) -> None:
        if request.headers.get("x-goog-api-key") != KEY:
            raise Refusal("API key not valid. Please pass a valid API key.")
        if unknown := set(body) - FIELDS:
            raise Refusal(f"Unknown name {sorted(unknown)}: Cannot find field.")
        contents: list[dict[str, Any]] = body["contents"]
        if not contents or contents[0]["role"] != "user":
            raise Refusal("The contents must begin with a turn of the user.")
        for before, turn in zip([{"role": "", "parts": []}, *contents], contents, strict=False):
            self._check_turn(turn, before)
        if _calls(contents[-1]):
            raise Refusal("There is a call without a response.")
        self._check_unsigned(contents)

    def _check_turn(self, turn: dict[str, Any], before: dict[str, Any]) -> None:
        if turn["role"] == before["role"] or not turn["parts"]:
            raise Refusal(f"A turn of {turn['role']} that is none.")
        for part in turn["parts"]:
            signature = part.get("thoughtSignature")
            if part.get("text") == "" and signature is None:
                raise Refusal("A part has an empty text.")
            if signature not in (None, UNSIGNED) and self._given.get(signature) != _kind(part):
                raise Refusal(f"Corrupted thought signature {signature}.")
        answered = [
            part["functionResponse"] for part in turn["parts"] if "functionResponse" in part
        ]
        if [(r["id"], r["name"]) for r in answered] != _calls(before):
            raise Refusal("The function responses do not fit the function calls before them.")

    def _check_unsigned(self, contents: list[dict[str, Any]]) -> None:
        """In the turn that goes on, the first call of each step must be signed."""
        for turn in reversed(contents):
            if any(
                "functionResponse" not in part for part in turn["parts"] if turn["role"] == "user"
            ):
                return
            calls = [part for part in turn["parts"] if "functionCall" in part]
            if calls and "thoughtSignature" not in calls[0]:
                raise Refusal("Function call is missing a thought_signature.")


def _calls(turn: dict[str, Any]) -> list[tuple[str, str]]:
    calls = [part["functionCall"] for part in turn["parts"] if "functionCall" in part]
    return [(call["id"], call["name"]) for call in calls]


def _kind(part: Part) -> str:
    """What a signature is bound to here: the kind of its part, and a call's name and arguments."""
    call = part.get("functionCall")
    return (
        f"{call['name']}{call['args']}" if call else next(iter(part.keys() - {"thoughtSignature"}))
    )


def _chunk(parts: list[Part], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r1", **fields}


def _pieces(part: Part) -> Iterator[Part]:
    """A part as it comes in a stream: a text by piece, its signature on an empty one at last."""
    text = part.get("text")
    if text is None:
        yield part
        return
    rest = {name: value for name, value in part.items() if name == "thought"}
    for start in range(0, len(text), 5):
        yield {"text": text[start : start + 5], **rest}
    if "thoughtSignature" in part:
        yield {"text": "", "thoughtSignature": part["thoughtSignature"]}


def _refused(status: int, words: str) -> web.Response:
    told = {"error": {"code": status, "message": words, "status": "INVALID_ARGUMENT"}}
    return web.json_response(told, status=status)


@asynccontextmanager
async def vendor(*steps: Step) -> AsyncIterator[Vendor]:
    """A server that answers these steps, one a request, until the end of the block."""
    serving = Vendor(steps)
    async with listening("/v1beta/models/{model}", serving.handle) as address:
        serving.url = f"{address}/v1beta"
        yield serving
