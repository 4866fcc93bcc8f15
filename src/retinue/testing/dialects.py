"""The formats of retinue's own adapters, for a `FaultyVendor`.

Each writes what its vendor writes, as far as the model contract needs it: text, one call, the
usage, errors. Compatible servers can be played with them too.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from retinue.errors import Failure
from retinue.messages import ToolCall
from retinue.testing.vendor import TOKENS, Bad, Frames, Refusal

_ID = "answer-1"
_MODEL = "some-model"
_READ, _WRITTEN = TOKENS

Item = dict[str, Any]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _event(value: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + _json(value) + b"\n\n"


class ChatCompletions:
    """OpenAI's Chat Completions."""

    @property
    def refusals(self) -> Mapping[Bad, Refusal]:
        """In OpenAI's words."""
        return {
            "key": self._refusal(
                401, "Incorrect API key provided.", "environment", code="invalid_api_key"
            ),
            "model": self._refusal(404, "The model does not exist.", code="model_not_found"),
            "context": self._refusal(
                400, "This model's maximum context length is 8192 tokens.",
                code="context_length_exceeded",
            ),
            "quota": self._refusal(
                429, "You exceeded your current quota.", "environment", code="insufficient_quota"
            ),
            "schema": self._refusal(
                400, "Invalid schema for response_format 'answer': array schema missing items."
            ),
        }  # fmt: skip

    @staticmethod
    def _refusal(status: int, words: str, failure: Failure = "semantic", **fields: str) -> Refusal:
        error = {"message": words, "type": "invalid_request_error", **fields}
        return Refusal(status, _json({"error": error}), words.rstrip("."), failure)

    def streams(self, target: str, body: Mapping[str, Any]) -> bool:
        """Whether the body asks for a stream."""
        return bool(body.get("stream"))

    def whole(self, text: Sequence[str], call: ToolCall | None) -> bytes:
        """A `chat.completion`."""
        message: Item = {"role": "assistant", "content": "".join(text)}
        if call is not None:
            message["tool_calls"] = [self._call(call)]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(call)}
        answer = {**self._chunk(), "object": "chat.completion"}
        return _json({**answer, "choices": [choice], "usage": self._usage()})

    def frames(self, text: Sequence[str], call: ToolCall | None) -> Frames:
        """Chunks of a `chat.completion`, the usage in the last."""
        calls = [] if call is None else [{"index": 0, **self._call(call)}]
        end = [self._delta({"tool_calls": calls})] if calls else []
        end.append(self._delta({}, self._finish(call)))
        end.append(_event({**self._chunk(), "choices": [], "usage": self._usage()}))
        return Frames(
            [self._delta({"role": "assistant", "content": ""})],
            [self._delta({"content": chunk}) for chunk in text],
            [*end, b"data: [DONE]\n\n"],
        )

    def failure(self, status: int, message: str) -> bytes:
        """An error object."""
        return _json({"error": {"message": message, "type": "server_error", "code": None}})

    def broken(self, message: str) -> bytes:
        """The same as an event."""
        return b"data: " + self.failure(500, message) + b"\n\n"

    @staticmethod
    def _chunk() -> Item:
        return {"id": _ID, "object": "chat.completion.chunk", "model": _MODEL, "created": 1}

    def _delta(self, delta: Item, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._chunk(), "choices": [choice], "usage": None})

    @staticmethod
    def _call(call: ToolCall) -> Item:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": call.id, "type": "function", "function": function}

    @staticmethod
    def _finish(call: ToolCall | None) -> str:
        return "stop" if call is None else "tool_calls"

    @staticmethod
    def _usage() -> Item:
        return {
            "prompt_tokens": _READ, "completion_tokens": _WRITTEN, "total_tokens": _READ + _WRITTEN,
        }  # fmt: skip


