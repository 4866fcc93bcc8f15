"""What clients ask in protobuf, as jobs."""

from typing import Any, TypeVar

import msgspec

from retinue.errors import ConfigError
from retinue.messages import Message, user
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.jobs import Answered, Choices, ClientTool, Job

T = TypeVar("T")
D = TypeVar("D")


def started(gateway: Gateway, start: pb.Start, *, remaining: float | None = None) -> Job:
    """The job that a `Start` asks for.

    Args:
        gateway: whose agents are meant.
        start: what was asked.
        remaining: seconds until the deadline of the call, or None.

    Raises:
        ConfigError: nothing is asked, or a field holds what it cannot.
        Refused: it names no agent and there is not one alone, as `Gateway.agent_name`; or it is
            over the size (`too_large`).
    """
    _check_size(gateway, start)
    asked = start.WhichOneof("input")
    if asked == "text" and start.text:
        messages: tuple[Message, ...] = (user(start.text),)
    elif asked == "messages_json":
        messages = _read("messages_json", start.messages_json, tuple[Message, ...], ())
    else:
        messages = ()
    if not messages:
        raise ConfigError("Nothing is asked; give `text`, or `messages_json` with a message.")
    return Job(
        agent=gateway.agent_name(start.agent or None),
        messages=messages,
        conversation=start.conversation or None,
        context=_read("context_json", start.context_json, dict[str, Any], dict[str, Any]()),
        choices=_read("choices_json", start.choices_json, Choices, Choices()),
        tools=_read("tools_json", start.tools_json, tuple[ClientTool, ...], ()),
        output=_read("output_json", start.output_json, dict[str, Any], None),
        request=start.request_id or None,
        seconds=_seconds(start.timeout_seconds, None if start.detached else remaining),
        detached=start.detached,
        measure=start.measure,
        final_only=start.final_only,
    )


def answering(gateway: Gateway, answer: pb.Answer) -> Job:
    """The job that an `Answer` asks for.

    Raises:
        ConfigError: a field holds what it cannot.
        Refused: as for `started`.
    """
    _check_size(gateway, answer)
    if not answer.conversation:
        raise ConfigError("Say in which `conversation` the turn waits.")
    return Job(
        agent=gateway.agent_name(answer.agent or None),
        kind="resume",
        answers=_read(
            "answers_json", answer.answers_json, dict[str, Answered], dict[str, Answered]()
        ),
        conversation=answer.conversation,
        context=_read("context_json", answer.context_json, dict[str, Any], dict[str, Any]()),
        choices=_read("choices_json", answer.choices_json, Choices, Choices()),
        request=answer.request_id or None,
        seconds=_seconds(answer.timeout_seconds, None),
        detached=answer.detached,
        measure=answer.measure,
    )


def _check_size(gateway: Gateway, asked: pb.Start | pb.Answer) -> None:
    limit = gateway.bounds.body_bytes
    if asked.ByteSize() > limit:
        raise Refused("too_large", f"The message is over {limit} bytes.")


def _seconds(asked: float, remaining: float | None) -> float | None:
    if asked < 0 or asked != asked:
        raise ConfigError(f"A turn cannot have {asked!r} seconds; give a number above 0.")
    if not asked:
        return remaining
    return asked if remaining is None else min(asked, remaining)


def _read(name: str, text: str, kind: type[T], default: D) -> T | D:
    if not text:
        return default
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigError(f"`{name}` cannot be read: {error}.") from error
