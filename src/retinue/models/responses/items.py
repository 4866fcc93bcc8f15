"""The items of one answer, as deltas.

An item begins, grows and is done; a whole answer holds it done at once. The finished item counts:
where fewer deltas came than it holds, the rest is handed on, and an item of which only the end is
seen is read from that. What must go back as it came is handed on before the text or the call that
it led to, so that the order of the items stays.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from retinue.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from retinue.models.loose import UNREADABLE, a_list, a_text, a_value, an_object
from retinue.models.responses.kept import CALLS, MESSAGE, REASONING, Following, Kept


class Item(Struct):
    """The fields of an item that are read, of all types of item."""

    type: Any = None
    id: Any = None
    phase: Any = None
    content: Any = None
    summary: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    caller: Any = None
    arguments: Any = None
    input: Any = None


_item = msgspec.json.Decoder(Item)


class _Open:
    """An item that has begun, and what has been handed on of it."""

    __slots__ = ("call", "done", "named", "said", "source", "type")

    def __init__(self, kind: str, call: int | None = None) -> None:
        self.type = kind
        self.call = call  # the number of the call, if it is one
        self.named = False  # whether the call's name has been said
        self.said: list[str] = []
        self.source = ""  # the field of a reasoning item that is shown, of the two it may have
        self.done = False


class Items:
    """Takes the items of one answer as they begin, grow and end.

    Attributes:
        calls: how many calls have come.
        refusal: the words in which the model refuses.
        citations: what the texts cite, in order.
        executed: the items of tools that the provider runs, and of other kinds, in order.
        logprobs: the log probabilities of the tokens of the texts, where they were asked for.
    """

    __slots__ = ("_kept", "_late", "_open", "calls", "citations", "executed", "logprobs", "refusal")

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._kept = Kept()
        self._late: list[Raw] = []
        self.calls = 0
        self.refusal = ""
        self.citations: list[Any] = []
        self.executed: list[Any] = []
        self.logprobs: list[Any] = []

    @property
    def next(self) -> int:
        """The place of the next item, where it does not say it."""
        return len(self._open)

    def begin(self, place: int, raw: Raw) -> list[Delta]:
        """An item begins at this place of the answer."""
        deltas: list[Delta] = []
        item = _read(raw)
        if item is not None and place not in self._open:
            self._begin(place, item, deltas)
        return deltas

    def say(self, place: int, text: str) -> list[Delta]:
        """More text of a message."""
        item = self._at(place, MESSAGE)
        if not text:
            return []
        deltas = self._flush()
        item.said.append(text)
        deltas.append(TextDelta(text))
        return deltas

    def think(self, place: int, text: str, source: str) -> list[Delta]:
        """More reasoning, of the item's content or of its summary; the first one is shown."""
        item = self._at(place, REASONING)
        item.source = item.source or source
        if not text or item.source != source:
            return []
        item.said.append(text)
        return [ThinkingDelta(text)]

    def call(self, place: int, arguments: str, kind: str) -> list[Delta]:
        """More arguments of a call."""
        deltas: list[Delta] = []
        item = self._open.get(place)
        if item is None:
            item = self._begin(place, Item(type=kind), deltas)
        if item.call is not None and arguments:
            item.said.append(arguments)
            deltas.append(ToolCallDelta(item.call, arguments=arguments))
        return deltas

    def finish(self, place: int, raw: Raw) -> list[Delta]:
        """An item is done. Only the first time counts."""
        deltas: list[Delta] = []
        item = _read(raw)
        open_ = self._open.get(place)
        if item is None or (open_ is not None and open_.done):
            return deltas
        if open_ is None:
            open_ = self._begin(place, item, deltas)
        open_.done = True
        if item.type == MESSAGE:
            self._finish_message(open_, item, deltas)
        elif item.type in CALLS:
            self._finish_call(open_, item, deltas)
        else:
            if item.type == REASONING:
                self._finish_reasoning(open_, item, deltas)
            else:
                self.executed.append(a_value(bytes(raw)))
            late = any(begun > place for begun in self._open)
            (self._late if late else self._kept.output).append(raw)
        return deltas

    def end(self, response: str = "") -> list[Delta]:
        """What is left to keep, and the answer's id if later requests are to go on from it."""
        self._kept.id = response
        self._kept.late = self._late
        self._kept.following = None
        return self._flush()

    # -- one item -----------------------------------------------------------------------------

    def _at(self, place: int, kind: str) -> _Open:
        item = self._open.get(place)
        if item is None:
            item = self._open[place] = _Open(kind)
        return item

    def _begin(self, place: int, item: Item, deltas: list[Delta]) -> _Open:
        kind = a_text(item.type)
        if kind in CALLS:
            open_ = _Open(kind, self.calls)
            self.calls += 1
            self._follow(item)
            deltas += self._flush()
            name = a_text(item.name)
            open_.named = bool(name)
            deltas.append(ToolCallDelta(self.calls - 1, a_text(item.call_id), name))
        else:
            open_ = _Open(kind)
            if kind == MESSAGE:
                self._follow(item)
        self._open[place] = open_
        return open_

    def _finish_message(self, open_: _Open, item: Item, deltas: list[Delta]) -> None:
        text = ""
        for part in map(an_object, a_list(item.content)):
            text += a_text(part.get("text"))
            self.refusal += a_text(part.get("refusal"))
            self.citations += a_list(part.get("annotations"))
            self.logprobs += a_list(part.get("logprobs"))
        if rest := _rest(text, open_):
            deltas += self._flush()
            deltas.append(TextDelta(rest))

    def _finish_reasoning(self, open_: _Open, item: Item, deltas: list[Delta]) -> None:
        content, summary = _text_in(item.content), _text_in(item.summary)
        source = open_.source or ("content" if content else "summary")
        if rest := _rest(content if source == "content" else summary, open_):
            deltas.append(ThinkingDelta(rest))

    def _finish_call(self, open_: _Open, item: Item, deltas: list[Delta]) -> None:
        arguments = item.arguments if item.type == "function_call" else item.input
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()  # an object instead of its text
        rest = _rest(arguments or "", open_)
        name = "" if open_.named else a_text(item.name)
        if open_.call is not None and (rest or name):
            deltas.append(ToolCallDelta(open_.call, name=name, arguments=rest))

    # -- what goes back as it came --------------------------------------------------------------

    def _follow(self, item: Item) -> None:
        following = Following(a_text(item.type), item.id, item.phase, item.namespace, item.caller)
        needed = self._kept.output or not following.is_plain
        self._kept.following = following if needed else None

    def _flush(self) -> list[Delta]:
        kept = self._kept
        if not (kept.output or kept.following or kept.id or kept.late):
            return []
        self._kept = Kept()
        return [ThinkingDelta(opaque=kept.opaque())]


def _read(raw: Raw) -> Item | None:
    try:
        return _item.decode(raw)
    except UNREADABLE:  # no object
        return None


def _rest(whole: str, open_: _Open) -> str:
    """What has not been handed on. Text that came otherwise cannot be taken back."""
    said = "".join(open_.said)
    return whole[len(said) :] if whole.startswith(said) else ""


def _text_in(parts: Any) -> str:
    return "".join(a_text(an_object(part).get("text")) for part in a_list(parts))