class AnthropicMessages:
    """Anthropic's Messages."""

    @property
    def refusals(self) -> Mapping[Bad, Refusal]:
        """In Anthropic's words."""
        return {
            "key": self._refusal(401, "authentication_error", "invalid x-api-key", "environment"),
            "model": self._refusal(404, "not_found_error", "model: some-model"),
            "context": self._refusal(
                400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
            ),
            "quota": self._refusal(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API.",
                "environment",
            ),
            "schema": self._refusal(
                400, "invalid_request_error", "output_config.format.schema: JSON schema is invalid"
            ),
        }

    @staticmethod
    def _refusal(status: int, kind: str, words: str, failure: Failure = "semantic") -> Refusal:
        body = {"type": "error", "error": {"type": kind, "message": words}}
        return Refusal(status, _json(body), words.rstrip("."), failure)

    def streams(self, target: str, body: Mapping[str, Any]) -> bool:
        """Whether the body asks for a stream."""
        return bool(body.get("stream"))

    def whole(self, text: Sequence[str], call: ToolCall | None) -> bytes:
        """A message."""
        content: list[Item] = [{"type": "text", "text": "".join(text)}] if text else []
        if call is not None:
            content.append(self._use(call, json.loads(call.arguments)))
        return _json({
            **self._message(), "content": content, "stop_reason": self._stop(call),
            "usage": {"input_tokens": _READ, "output_tokens": _WRITTEN},
        })  # fmt: skip

    def frames(self, text: Sequence[str], call: ToolCall | None) -> Frames:
        """The events of a message."""
        usage = {"input_tokens": _READ, "output_tokens": 1}
        begin = [self._told("message_start", message={**self._message(), "usage": usage})]
        end: list[bytes] = []
        if text:
            block: Item = {"type": "text", "text": ""}
            begin.append(self._told("content_block_start", index=0, content_block=block))
            end.append(self._told("content_block_stop", index=0))
        if call is not None:
            end += self._growing(call, index=1 if text else 0)
        end.append(
            self._told(
                "message_delta",
                delta={"stop_reason": self._stop(call), "stop_sequence": None},
                usage={"output_tokens": _WRITTEN},
            )
        )
        said = [self._grown(0, {"type": "text_delta", "text": chunk}) for chunk in text]
        return Frames(begin, said, [*end, self._told("message_stop")])

    def failure(self, status: int, message: str) -> bytes:
        """An error object; its type says that the vendor failed."""
        kind = "overloaded_error" if status in (503, 529) else "api_error"
        return _json({"type": "error", "error": {"type": kind, "message": message}})

    def broken(self, message: str) -> bytes:
        """The same as an event."""
        return b"event: error\ndata: " + self.failure(529, message) + b"\n\n"

    def _growing(self, call: ToolCall, index: int) -> list[bytes]:
        parts = [call.arguments[at : at + 5] for at in range(0, len(call.arguments), 5)]
        return [
            self._told("content_block_start", index=index, content_block=self._use(call, {})),
            *(self._grown(index, {"type": "input_json_delta", "partial_json": p}) for p in parts),
            self._told("content_block_stop", index=index),
        ]

    def _grown(self, index: int, delta: Item) -> bytes:
        return self._told("content_block_delta", index=index, delta=delta)

    @staticmethod
    def _told(kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    @staticmethod
    def _message() -> Item:
        return {
            "id": _ID, "type": "message", "role": "assistant", "model": _MODEL, "content": [],
            "stop_reason": None, "stop_sequence": None,
        }  # fmt: skip

    @staticmethod
    def _use(call: ToolCall, arguments: Any) -> Item:
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    @staticmethod
    def _stop(call: ToolCall | None) -> str:
        return "end_turn" if call is None else "tool_use"


class OpenAIResponses(ChatCompletions):
    """OpenAI's Responses; its errors are those of Chat Completions."""

    def whole(self, text: Sequence[str], call: ToolCall | None) -> bytes:
        """A completed response."""
        return _json(self._response(text, call))

    def frames(self, text: Sequence[str], call: ToolCall | None) -> Frames:
        """The events of a response."""
        response = self._response(text, call)
        begun: Item = {**response, "status": "in_progress", "output": [], "usage": None}
        begin = [self._told("response.created", response=begun)]
        said: list[bytes] = []
        end: list[bytes] = []
        for at, item in enumerate(response["output"]):
            place = {"output_index": at, "item_id": item["id"]}
            is_text = item["type"] == "message"
            empty: Item = {"content": []} if is_text else {"arguments": ""}
            opened = self._told(
                "response.output_item.added", output_index=at, item={**item, **empty}
            )
            done = self._told("response.output_item.done", output_index=at, item=item)
            if is_text:
                begin.append(opened)
                said = [
                    self._told("response.output_text.delta", **place, content_index=0, delta=chunk)
                    for chunk in text
                ]
                end.append(done)
            else:
                kind = "response.function_call_arguments.delta"
                end += [opened, self._told(kind, **place, delta=item["arguments"]), done]
        return Frames(begin, said, [*end, self._told("response.completed", response=response)])

    def broken(self, message: str) -> bytes:
        """An error event."""
        return self._told("error", code="server_error", message=message, param=None)

    @staticmethod
    def _told(kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    @staticmethod
    def _response(text: Sequence[str], call: ToolCall | None) -> Item:
        output: list[Item] = []
        if text:
            said: Item = {"type": "output_text", "text": "".join(text), "annotations": []}
            output.append({
                "type": "message", "id": "message-1", "role": "assistant", "status": "completed",
                "content": [said],
            })  # fmt: skip
        if call is not None:
            output.append({
                "type": "function_call", "id": "item-2", "call_id": call.id, "name": call.name,
                "arguments": call.arguments, "status": "completed",
            })  # fmt: skip
        return {
            "id": _ID, "object": "response", "model": _MODEL, "status": "completed", "error": None,
            "incomplete_details": None, "output": output,
            "usage": {
                "input_tokens": _READ, "output_tokens": _WRITTEN, "total_tokens": _READ + _WRITTEN,
            },
        }  # fmt: skip


class GeminiContent:
    """Gemini's `generateContent`."""

    @property
    def refusals(self) -> Mapping[Bad, Refusal]:
        """In Google's words."""
        invalid = "INVALID_ARGUMENT"
        return {
            "key": self._refusal(
                400, invalid, "API key not valid. Please pass a valid API key.", "environment"
            ),
            "model": self._refusal(404, "NOT_FOUND", "models/some-model is not found."),
            "context": self._refusal(
                400, invalid, "The input token count (1200000) exceeds the maximum of 1048576."
            ),
            "quota": self._refusal(  # also for a rate per minute, so that later may work
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan.",
                "transient",
            ),
            "schema": self._refusal(
                400, invalid, "Invalid JSON payload received. Unknown name at response_schema."
            ),
        }

    @staticmethod
    def _refusal(status: int, kind: str, words: str, failure: Failure = "semantic") -> Refusal:
        body = {"error": {"code": status, "message": words, "status": kind}}
        return Refusal(status, _json(body), words.rstrip("."), failure)

    def streams(self, target: str, body: Mapping[str, Any]) -> bool:
        """Whether the address asks for a stream."""
        return ":streamGenerateContent" in target

    def whole(self, text: Sequence[str], call: ToolCall | None) -> bytes:
        """A response."""
        parts = [{"text": "".join(text)}] if text else []
        return _json(self._response([*parts, *self._called(call)], finish=True))

    def frames(self, text: Sequence[str], call: ToolCall | None) -> Frames:
        """Responses, each with what is new in it."""
        said = [_event(self._response([{"text": chunk}])) for chunk in text]
        return Frames([], said, [_event(self._response(self._called(call), finish=True))])

    def failure(self, status: int, message: str) -> bytes:
        """A status object."""
        kind = "UNAVAILABLE" if status in (503, 529) else "INTERNAL"
        return _json({"error": {"code": status, "message": message, "status": kind}})

    def broken(self, message: str) -> bytes:
        """The same as an event."""
        return b"data: " + self.failure(503, message) + b"\n\n"

    @staticmethod
    def _called(call: ToolCall | None) -> list[Item]:
        if call is None:
            return []
        arguments = json.loads(call.arguments)
        return [{"functionCall": {"id": call.id, "name": call.name, "args": arguments}}]

    @staticmethod
    def _response(parts: list[Item], *, finish: bool = False) -> Item:
        candidate: Item = {"index": 0, "content": {"role": "model", "parts": parts}}
        usage = {"promptTokenCount": _READ}
        if finish:
            candidate["finishReason"] = "STOP"
            usage |= {"candidatesTokenCount": _WRITTEN, "totalTokenCount": _READ + _WRITTEN}
        return {
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL,
            "responseId": _ID,
        }  # fmt: skip
