"""Where a turn stands, folded from its events: what a reader who missed some is shown.

A pure fold: events in, a `Resync` out. Events of sub-agents are left out of it.
"""

from collections.abc import Sequence

from msgspec import structs

from retinue.chains import events
from retinue.chains.events import Event
from retinue.messages import Message
from retinue.serve.wire import Resync, ShownCall
from retinue.tools import PendingCall


class Picture:
    """The round that is going on.

    Attributes:
        seq: the number of the last event in it. The end of the turn is not one of them.
        rounds: how many rounds have begun.
        pending: what the turn waits for.
    """

    __slots__ = (
        "_attempt", "_calls", "_indices", "_round", "_text", "_thinking", "_written", "pending",
        "rounds", "seq",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seq = 0
        self.rounds = 0
        self._round = self._attempt = 0
        self.pending: tuple[PendingCall, ...] = ()
        self._begin()

    @property
    def weight(self) -> int:
        """About how many bytes of text it holds."""
        pieces = (self._text, self._thinking, *self._written.values())
        results = (call.text for call in self._calls.values())
        return sum(len(piece) for some in (*pieces, results) for piece in some)

    def add(self, event: Event) -> None:
        """Takes the next event."""
        if isinstance(event, events.TurnEnded) and not event.path:
            return
        self.seq = event.seq
        if event.path:
            return
        self._round, self._attempt = event.round, event.attempt
        match event:
            case events.TextChunk():
                self._text.append(event.text)
            case events.ThinkingChunk():
                self._thinking.append(event.text)
            case events.ToolArguments():
                self._write(event)
            case events.ToolStarted():
                self._change(event.call_id, event.name, started=True)
            case events.ToolFinished():
                self._change(event.call_id, event.name, ok=event.ok, text=event.text)
            case events.RoundStarted():
                self.rounds += 1
                self._begin()
            case events.AttemptStarted() | events.AttemptDiscarded():
                self._begin()
            case events.Paused():
                self.pending = event.pending
            case _:
                pass

    def resync(self, turn: str, conversation: str | None, log: Sequence[Message]) -> Resync:
        """What a reader is shown.

        Args:
            turn: the id of the turn.
            conversation: that of the turn, or None.
            log: the messages of the turn that are stored.
        """
        return Resync(
            seq=self.seq,
            turn=turn,
            conversation=conversation,
            round=self._round,
            attempt=self._attempt,
            messages=tuple(log[: self._first_of_round(log)]),
            text="".join(self._text),
            thinking="".join(self._thinking),
            calls=tuple(map(self._whole, self._calls.values())),
            pending=self.pending,
        )

    def _first_of_round(self, log: Sequence[Message]) -> int:
        """Where in the log the round begins that is shown apart; its length if it is not there."""
        for at in range(len(log) - 1, -1, -1):
            message = log[at]
            if message.role == "assistant":
                ids = {call.id for call in message.tool_calls}
                said = "".join(self._text)
                same = ids <= self._calls.keys() if ids else bool(said) and message.text == said
                return at if same else len(log)
        return len(log)

    def _begin(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[str, ShownCall] = {}
        self._written: dict[str, list[str]] = {}  # the arguments of the calls, in fragments
        self._indices: dict[int, str] = {}

    def _write(self, event: events.ToolArguments) -> None:
        call_id = event.call_id or self._indices.get(event.index, "")
        self._indices[event.index] = call_id
        self._written.setdefault(call_id, []).append(event.fragment)
        self._change(call_id, event.name)

    def _whole(self, call: ShownCall) -> ShownCall:
        return structs.replace(call, arguments="".join(self._written.get(call.call_id, ())))

    def _change(self, call_id: str, name: str, **changes: object) -> None:
        known = self._calls.get(call_id) or ShownCall(call_id, name)
        self._calls[call_id] = structs.replace(known, **changes) if changes else known
