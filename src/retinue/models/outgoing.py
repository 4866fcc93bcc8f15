"""What goes out, whatever the format: JSON bytes, tools encoded once, fields that users add."""

import base64
import hashlib
import json
import logging
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from retinue.chains.output import Output
from retinue.errors import ConfigError
from retinue.messages import Content, File, Image, Message, Text, ToolResult
from retinue.models.loose import UNREADABLE
from retinue.tools import Tool
from retinue.tools.tool import ToolSpec

_log: Final = logging.getLogger("retinue")
_encoder: Final = msgspec.json.Encoder()
_TOOLS_KEPT: Final = (
    1000  # encoded tools that are kept, for applications that make tools as they go
)
_LONGEST_NAME: Final = 64
_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_SHOWN_BY: Final = (
    (b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"),
)  # fmt: skip


def to_json(value: Any) -> bytes:
    """The value as JSON. Half characters, which no JSON can hold, become question marks."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def as_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or None if it is something else."""
    try:
        value = msgspec.json.decode(text)
    except (*UNREADABLE, UnicodeEncodeError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def tool_name(name: str) -> str:
    """The name of a called tool as providers take it.

    A name that the model made up may hold anything; a provider refuses the whole history for it.
    """
    return _ODD.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def hashed_id(call_id: str, length: int) -> str:
    """An id in the place of one that a provider does not take: the same for the same one."""
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]


def misplaced(part: Any, role: str, provider: str) -> ConfigError:
    """The error for a part that no message of this role can hold."""
    return ConfigError(
        f"A message of the role {role!r} cannot hold a part {type(part).__name__} for {provider}."
    )


def system_text(message: Message, provider: str) -> str:
    """The text of a system message, empty if it is only white space.

    Raises:
        ConfigError: it holds something else than text.
    """
    for part in message.parts:
        if type(part) is not Text:
            raise misplaced(part, message.role, provider)
    return message.text if message.text.strip() else ""


def results_of(message: Message) -> Sequence[ToolResult]:
    """The results in a message of the role "tool".

    Raises:
        ConfigError: there is none, or something else beside them.
    """
    results = message.tool_results
    if not results or len(results) != len(message.parts):
        raise ConfigError("A message of the role 'tool' holds tool results and nothing else.")
    return results


def left_out(part: Content, tool: str, why: ConfigError) -> None:
    """Warns the application that a model does not see a part of a tool's result.

    The model is told in the result. Nothing of it is refused: what a tool returns is nobody's wish.
    """
    _log.warning("A part of the result of %s is left out: %s: %s", tool, type(part).__name__, why)


def data_uri(part: Image | File) -> str:
    """The data as a URL.

    The first bytes of an image say what it is, whatever its media type claims: some vendors refuse
    the wrong claim, and the default of `Image` is one.

    Raises:
        ConfigError: there is none.
    """
    if part.data is None:
        raise ConfigError(f"This {type(part).__name__} has neither data nor a URL; give it one.")
    kind = part.media_type
    if kind.startswith("image/"):
        kind = image_type(part.data) or kind
    return f"data:{kind};base64,{base64.b64encode(part.data).decode()}"


def file_name(file: File) -> str:
    """The name of the file, or one with the ending by which OpenAI knows what a file is."""
    return file.name or f"file{mimetypes.guess_extension(file.media_type) or ''}"


def image_type(data: bytes) -> str | None:
    """The type of an image by its first bytes, or None if they are none that are known."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SHOWN_BY if data.startswith(start)), None)


class EncodedTools:
    """Encodes each tool once.

    Args:
        encode: makes the JSON of a tool.
    """

    __slots__ = ("_encode", "_kept")

    def __init__(self, encode: Callable[[ToolSpec], bytes]) -> None:
        self._encode = encode
        # By identity; the spec is kept with its bytes, so that its id stays its own.
        self._kept: dict[int, tuple[ToolSpec, bytes]] = {}

    def of(self, tools: Iterable[Tool]) -> list[bytes]:
        """The tools in order, each as a JSON object."""
        return [self._one(tool.spec) for tool in tools]

    def _one(self, spec: ToolSpec) -> bytes:
        kept = self._kept.get(id(spec))
        if kept is not None:
            return kept[1]
        encoded = self._encode(spec)
        if len(self._kept) >= _TOOLS_KEPT:
            self._kept.clear()
        self._kept[id(spec)] = (spec, encoded)
        return encoded


def check_choice(choice: str, tools: Iterable[Tool]) -> None:
    """Refuses the name of a tool that is not on offer.

    Raises:
        ConfigError: names it, and the tools that are.
    """
    names = [tool.spec.name for tool in tools]
    if choice not in names:
        raise ConfigError(
            f"tool_choice names {choice!r}, which is not on offer; the tools are"
            f" {', '.join(names)}."
        )


def check_extra(extra: Mapping[str, Any], own: Iterable[str]) -> None:
    """Refuses fields of `Settings.extra` that the request decides, or that are no JSON.

    Raises:
        ConfigError: names the field.
    """
    for name in own:
        if name in extra:
            raise ConfigError(f"Settings(extra=...) cannot set {name!r}; the request decides it.")
    if not isinstance(extra.get("tools", ()), list | tuple):
        raise ConfigError("Settings(extra=...) has 'tools' that is no list; give a list of them.")
    for name, value in extra.items():
        try:
            to_json(value)
        except TypeError as error:
            raise ConfigError(
                f"Settings(extra=...) has {name!r} that is no JSON: {error}."
            ) from error


def form_in_words(output: Output) -> str:
    """The form of an answer as an instruction, for models that take no such schema."""
    return (
        "Answer with JSON alone, without prose or a code fence. It must fit this JSON Schema:\n"
        + to_json(output.schema).decode()
    )
