"""What a strict provider refuses, as a check of any list of messages: a request or a log.

It reads messages only; it knows no wire format.
"""

from collections.abc import Collection, Iterator, Sequence

from retinue.messages import Message, Text


def check_transcript(messages: Sequence[Message], *, asked_together: Collection[str] = ()) -> None:
    """Fails on the faults of a transcript, all of them named.

    Args:
        messages: what was sent, or what is in the log.
        asked_together: ids of user messages that belong to one turn, so that they may follow each
            other.
    """
    faults = [*_faults(messages, asked_together)]
    assert not faults, "\n".join((*faults, *map(_line, messages)))


def _faults(messages: Sequence[Message], asked_together: Collection[str]) -> Iterator[str]:
    open_calls: list[str] = []
    seen: set[str] = set()
    before: Message | None = None
    for at, message in enumerate(messages):
        if message.id in seen:
            yield f"{at}: the message {message.id} is there twice"
        seen.add(message.id)
        yield from (f"{at}: {fault}" for fault in _own_faults(message))
        for result in message.tool_results:
            if result.call_id in open_calls:
                open_calls.remove(result.call_id)
            else:
                yield f"{at}: a result of {result.name!r} that no open call asked for"
        if open_calls and not message.tool_results:
            yield f"{at}: a {message.role} message where results of {open_calls} should be"
            open_calls = []
        if (
            before is not None
            and before.role == message.role == "user"
            and not {before.id, message.id} <= set(asked_together)
        ):
            yield f"{at}: a second user message in a row"
        open_calls += [call.id for call in message.tool_calls]
        before = message
    if open_calls:
        yield f"end: calls without a result: {open_calls}"


def _own_faults(message: Message) -> Iterator[str]:
    if not message.parts or all(type(p) is Text and not p.text for p in message.parts):
        yield f"an empty {message.role} message"
    calls = [call.id for call in message.tool_calls]
    if len(set(calls)) != len(calls):
        yield "two calls of one id"
    if calls and message.role != "assistant":
        yield f"a {message.role} message with calls"
    if (message.role == "tool") != bool(message.tool_results):
        yield f"a {message.role} message with {len(message.tool_results)} results"


def _line(message: Message) -> str:
    parts = ", ".join(type(part).__name__ for part in message.parts)
    return f"  {message.role:<9} [{parts}] {message.text[:60]!r}"
