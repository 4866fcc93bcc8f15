"""What clients of OpenAI's Chat Completions send, and what is made of it.

Fields that are not named here are let pass, as such servers do: they are wishes, such as a penalty,
or concern OpenAI alone. What the client would wait for in vain is refused (`check_body`).
"""

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from retinue.errors import ConfigError
from retinue.messages import (
    Content,
    File,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from retinue.serve.jobs import Choices, ClientTool, ToolName


class Url(Struct, frozen=True):
    """Where an image is: a data: or https: URL."""

    url: str


class Audio(Struct, frozen=True):
    """A recording: base64, and its format such as "wav"."""

    data: str
    format: str


class FileData(Struct, frozen=True):
    """A document: a data: URL."""

    file_data: str
    filename: str | None = None


class TextPart(Struct, frozen=True, tag="text"):
    """Text."""

    text: str


class RefusalPart(Struct, frozen=True, tag="refusal"):
    """What the model said instead of an answer."""

    refusal: str


class ImagePart(Struct, frozen=True, tag="image_url"):
    """An image."""

    image_url: Url


class AudioPart(Struct, frozen=True, tag="input_audio"):
    """A recording."""

    input_audio: Audio


class FilePart(Struct, frozen=True, tag="file"):
    """A document."""

    file: FileData


Part = TextPart | RefusalPart | ImagePart | AudioPart | FilePart


class CalledFunction(Struct, frozen=True):
    """A function that a call names, and its arguments as JSON text."""

    name: str
    arguments: str = "{}"


class CalledTool(Struct, frozen=True):
    """A call that the model asked for."""

    id: str
    function: CalledFunction


class ChatMessage(Struct, frozen=True):
    """A message of the conversation so far."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    refusal: str | None = None
    tool_calls: list[CalledTool] | None = None
    tool_call_id: str | None = None


class OfferedFunction(Struct, frozen=True):
    """A function that the client runs."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OfferedTool(Struct, frozen=True):
    """A tool that the client runs."""

    type: Literal["function"]
    function: OfferedFunction


class ChosenFunction(Struct, frozen=True):
    """The name of a function."""

    name: str


class ChosenTool(Struct, frozen=True):
    """The tool that must be called."""

    function: ChosenFunction


class Form(Struct, frozen=True):
    """A JSON Schema and its name."""

    name: str
    schema: dict[str, Any] = field(default_factory=dict[str, Any])


class ResponseFormat(Struct, frozen=True):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Form | None = None


class StreamOptions(Struct, frozen=True):
    """Whether the last chunk tells the usage."""

    include_usage: bool | None = None


class ChatBody(Struct, frozen=True, kw_only=True):
    """A request for a chat completion. `model` is the name of an agent."""

    model: str
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: list[str] | None = None
    functions: list[Any] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    tools: list[OfferedTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None


def check_body(body: ChatBody, tools: Sequence[str]) -> None:
    """Refuses what would make an answer that the client cannot use.

    Args:
        body: what it sent.
        tools: the names of the agent's own tools.

    Raises:
        ConfigError: names the field, and the way out.
    """
    if body.n not in (None, 1):
        raise ConfigError("An agent gives one answer; leave `n` out, or ask again for another.")
    if body.logprobs or body.top_logprobs:
        raise ConfigError("An agent tells no `logprobs`; leave them out.")
    if "audio" in (body.modalities or ()):
        raise ConfigError("An agent answers in text; leave `modalities` out.")
    if body.functions:
        raise ConfigError("`functions` are the old form of `tools`; offer them as those.")
    if isinstance(body.tool_choice, ChosenTool):
        name = body.tool_choice.function.name
        if name not in (*tools, *(one.function.name for one in body.tools or ())):
            raise ConfigError(f"`tool_choice` names {name[:80]!r}, and no tool is called so.")


def choices_of(body: ChatBody) -> Choices:
    """How the model shall answer."""
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    choice = body.tool_choice
    return Choices(
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        stop=tuple(word for word in stop if word),
        seed=body.seed,
        tool_choice=choice.function.name if isinstance(choice, ChosenTool) else choice,
        parallel_tool_calls=body.parallel_tool_calls,
        effort=body.reasoning_effort,
    )


def tools_of(body: ChatBody) -> tuple[ClientTool, ...]:
    """The tools that the client runs."""
    return tuple(
        ClientTool(
            one.function.name,
            one.function.description or "",
            one.function.parameters or {"type": "object"},
        )
        for one in body.tools or ()
    )


def form_of(body: ChatBody) -> dict[str, Any] | None:
    """JSON Schema of the answer, or None.

    Raises:
        ConfigError: a schema is asked for and not given.
    """
    form = body.response_format
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return {"type": "object"}
    if form.json_schema is None:
        raise ConfigError("response_format of the type json_schema needs a `json_schema`.")
    return {"title": form.json_schema.name, **form.json_schema.schema}


def messages_of(body: ChatBody) -> tuple[Message, ...]:
    """The conversation so far.

    Raises:
        ConfigError: a message cannot be one; it is named by its number.
    """
    names: dict[str, str] = {}
    messages: list[Message] = []
    for number, given in enumerate(body.messages):
        names.update((call.id, call.function.name) for call in given.tool_calls or ())
        try:
            messages.append(_message(given, names))
        except ValueError as error:
            raise ConfigError(f"messages[{number}]: {error}") from error
    return tuple(messages)


def _message(given: ChatMessage, names: dict[str, str]) -> Message:
    if given.role in ("system", "developer"):
        return system(_text(given))
    if given.role == "user":
        content = given.content or ""
        return user(*([content] if isinstance(content, str) else map(_part, content)))
    if given.role == "assistant":
        calls = [
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in given.tool_calls or ()
        ]
        return assistant(_text(given), calls=calls)
    name = names.pop(given.tool_call_id or "", None)
    if name is None or given.tool_call_id is None:
        raise ValueError(f"no call {given.tool_call_id!r} waits for this result.")
    return Message("tool", (ToolResult(given.tool_call_id, name, (Text(_text(given)),)),))


def _text(given: ChatMessage) -> str:
    content = given.content or given.refusal or ""
    if isinstance(content, str):
        return content
    texts = [one.text for one in content if isinstance(one, TextPart)]
    refusals = [one.refusal for one in content if isinstance(one, RefusalPart)]
    if len(texts) + len(refusals) < len(content):
        raise ValueError(f"a {given.role} message holds text only.")
    return "".join((*texts, *refusals))


def _part(given: Part) -> Content:
    match given:
        case TextPart(text):
            return Text(text)
        case RefusalPart(refusal):
            return Text(refusal)
        case ImagePart(Url(url)):
            return _image(url)
        case AudioPart(Audio(data, format)):
            kind = _AUDIO.get(format, f"audio/{format}")
            return File(base64.b64decode(data, validate=True), media_type=kind)
        case FilePart(FileData(url, name)):
            kind, data = _data_url(url)
            return File(data, media_type=kind, name=name)


def _image(url: str) -> Image:
    if not url.startswith("data:"):
        return Image(url=url)
    kind, data = _data_url(url)
    return Image(data, media_type=kind)


def _data_url(url: str) -> tuple[str, bytes]:
    head, comma, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        raise ValueError("a file is given as data:TYPE;base64,DATA.")
    return head[5:-7] or "application/octet-stream", base64.b64decode(data, validate=True)


_AUDIO: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}
