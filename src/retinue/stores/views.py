"""What a log means for the next turn: what is sent of it, what of an input it holds, and where its
turns begin and end. No I/O."""

from collections.abc import Sequence
from typing import Final

from retinue.messages import Message, Part, Text, Thinking
from retinue.messages.window import is_question, turns
from retinue.stores.base import Entry

_ASKING: Final = ("user", "system")


def answered(entries: Sequence[Entry]) -> list[Message]:
    """The messages of the log that later turns are sent.

    Superseded and unanswered ones are left out, answers that say nothing too, and so are questions
    that another turn's question follows: no two turns' questions stand in a row.
    """
    sent: list[Message] = []
    open_: list[Entry] = []
    for entry in entries:
        message = entry.message
        if entry.state or (message.role == "assistant" and not _says_something(message)):
            continue
        if message.role in _ASKING:
            if open_ and open_[-1].turn != entry.turn:
                open_ = []
            open_.append(entry)
            continue
        sent += [one.message for one in open_]
        open_ = []
        sent.append(message)
    return sent


def in_turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries in pieces, one a turn.

    A question that was asked again, since nobody had answered it, is one turn with its answer,
    though each has the id of the turn that wrote it.
    """
    pieces: list[list[Entry]] = []
    for entry in entries:
        last = pieces[-1] if pieces else []
        asked_before = last and not _asks(entry.message) and all(_asks(e.message) for e in last)
        if asked_before or (last and last[-1].turn == entry.turn):
            last.append(entry)
        else:
            pieces.append([entry])
    return pieces


def resent(entries: Sequence[Entry], messages: Sequence[Message]) -> int:
    """How many messages at the head of an input the log holds already (B-ME-3).

    A caller that sends its whole transcript every time is recognised by the ids of its messages,
    or, where it keeps none, by its last question with an answer. A question that the log has no
    answer to may be asked again.
    """
    return max(_by_id(entries, messages), _by_question(entries, messages))


def displaced(entries: Sequence[Entry], messages: Sequence[Message]) -> frozenset[str]:
    """The ids of those messages that the log has in a place where an answer could not follow.

    They are questions that were not answered and are asked again, after others were answered or
    together with new ones. Asked again alone, a question is answered where it stands.
    """
    past, ids = answered(entries), [entry.message.id for entry in entries]
    if {message.id for message in messages} <= set(ids):
        ids = ids[: ids.index(past[-1].id)] if past else []
    return frozenset(ids).intersection([message.id for message in messages])


def _by_id(entries: Sequence[Entry], messages: Sequence[Message]) -> int:
    sent = {message.id for message in answered(entries)}
    held = {e.message.id for e in entries if e.message.id in sent or not _asks(e.message)}
    return max((at for at, message in enumerate(messages, 1) if message.id in held), default=0)


def _by_question(entries: Sequence[Entry], messages: Sequence[Message]) -> int:
    questions = {_content(message) for message in answered(entries) if is_question(message)}
    end = len(messages) - 1
    for turn in reversed(turns(messages[:-1])):
        if not all(map(_asks, turn)) and any(_content(m) in questions for m in turn if _asks(m)):
            return end
        end -= len(turn)
    return 0


def _asks(message: Message) -> bool:
    return message.role in _ASKING and not message.origin


def _says_something(message: Message) -> bool:
    return any(
        part.text.strip() if isinstance(part, Text) else not isinstance(part, Thinking)
        for part in message.parts
    )


def _content(message: Message) -> tuple[str, tuple[Part, ...]]:
    return message.text, tuple(part for part in message.parts if not isinstance(part, Text))
