"""What the hooks give back: how a turn, a round or a model call ended. All are frozen.

A tool call's response is `retinue.tools.ToolResponse`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct, structs

from retinue.chains.events import Status
from retinue.chains.output import Output
from retinue.messages import Message, Usage
from retinue.tools import NOTHING, PendingCall, Tool, ToolResponse

if TYPE_CHECKING:
    from retinue.chains.snapshot import Snapshot


class Spent(Struct, frozen=True):
    """What one model call cost in tokens, and which model was asked in which round.

    `estimated` says that the provider reported nothing, and that the tokens are a guess.
    """

    model: str
    provider: str
    usage: Usage
    round: int
    estimated: bool = False


class TurnResponse(Struct, frozen=True, kw_only=True):
    """How a turn ended, as `turn` hooks and the caller see it.

    Attributes:
        id: the id of the turn.
        status: completed, paused, blocked, limit, cancelled or failed.
        message: the final answer as it was shown, or None if there is none.
        messages: all messages of the turn as the log has them, the question first.
        usage: tokens of the whole turn.
        spent: the same, call by call.
        rounds: model rounds that were run.
        reason: why the turn ended, for all statuses but completed; for that, why a layer answered,
            or what is wrong with an answer that never became valid.
        blocked_by: the layer that answered without its inner layers.
        state: the slots when the turn ended.
        context: what the caller and turn layers attached.
        form: the form that the answer was to have, or None.
        error: the exception behind status failed.
        snapshot: what a paused turn goes on from, or None.
        parsed: the library's own: what `with_read` noted.
    """

    id: str
    status: Status = "completed"
    message: Message | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    spent: tuple[Spent, ...] = ()
    rounds: int = 0
    reason: str | None = None
    blocked_by: str | None = None
    conversation: str | None = None
    state: Mapping[str, Any] = NOTHING
    context: Mapping[str, Any] = NOTHING
    form: Output | None = None
    error: BaseException | None = None
    parsed: tuple[Message | None, Any] | None = None
    snapshot: "Snapshot | None" = None

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that wait for an answer, those of sub-agents included."""
        return () if self.snapshot is None else self.snapshot.pending

    @property
    def text(self) -> str:
        """The text of the final answer, empty if there is none."""
        return "" if self.message is None else self.message.text

    @property
    def refused(self) -> bool:
        """Whether a layer refused."""
        return self.status == "blocked"

    @property
    def output(self) -> Any:
        """The answer as a value of the output type that was asked for; None where none was.

        Raises:
            OutputError: the answer does not fit; it is still there as `text`.
        """
        if self.parsed is not None and self.parsed[0] is self.message:
            return self.parsed[1]
        return None if self.form is None else self.form.read(self.text)

    def with_read(self, value: Any) -> Self:
        """A copy that knows what its answer was read as; it is read anew if the answer changes."""
        return structs.replace(self, parsed=(self.message, value))

    def with_(self, **changes: Any) -> Self:
        """A changed copy."""
        return structs.replace(self, **changes)


class ChatResponse(Struct, frozen=True, kw_only=True):
    """What one model call gave, as `chat` hooks see it.

    Attributes:
        message: the answer, as it was shown.
        usage: its tokens; None where the provider said nothing.
        tools: the tools that were on offer, which its calls are looked up in; None for those of
            the request.
        blocked_by: the layer that answered instead of the model.
        reason: why it did.
        refused: whether that ends the turn as blocked.
        meta: what the provider said besides, such as its request id.
    """

    message: Message
    usage: Usage | None = None
    tools: tuple[Tool, ...] | None = None
    blocked_by: str | None = None
    reason: str | None = None
    refused: bool = False
    meta: Mapping[str, Any] = NOTHING

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text

    def with_(self, **changes: Any) -> Self:
        """A changed copy."""
        return structs.replace(self, **changes)


class RoundResponse(Struct, frozen=True, kw_only=True):
    """What one round gave, as `round` hooks see it.

    Attributes:
        messages: the messages of the turn after this round; the next round starts from them.
        message: the model's answer in this round, as it was shown.
        results: what came of its calls, in call order.
        state: the slots after the barrier.
        status: None while the turn goes on, else how it ends.
        reason: why it ends.
        blocked_by: the layer that answered without its inner layers.
    """

    messages: tuple[Message, ...]
    message: Message | None = None
    results: tuple[ToolResponse, ...] = ()
    state: Mapping[str, Any] = NOTHING
    status: Status | None = None
    reason: str | None = None
    blocked_by: str | None = None

    @property
    def refused(self) -> bool:
        """Whether a layer refused."""
        return self.status == "blocked"

    def with_(self, **changes: Any) -> Self:
        """A changed copy."""
        return structs.replace(self, **changes)
