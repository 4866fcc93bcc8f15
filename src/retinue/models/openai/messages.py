"""Messages in the Chat Completions format, each as JSON bytes.

A message is encoded once: the bytes are kept with it, and a changed copy starts without them. So
a long loop sends its history again without encoding it again.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from retinue.errors import ConfigError
from retinue.messages import (
    Content,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from retinue.models.capabilities import Limits, medium_of
from retinue.models.gateways import Gateway
from retinue.models.loose import a_list
from retinue.models.openai.details import joined
from retinue.models.outgoing import (
    as_object,
    data_uri,
    file_name,
    hashed_id,
    left_out,
    misplaced,
    results_of,
    to_json,
    tool_name,
)

_AUDIO: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_LONGEST_ID: Final = 40


class Attached(msgspec.Struct, frozen=True):
    """A tool's results in bytes, and what the format cannot put into them: images and files.

    The format wants the results of a batch together, so the parts go into a message of their own
    after the last of them.
    """

    results: bytes
    parts: list[dict[str, Any]]


class MessageEncoder:
    """Encodes messages for one model at one gateway.

    Args:
        gateway: the row.
        limits: refuses what the model does not take there.

    Attributes:
        key: all that the bytes depend on beside the message: two gateways may share a name.
    """

    __slots__ = ("_gateway", "_limits", "key")

    def __init__(self, gateway: Gateway, limits: Limits) -> None:
        self._gateway = gateway
        self._limits = limits
        self.key = f"chat_completions:{gateway!r}:{limits.media}"

    def encode(self, messages: Sequence[Message]) -> list[bytes]:
        """The messages in order, each as one or more JSON objects joined by commas.

        Raises:
            ConfigError: a message holds a part that the model does not take.
        """
        key = self.key
        kept: list[bytes | Attached] = [
            vars(message).get(key) or self._encode_once(message) for message in messages
        ]
        if Attached not in map(type, kept):
            return cast("list[bytes]", kept)
        return _with_attachments(messages, kept)

    def _encode_once(self, message: Message) -> bytes | Attached:
        kept = vars(message)[self.key] = self._encode(message)
        return kept

    def _encode(self, message: Message) -> bytes | Attached:
        if message.role == "tool":
            return self._results(message)
        if message.role == "assistant":
            return to_json(self._assistant(message))
        return to_json({"role": message.role, "content": self._content(message)})

    # -- what the user says ---------------------------------------------------------------------

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        parts = message.parts
        if all(type(part) is Text for part in parts) and len(parts) < 2:
            return message.text
        return [self._part(part, message.role) for part in parts]

    def _part(self, part: Any, role: str) -> dict[str, Any]:
        if type(part) is Text:
            return {"type": "text", "text": part.text}
        if type(part) is Image and role == "user":
            return self._image(part)
        if type(part) is File and role == "user":
            return self._file(part)
        raise misplaced(part, role, self._gateway.name)

    def _image(self, image: Image | File) -> dict[str, Any]:
        self._limits.check_part(image)
        return {"type": "image_url", "image_url": {"url": image.url or data_uri(image)}}

    def _file(self, file: File) -> dict[str, Any]:
        medium = medium_of(file)
        if medium == "images":
            return self._image(file)
        self._limits.check_part(file)
        if medium == "audio":
            return _recording(file)
        if file.url and not file.url.startswith("data:") and not self._gateway.file_urls:
            raise ConfigError(
                f"{self._gateway.name} takes no documents by URL in Chat Completions; give the File"
                " its data, or use a model of the Responses format."
            )
        data = file.url or data_uri(file)
        return {"type": "file", "file": {"filename": file_name(file), "file_data": data}}

    # -- what the model said --------------------------------------------------------------------

    def _assistant(self, message: Message) -> dict[str, Any]:
        for part in message.parts:
            if type(part) in (Image, File, ToolResult):
                self._part(part, message.role)  # raises
        text = message.text
        calls = message.tool_calls
        said: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        if self._gateway.thinking is not None:
            self._think_back(message, said)
        if calls:
            said["tool_calls"] = [self._call(call) for call in calls]
        return said

    def _think_back(self, message: Message, said: dict[str, Any]) -> None:
        field = self._gateway.thinking
        thoughts = [
            part
            for part in message.parts
            if type(part) is Thinking and part.provider == self._gateway.name
        ]
        text = "".join(thought.text for thought in thoughts)
        if field == "reasoning_details":
            details = joined(d for thought in thoughts for d in _details_of(thought))
            if details:
                said["reasoning_details"] = details
            elif text:
                said["reasoning"] = text
        elif field == "parts":
            if text:
                thinking = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
                answer = [{"type": "text", "text": said["content"]}] if said["content"] else []
                said["content"] = [thinking, *answer]
        elif field is not None and text:
            said[field] = text
        elif field is not None and message.tool_calls and self._gateway.no_thinking is not None:
            said[field] = self._gateway.no_thinking

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = call.arguments or "{}"
        if self._gateway.json_arguments and as_object(arguments) is None:
            arguments = "{}"  # the tool's result says what was wrong with them
        function = {"name": tool_name(call.name), "arguments": arguments}
        return {"id": self._id(call.id), "type": "function", "function": function}

    def _id(self, call_id: str) -> str:
        """The id as this gateway takes it: ids of other providers may be too long, or odd."""
        if self._gateway.short_ids:
            fits = len(call_id) == 9 and call_id.isascii() and call_id.isalnum()
            length = 9
        else:
            fits = 0 < len(call_id) <= _LONGEST_ID
            length = 32
        return call_id if fits else hashed_id(call_id, length)

    # -- what the tools said --------------------------------------------------------------------

    def _results(self, message: Message) -> bytes | Attached:
        attached: list[dict[str, Any]] = []
        pieces = [to_json(self._result(result, attached)) for result in results_of(message)]
        joined_pieces = b",".join(pieces)
        return Attached(joined_pieces, attached) if attached else joined_pieces

    def _result(self, result: ToolResult, attached: list[dict[str, Any]]) -> dict[str, Any]:
        text = result.text
        others = [part for part in result.parts if type(part) is not Text]
        for number, part in enumerate(others, start=1):
            shown = self._attachment(part, result.name)
            kind = type(part).__name__.lower()
            if shown is None:
                text += f"\n[{kind} {number}: this model cannot take it]"
            else:
                text += f"\n[{kind} {number}: in the next message]"
                label = f"{kind} {number} of the result of {result.name} ({result.call_id}):"
                attached += [{"type": "text", "text": label}, shown]
        text = text.strip("\n") if others else text
        if not result.ok and text[:5].lower() != "error":
            text = f"Error: {text}"  # the format has no flag for it
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": text}

    def _attachment(self, part: Content, tool: str) -> dict[str, Any] | None:
        try:
            return self._part(part, "user")
        except ConfigError as why:
            left_out(part, tool, why)
            return None


def _with_attachments(messages: Sequence[Message], kept: Sequence[bytes | Attached]) -> list[bytes]:
    """What was encoded, and after each batch of results a message with what belongs to it."""
    pieces: list[bytes] = []
    attached: list[dict[str, Any]] = []
    for message, one in zip(messages, kept, strict=True):
        if attached and message.role != "tool":
            pieces.append(to_json({"role": "user", "content": attached}))
            attached = []
        if isinstance(one, Attached):
            pieces.append(one.results)
            attached = attached + one.parts
        else:
            pieces.append(one)
    if attached:
        pieces.append(to_json({"role": "user", "content": attached}))
    return pieces


def _recording(file: File) -> dict[str, Any]:
    sound = _AUDIO.get(file.media_type)
    if sound is None:
        raise ConfigError(
            f"Chat Completions takes recordings in WAV and MP3, not {file.media_type}; convert the"
            " File."
        )
    if file.data is None:
        raise ConfigError("Chat Completions takes no recordings by URL; give the File its data.")
    data = base64.b64encode(file.data).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": sound}}


def _details_of(thought: Thinking) -> Sequence[dict[str, Any]]:
    # What the same provider sent in the Responses format is no list.
    return () if thought.opaque is None else a_list(msgspec.json.decode(thought.opaque))
