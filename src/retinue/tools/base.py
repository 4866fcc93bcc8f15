"""What passes between a tool and those who run it: the context in, the return and response out."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from msgspec import Struct, structs

from retinue.errors import Failure
from retinue.messages import ToolResult

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class CancelToken:
    """Tells a running tool that its result is no longer wanted. Any thread may read it.

    Args:
        parent: a token that stands for this one too, as that of a turn does for those of its
            calls.
    """

    __slots__ = ("_cancelled", "_parent")

    def __init__(self, parent: "CancelToken | None" = None) -> None:
        self._cancelled = False
        self._parent = parent

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted."""
        return self._cancelled or (self._parent is not None and self._parent.cancelled)

    def cancel(self) -> None:
        """Says that the result is no longer wanted. The parent does not hear of it."""
        self._cancelled = True


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a tool may know of the turn it runs in (R-TOOL-3). It is read-only.

    A tool gets it by taking a parameter annotated `ToolContext`; the model never sees that
    parameter.

    Attributes:
        call_id: the id of this call.
        turn_id: the id of the turn.
        conversation: the conversation's id, or None outside one, as in a sub-agent.
        owner: whose conversation it is, or None.
        data: the object given to `run(..., data=...)`.
        state: the slots as they were when the batch began; the same for all its calls.
        context: what layers and the caller attached to the turn.
        cancel: set when the turn is cancelled or the call's time is up.
        scope: the library's own.
        place: the conversation of the outermost turn, for the idempotency key.
    """

    call_id: str
    turn_id: str
    conversation: str | None = None
    owner: str | None = None
    data: Any = None
    state: Mapping[str, Any] = NOTHING
    context: Mapping[str, Any] = NOTHING
    cancel: CancelToken
    scope: Any = None
    place: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for every run of this call, in this process or another; another one in each
        fork of the conversation."""
        return f"{self.place or self.conversation or ''}:{self.turn_id}:{self.call_id}"


class ToolReturn(Struct, frozen=True):
    """A tool's result together with what it writes to the state (R-TOOL-4)."""

    value: Any
    writes: Mapping[str, Any] = NOTHING


class ToolResponse(Struct, frozen=True, kw_only=True):
    """What came of one call, as tool layers see it.

    Attributes:
        result: what the model is told.
        writes: slots to be folded at the barrier; empty for all but a success.
        failure: the class of the failure, None for a success (R-FAIL-1).
        error: the exception behind the failure, where there was one.
        retry_after: seconds that the failure asked to wait.
        blocked_by: the layer that answered without running the tool.
        reason: why it did.
        waiting: what the call waits for, where it cannot end now (`tools.asking.Waiting`).
    """

    result: ToolResult
    writes: Mapping[str, Any] = NOTHING
    failure: Failure | None = None
    error: BaseException | None = None
    retry_after: float | None = None
    blocked_by: str | None = None
    reason: str | None = None
    waiting: Any = None

    @property
    def ok(self) -> bool:
        """Whether the tool ran and returned."""
        return self.result.ok

    @property
    def refused(self) -> bool:
        """Whether a layer or a gate refused the call."""
        return self.reason is not None and not self.result.ok

    def with_(self, **changes: Any) -> Self:
        """A changed copy."""
        return structs.replace(self, **changes)
