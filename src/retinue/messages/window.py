"""Views of a transcript that fit a budget, and the healing of calls without a result.

Pure functions over messages. A view is cut at turn starts; the log behind it keeps everything.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import dropwhile, pairwise, takewhile

from retinue.messages.message import Message, tool_result
from retinue.messages.parts import Text, ToolCall, ToolResult

Size = Callable[[Message], int]
"""What a message weighs: 1 for a window by messages, its tokens for one by tokens."""


def is_question(message: Message) -> bool:
    """Whether somebody asked this, rather than a layer on the way."""
    return message.role == "user" and message.origin == ""


def turns(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The messages in pieces that start with a question (or the system messages before it)."""
    starts = [
        at
        for at, message in enumerate(messages)
        if at == 0 or (_opens(message) and not _opens(messages[at - 1]))
    ]
    return [tuple(messages[a:b]) for a, b in pairwise([*starts, len(messages)])]


def opening(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What always stays at the head: the conversation's own prompt, which is the system messages
    that it begins with, and a summary behind them."""
    prompt = _prompt(messages)
    summary = takewhile(lambda message: message.origin == "summary", messages[len(prompt) :])
    return (*prompt, *summary)


def begun_at(messages: Sequence[Message], current: Collection[str]) -> int:
    """Where the current turn begins: at the first of its own messages, or at the last question.

    Args:
        messages: the history and the current turn.
        current: the ids of the current turn's messages; a layer may have sent others instead.
    """
    own = (at for at, message in enumerate(messages) if message.id in current)
    last = len(messages) - len(turns(messages)[-1]) if messages else 0
    return next(own, last)


def exchanges(turn: Sequence[Message]) -> list[tuple[Message, ...]]:
    """A turn in pieces that must not be torn: each call with its results is one."""
    pieces: list[list[Message]] = []
    for message in turn:
        if message.role == "tool" and pieces:
            pieces[-1].append(message)
        else:
            pieces.append([message])
    return [tuple(piece) for piece in pieces]


def fit(
    history: Sequence[Message], current: Sequence[Message], limit: int, size: Size
) -> tuple[Message, ...]:
    """The messages that fit into `limit`, the latest ones first to be kept (R-MEM-4).

    Whole turns of the history go, the oldest first. If the current turn alone is too large, its
    oldest calls go with their results. Its questions and its last exchange always stay, and so do
    the system messages and the summary that the history begins with: the view may be larger than
    the limit when they are.

    Args:
        history: the messages of earlier turns.
        current: the messages of this turn.
        limit: the budget, in the unit of `size`.
        size: what a message weighs.
    """
    prompt = opening(history)
    limit -= sum(map(size, prompt))
    room = limit - sum(map(size, current))
    if room < 0:
        return (*prompt, *_trimmed(current, limit, size))
    kept: list[tuple[Message, ...]] = []
    for turn in reversed(turns(history[len(prompt) :])):
        room -= sum(map(size, turn))
        if room < 0:
            break
        kept.append(turn)
    return (*prompt, *(message for turn in reversed(kept) for message in turn), *current)


def overflow(
    history: Sequence[Message],
    current: Sequence[Message],
    limit: int,
    size: Size,
    *,
    keep: float,
    spare: int,
) -> int:
    """How many messages behind the opening a summary has to stand for; 0 if all fit.

    Args:
        history, current, limit, size: as for `fit`.
        keep: the part of the room that is left to the latest turns of the history, where not all
            fit, so that the next turns need no new summary.
        spare: what the new summary will weigh.
    """
    prompt, head = _prompt(history), opening(history)
    room = limit - sum(map(size, prompt)) - sum(map(size, current))
    older = turns(history[len(head) :])
    weights = [sum(map(size, turn)) for turn in older]
    if sum(weights) + sum(map(size, head[len(prompt) :])) <= room:
        return 0
    room = min(int(room * keep), room - spare)
    over = sum(map(len, older))
    for turn, weight in zip(reversed(older), reversed(weights), strict=True):
        room -= weight
        if room < 0:
            break
        over -= len(turn)
    return over


def replaced(
    history: Sequence[Message], through: str, by: Sequence[Message]
) -> tuple[Message, ...]:
    """The history with other messages in the place of all up to the one of the id `through`.

    The results of its calls go with it. The system messages that the history begins with stay.
    Where the id is not there, nothing changes.
    """
    for at in range(len(history) - 1, -1, -1):
        if history[at].id == through:
            rest = dropwhile(lambda message: message.role == "tool", history[at + 1 :])
            return (*_prompt(history), *by, *rest)
    return tuple(history)


def in_call_order(messages: Sequence[Message]) -> list[Message]:
    """The messages with the results of each batch in the order of its calls. A log has them in the
    order in which they came."""
    ordered: list[Message] = []
    places: dict[str, int] = {}
    batch: list[Message] = []
    for message in messages:
        if message.role == "tool" and len(places) > 1:
            batch.append(message)
            continue
        ordered += _sorted(batch, places)
        batch = []
        places = {call.id: at for at, call in enumerate(message.tool_calls)}
        ordered.append(message)
    return ordered + _sorted(batch, places)


def heal(messages: Sequence[Message], why: str) -> tuple[Message, ...]:
    """The messages with a result for every call (R-MEM-5).

    A missing result stands behind the results that are there, and says `why`. A result counts for
    the calls directly before it, since some providers use an id again in every round.
    """
    healed: list[Message] = []
    owed: dict[str, ToolCall] = {}
    for message in messages:
        if owed and message.role != "tool":
            healed += [_missing(call, why) for call in owed.values()]
            owed = {}
        healed.append(message)
        for result in message.tool_results:
            owed.pop(result.call_id, None)
        owed |= {call.id: call for call in message.tool_calls}
    return tuple(in_call_order([*healed, *(_missing(call, why) for call in owed.values())]))


def _sorted(batch: list[Message], places: dict[str, int]) -> list[Message]:
    if len(batch) < 2:
        return batch

    def place(message: Message) -> int:
        known = [places[one.call_id] for one in message.tool_results if one.call_id in places]
        return min(known, default=len(places))

    return sorted(batch, key=place)


def _missing(call: ToolCall, why: str) -> Message:
    result = ToolResult(call.id, call.name, (Text(why),), ok=False)
    return tool_result(result).with_(origin="healed")


def _prompt(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(takewhile(lambda message: message.role == "system", messages))


def _opens(message: Message) -> bool:
    return is_question(message) or message.role == "system"


def _trimmed(current: Sequence[Message], limit: int, size: Size) -> tuple[Message, ...]:
    pieces = exchanges(current)
    room = limit - sum(size(m) for piece in pieces if _stays(piece) for m in piece)
    kept: set[int] = set()
    for at in range(len(pieces) - 1, -1, -1):
        if _stays(pieces[at]):
            kept.add(at)
            continue
        room -= sum(map(size, pieces[at]))
        if room >= 0 or at == len(pieces) - 1:
            kept.add(at)
        else:
            room = -1  # what is older goes too, so that the view has no hole in it
    return tuple(m for at, piece in enumerate(pieces) if at in kept for m in piece)


def _stays(piece: Sequence[Message]) -> bool:
    return piece[0].role in ("user", "system")
