"""What clients of AG-UI send, and the messages and answers that are made of it."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
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
    tool_result,
    user,
)
from retinue.serve.faults import Refused
from retinue.serve.jobs import Answered, ClientTool, ToolName
from retinue.tools import PendingCall


class Source(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Where the data of a part is: `data` (base64), `url`, or `file`, which a provider keeps."""

    type: str
    value: str
    mime_type: str | None = None
    provider: str | None = None


class Part(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A part of a message: text, or one of the kinds that have a source.

    Clients of before 1.0 send files as `binary`, with `data` or a `url` of its own.
    """

    type: str
    text: str | None = None
    source: Source | None = None
    id: str | None = None
    metadata: Any = None
    mime_type: str | None = None
    data: str | None = None
    url: str | None = None
    filename: str | None = None


class Function(Struct, frozen=True):
    """The function that a call names, and its arguments as JSON text."""

    name: str
    arguments: str


class Asked(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A call of an assistant message."""

    id: str
    type: str
    function: Function
    encrypted_value: str | None = None
    metadata: dict[str, Any] | None = None


class AguiMessage(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A message that the client holds; of roles that no model knows, nothing is made.

    It has all that the protocol knows, since a snapshot of the messages gives it back.
    """

    id: str
    role: str
    content: str | list[Part] | dict[str, Any] | None = None
    name: str | None = None
    tool_calls: list[Asked] | None = None
    tool_call_id: str | None = None
    error: str | None = None
    activity_type: str | None = None
    subagent_run_id: str | None = None
    encrypted_value: str | None = None
    metadata: dict[str, Any] | None = None


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


class Approval(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The payload by which a call is approved or refused.

    Attributes:
        edited_args: what the call runs on in place of the model's arguments.
        reason: what the model is told of a refusal.
    """

    approved: bool
    edited_args: dict[str, Any] | None = None
    reason: str | None = None


class AguiBody(Struct, frozen=True, rename="camel", kw_only=True):
    """The input of a run."""

    thread_id: str
    run_id: str
    messages: list[AguiMessage]
    parent_run_id: str | None = None
    tools: list[AguiTool] | None = None
    context: list[AguiContext] | None = None
    state: Any = None
    forwarded_props: Any = None
    resume: list[Resumed] | None = None


def tools_of(body: AguiBody) -> tuple[ClientTool, ...]:
    """The tools that the client runs."""
    return tuple(
        ClientTool(one.name, one.description, one.parameters or {"type": "object"})
        for one in body.tools or ()
    )


def context_of(body: AguiBody) -> dict[str, Any]:
    """What layers and tools find in the turn's context, where the client sent it: `ag_ui_context`
    (a list of descriptions and values), `ag_ui_state` and `ag_ui_forwarded_props`."""
    sent = {
        "ag_ui_context": msgspec.to_builtins(body.context),
        "ag_ui_state": body.state,
        "ag_ui_forwarded_props": body.forwarded_props,
    }
    return {name: value for name, value in sent.items() if value not in (None, {}, [])}


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
    """Answers to what waits: those of `resume`, and results of tools that the client ran.

    Raises:
        Refused: an answer is to nothing that waits, or none is given to an interrupt (`conflict`);
            or it cannot be read (`invalid`).
    """
    kinds = {one.id: one.kind for one in pending}
    answers: dict[str, Answered] = {}
    for one in body.messages:
        if one.role == "tool" and one.tool_call_id in kinds:
            answers[one.tool_call_id] = (
                Answered("reply", value=_text(one))
                if one.error is None
                else Answered("reject", reason=one.error or _text(one))
            )
    for given in body.resume or ():
        name = given.interrupt_id
        if name not in kinds:
            raise Refused("conflict", f"Nothing in this thread waits for an answer to {name!r}.")
        try:
            answers[name] = _answer(kinds[name], given)
        except (ValueError, msgspec.ValidationError) as error:
            raise Refused("invalid", f"The answer to {name!r} cannot be read: {error}.") from error
    open = [name for name, kind in kinds.items() if kind != "external" and name not in answers]
    if open:
        raise Refused(
            "conflict",
            f"The thread waits for answers to {', '.join(open)}; give them all in `resume`.",
        )
    return answers


def _answer(kind: str, given: Resumed) -> Answered:
    refused = given.status == "cancelled"
    if kind == "environment":
        return Answered("proceed" if refused else "retry")
    if refused:
        return Answered("reject", reason="The user cancelled it.")
    if kind != "approval":
        if given.payload is None:
            raise ValueError("it has no `payload`")
        return Answered("reply", value=given.payload)
    said = msgspec.convert(given.payload, Approval)
    if said.approved:
        return Answered("approve", args=said.edited_args)
    return Answered("reject", reason=said.reason or "The user refused it.")


def _message(given: AguiMessage, names: Mapping[str, str]) -> Message | None:
    match given.role:
        case "system" | "developer":
            return system(_text(given))
        case "user":
            return user(*_parts(given))
        case "assistant":
            calls = [
                ToolCall(call.id, call.function.name, call.function.arguments)
                for call in given.tool_calls or ()
            ]
            text = _text(given)
            return assistant(text, calls=calls) if text or calls else None
        case "tool":
            name = names.get(given.tool_call_id or "")
            if name is None or given.tool_call_id is None:
                raise ValueError(f"no call {given.tool_call_id!r} stands before this result.")
            parts = (Text(given.error),) if given.error else _parts(given)
            ok = given.error is None
            return tool_result(ToolResult(given.tool_call_id, name, parts, ok=ok))
        case _:
            return None


def _text(given: AguiMessage) -> str:
    if isinstance(given.content, list):
        return "".join(part.text or "" for part in given.content)
    return given.content if isinstance(given.content, str) else ""


def _parts(given: AguiMessage) -> tuple[Content, ...]:
    if isinstance(given.content, list):
        return tuple(map(_part, given.content))
    return (Text(_text(given)),)


def _part(part: Part) -> Content:
    if part.type == "text":
        return Text(part.text or "")
    source = part.source
    if part.type == "binary" and source is None:
        value = part.data if part.url is None else part.url
        if value is not None:
            source = Source("data" if part.url is None else "url", value, part.mime_type)
    if source is None or source.type not in ("data", "url"):
        raise ValueError(f"a part {part.type!r} needs `data` or a `url` to be read from.")
    data = base64.b64decode(source.value, validate=True) if source.type == "data" else None
    url = source.value if source.type == "url" else None
    kind = source.mime_type
    if part.type == "image" or (kind or "").startswith("image/"):
        return Image(data, url, kind or "image/png")
    return File(data, url, kind or "application/octet-stream", part.filename)
