"""What clients of AG-UI send, and the messages and answers that are made of it."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct

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
from retinue.serve.faults import Refused
from retinue.serve.jobs import Answered, ClientTool, ToolName
from retinue.tools import PendingCall


class Source(Struct, frozen=True, rename="camel"):
    """Where the data of a part is: base64, or a URL."""

    type: str
    value: str
    mime_type: str = "application/octet-stream"


class Part(Struct, frozen=True, rename="camel"):
    """A part of a message: text, or one of the kinds that have a source."""

    type: str
    text: str | None = None
    source: Source | None = None
    mime_type: str | None = None
    data: str | None = None
    url: str | None = None
    filename: str | None = None


class Function(Struct, frozen=True):
    """The function that a call names."""

    name: str
    arguments: str = "{}"


class Asked(Struct, frozen=True):
    """A call of an assistant message."""

    id: str
    function: Function


class AguiMessage(Struct, frozen=True, rename="camel"):
    """A message that the client holds; of roles that no model knows, nothing is made."""

    id: str
    role: str
    content: str | list[Part] | dict[str, Any] | None = None
    tool_calls: list[Asked] | None = None
    tool_call_id: str | None = None
    error: str | None = None


class AguiTool(Struct, frozen=True):
    """A tool that the client runs."""

    name: ToolName
    description: str = ""
    parameters: dict[str, Any] | None = None


class AguiContext(Struct, frozen=True):
    """Something that the client's page knows."""

    description: str
    value: str


class Resumed(Struct, frozen=True, rename="camel"):
    """An answer to an interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class AguiBody(Struct, frozen=True, rename="camel", kw_only=True):
    """The input of a run."""

    thread_id: str
    run_id: str
    messages: list[AguiMessage]
    tools: list[AguiTool] | None = None
    context: list[AguiContext] | None = None
    state: Any = None
    resume: list[Resumed] | None = None


def tools_of(body: AguiBody) -> tuple[ClientTool, ...]:
    """The tools that the client runs."""
    return tuple(
        ClientTool(one.name, one.description, one.parameters or {"type": "object"})
        for one in body.tools or ()
    )


def context_of(body: AguiBody) -> dict[str, Any]:
    """What layers and tools find in the turn's context: `ag_ui_context` and `ag_ui_state`."""
    found: dict[str, Any] = {}
    if body.context:
        found["ag_ui_context"] = {one.description: one.value for one in body.context}
    if body.state not in (None, {}):
        found["ag_ui_state"] = body.state
    return found


def messages_of(given: Sequence[AguiMessage]) -> tuple[Message, ...]:
    """The messages as a model knows them.

    Raises:
        Refused: one cannot be read; it is named by its id.
    """
    names = {call.id: call.function.name for one in given for call in one.tool_calls or ()}
    made: list[Message] = []
    for one in given:
        try:
            message = _message(one, names)
        except ValueError as error:
            raise Refused("invalid", f"The message {one.id[:80]!r}: {error}") from error
        if message is not None:
            made.append(message)
    return tuple(made)


def asked_now(given: Sequence[AguiMessage]) -> Sequence[AguiMessage]:
    """Those behind the last answer: what a conversation that is kept does not hold yet."""
    at = len(given)
    while at and given[at - 1].role == "user":
        at -= 1
    return given[at:]


def answers_of(body: AguiBody, pending: Sequence[PendingCall]) -> dict[str, Answered]:
    """Answers to what waits: those of `resume`, and results of tools that the client ran."""
    kinds = {one.id: one.kind for one in pending}
    answers: dict[str, Answered] = {}
    for one in body.messages:
        if one.role == "tool" and one.tool_call_id in kinds:
            text = _text(one)
            answers[one.tool_call_id] = (
                Answered("reply", value=text)
                if one.error is None
                else Answered("reject", reason=one.error or text)
            )
    for one in body.resume or ():
        kind = kinds.get(one.interrupt_id)
        if kind is not None:
            answers[one.interrupt_id] = _answer(kind, one)
    return answers


def _answer(kind: str, given: Resumed) -> Answered:
    refused = given.status == "cancelled"
    if kind == "environment":
        return Answered("proceed" if refused else "retry")
    if refused:
        return Answered("reject", reason="The user cancelled it.")
    if kind != "approval":
        return Answered("reply", value=given.payload)
    payload: Any = given.payload
    said = cast("dict[str, Any]", payload) if type(payload) is dict else {}
    if payload is False or said.get("approved") is False:
        return Answered("reject", reason=str(said.get("reason") or "The user refused it."))
    args = said.get("args")
    given_args = isinstance(args, dict)
    return Answered("approve", args=cast("dict[str, Any]", args) if given_args else None)


def _message(given: AguiMessage, names: Mapping[str, str]) -> Message | None:
    match given.role:
        case "system" | "developer":
            return system(_text(given))
        case "user":
            content = given.content if isinstance(given.content, list) else [_text(given)]
            return user(*(one if isinstance(one, str) else _part(one) for one in content))
        case "assistant":
            calls = [
                ToolCall(call.id, call.function.name, call.function.arguments)
                for call in given.tool_calls or ()
            ]
            return assistant(_text(given), calls=calls)
        case "tool":
            name = names.get(given.tool_call_id or "")
            if name is None or given.tool_call_id is None:
                raise ValueError(f"no call {given.tool_call_id!r} stands before this result.")
            text = Text(given.error or _text(given))
            result = ToolResult(given.tool_call_id, name, (text,), ok=given.error is None)
            return Message("tool", (result,))
        case _:
            return None


def _text(given: AguiMessage) -> str:
    if isinstance(given.content, list):
        return "".join(part.text or "" for part in given.content)
    return given.content if isinstance(given.content, str) else ""


def _part(part: Part) -> Content:
    if part.type == "text":
        return Text(part.text or "")
    source = part.source
    if source is None:
        kind = "url" if part.url is not None else "data"
        value = part.url or part.data or ""
        source = Source(kind, value, part.mime_type or "application/octet-stream")
    data = base64.b64decode(source.value, validate=True) if source.type == "data" else None
    url = None if source.type == "data" else source.value
    if part.type == "image" or source.mime_type.startswith("image/"):
        return Image(data, url, source.mime_type)
    return File(data, url, source.mime_type, part.filename)
