"""What one turn shares among its layers: the one mutable thing behind the frozen requests.

A scope belongs to one turn and dies with it. Layers reach it only through the methods of their
requests; the loop and the models use it directly.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from retinue.chains import events
from retinue.chains.channel import Channel
from retinue.chains.log import Log
from retinue.chains.responses import ChatResponse, Spent, TurnResponse
from retinue.chains.stopping import Stopping
from retinue.chains.taps import Pump, Pumps, Tap
from retinue.messages import Message, ToolResult, Usage, new_id
from retinue.tools import NOTHING, ToolResponse

if TYPE_CHECKING:
    from retinue.chains.measuring import Price, Times
    from retinue.chains.meter import Meter
    from retinue.chains.output import Output
    from retinue.chains.send import Delivery
    from retinue.chains.settings import Settings

    Consult = Callable[
        ["Scope", tuple[Message, ...], Any, str | None, Settings | None, Output | None],
        Awaitable[ChatResponse],
    ]


class Scope:
    """One turn.

    Attributes:
        id: the turn's id.
        agent: the name of the agent.
        model: the agent's own model; it has a `name` and a `provider`.
        consult: asks a model on the side; set by the agent.
        log: what was said so far, and where it is stored.
        stopping: how the turn is stopped.
        channel: the way to the reader, or None if nobody reads.
        pumps: what else reads the events, or None.
        path: the calls that lead to this (sub-)agent.
        place: the conversation of the outermost turn, or None.
        final_only: whether the reader wants the text of the answer alone.
        price: what a model call cost, for a reader who asked to be told.
        times: what the layers take, for the same reader.
        standing: the last delivery, whose text the reader holds.
        round, attempt: the numbers of the last ones.
        token_limit: tokens that the turn may use, or None.
        meters: who is asked before each model call, by the id of the layer that brought it.
        deadline: when the turn's time is up, by the clock of the event loop, or None.
        seconds: how long it may take, where there is a deadline.
        spent: the model calls so far, those of sub-agents included; `usage` is their sum.
        estimated: tokens of calls whose provider reported none.
        state: the slots as the last barrier left them.
        call_ids: the ids of all calls of the turn that were run or answered.
        results: what came of the calls of the present batch, by call id, as they finish.
        batch: the calls of the present round, as far as they are decided; the loop's own.
        resumption: what the turn goes on with after a pause, until it has; the loop's own.
        finished: how the inner loop ended last.
        latest: what the loop, or the turn layer inside the present one, gave; re-entry goes on
            from it.
        outcome: how the turn ended, once it has.
    """

    __slots__ = (
        "_carried", "_carriers", "_locals", "agent", "attempt", "batch", "call_ids", "channel",
        "consult", "deadline", "estimated", "final_only", "finished", "id", "latest", "log",
        "meters", "model", "outcome", "path", "place", "price", "pumps", "results", "resumption",
        "round", "seconds", "spent", "standing", "state", "stopping", "times", "token_limit",
        "usage",
    )  # fmt: skip

    def __init__(
        self,
        consult: "Consult",
        channel: Channel | None = None,
        token_limit: int | None = None,
    ) -> None:
        self.id = new_id()
        self.agent = ""
        self.model: Any = None
        self.consult = consult
        self.stopping = Stopping()
        self.log = Log(self.stopping)
        self.channel = channel
        self.pumps: Pumps | None = None
        self.path: tuple[str, ...] = ()
        self.place: str | None = None
        self.final_only = False
        self.price: Price | None = None
        self.times: Times | None = None
        self.standing: Delivery | None = None
        self.round = 0
        self.attempt = 0
        self.token_limit = token_limit
        self.meters: dict[int, Meter] = {}
        self.deadline: float | None = None
        self.seconds = 0.0
        self.spent: list[Spent] = []
        self.usage = Usage()
        self.estimated = 0
        self.state: Mapping[str, Any] = NOTHING
        self.call_ids: set[str] = set()
        self.results: dict[str, ToolResponse] = {}
        self.batch: Any = None
        self.resumption: Any = None
        self.finished: TurnResponse | None = None
        self.latest: TurnResponse | None = None
        self.outcome: TurnResponse | None = None
        self._carriers: dict[str, Message] = {}
        self._carried: set[str] = set()
        self._locals: dict[int, dict[str, Any]] = {}

    def goes_on(self, turn: str, messages: Iterable[Message]) -> None:
        """The turn has begun elsewhere, and these are its messages."""
        self.id = turn
        for message in messages:
            self.call_ids.update(call.id for call in message.tool_calls)
            self._carried.update([message.id] if message.role == "tool" else ())

    def begin_batch(self, carried: Iterable[Message] = ()) -> None:
        """The calls of a new round are to come; messages that carry some results are there."""
        self.results.clear()
        self._carriers.clear()
        for message in carried:
            self._carriers[message.tool_results[0].call_id] = message

    def carrier(self, result: ToolResult) -> Message:
        """The message that carries a result. Its id follows from the turn and the call, so that it
        is stored once, whenever and wherever it is made."""
        made = self._carriers.get(result.call_id)
        if made is not None and made.parts[0] is result:
            return made
        name = self._name_of(result) if made is None else made.id
        made = self._carriers[result.call_id] = Message("tool", (result,), name)
        return made

    def _name_of(self, result: ToolResult) -> str:
        name = first = f"{self.id}:{result.call_id}"
        again = 1
        while name in self._carried:  # a layer gave the same calls again
            again += 1
            name = f"{first}:{again}"
        self._carried.add(name)
        return name

    def local(self, owner: object) -> dict[str, Any]:
        """The scratch of one layer for this turn."""
        return self._locals.setdefault(id(owner), {})

    def tap(self, pump: Pump, tap: Tap, conversation: str | None) -> None:
        """Lets a pump hear the turn, from its first event on if this is the outermost layer."""
        begun = events.TurnStarted(1, 0, 0, (), self.id, conversation)
        if self.channel is None:
            self.channel = Channel()
            self.channel.abandon()
            self.channel.seq = 0 if self.path else begun.seq
        if not self.path:
            tap.put(begun)
        if self.pumps is None:
            self.pumps = Pumps(self.stopping.fail)
        self.pumps.start(tap, self.channel, pump)

    def end(self, outcome: TurnResponse) -> TurnResponse:
        """The turn has ended; whatever a layer has left running ends with it."""
        self.stopping.over = True
        if self.log.changes:
            outcome = outcome.with_(messages=self.log.kept(outcome.messages))
        self.outcome = outcome
        return outcome

    @property
    def tokens(self) -> int:
        """Tokens used so far; calls that reported none are estimated."""
        return self.usage.total + self.estimated

    def charge(self, spent: Iterable[Spent], *, report: bool = True) -> None:
        """Adds model calls to the turn's account, and tells the reader unless he knows already."""
        for one in spent:
            self.spent.append(one)
            self.usage = self.usage + one.usage
            if report:
                cost = None if self.price is None else self.price([one])
                self.emit(events.UsageReported, usage=one.usage, total=self.usage, cost=cost)

    def emit(self, kind: type[events.Event], **fields: Any) -> None:
        """Tells the reader, if there is one."""
        channel = self.channel
        if channel is not None:
            channel.put(kind(channel.seq + 1, self.round, self.attempt, self.path, **fields))
