"""Calls that wait for somebody: what is asked, and the answers that it takes (R-HITL).

A call waits for one of four reasons, which are different things to whoever answers:

    approval     a person must allow it         Approve() · Approve(args) · Reject · Reply
    question     the model asks a person        Reply · Reject
    external     somebody else runs the tool    Reply (its result) · Reject (it was not run)
    environment  a person must mend something   Retry() · Proceed() (go on with the failure)
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from retinue.tools.options import Retry
from retinue.tools.tool import Tool

UNDER: Final = "/"
"""What joins the id of a sub-agent's call to that of the call that runs the sub-agent."""

Kind = Literal["approval", "question", "external", "environment"]


class Approve(Struct, frozen=True):
    """The call may run; with `args` in place of the model's arguments, if given."""

    args: Mapping[str, Any] | None = None


class Reject(Struct, frozen=True):
    """The call does not run; the model is told why."""

    reason: str


class Reply(Struct, frozen=True):
    """The call does not run; this is its result."""

    value: Any


class Proceed(Struct, frozen=True):
    """A gate lets the call run; an answer goes on with the failure as it is."""


class Pause(Struct, frozen=True):
    """A gate lets the turn wait until somebody has answered. `why` is what they are told."""

    why: str = "This call needs approval."


Answer = Approve | Reject | Reply | Retry | Proceed

TAKES: Final[Mapping[Kind, tuple[type, ...]]] = {
    "approval": (Approve, Reject, Reply),
    "question": (Reply, Reject),
    "external": (Reply, Reject),
    "environment": (Retry, Proceed),
}
"""The answers that each kind takes."""


class PendingCall(Struct, frozen=True, omit_defaults=True):
    """One call that waits.

    Attributes:
        id: what answers are given under: the call's id; of a sub-agent's call, the ids of the calls
            that lead to it joined by "/".
        tool: the tool it names.
        kind: what is asked.
        why: what is asked, in words.
        arguments: what the tool would run on.
        parameters: JSON Schema of the arguments, for whoever edits them.
    """

    id: str
    tool: str
    kind: Kind
    why: str
    arguments: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of the answers that it takes."""
        return tuple(kind.__name__ for kind in TAKES[self.kind])


def check_arguments(call: PendingCall, args: Mapping[str, Any], tools: Sequence[Tool]) -> None:
    """Refuses arguments that the tool of a call would refuse, before the answer is used.

    Those of a sub-agent's call are checked when it runs, and so are those of a tool that is not
    among these.

    Raises:
        ArgumentsError: says what does not fit.
    """
    if UNDER in call.id:
        return  # the sub-agent may have another tool of the same name
    tool = next((one for one in tools if one.name == call.tool), None)
    if tool is not None:
        tool.bind(args)


class Waiting(Struct, frozen=True):
    """What a call that cannot end now leaves behind.

    Attributes:
        pending: what is asked.
        nested: what a sub-agent goes on from, or None.
    """

    pending: tuple[PendingCall, ...]
    nested: Any = None


class CallWaits(BaseException):
    """Raised in a tool to let its turn pause; outside `Exception`, for it is no failure."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__("The call waits for an answer.")
        self.waiting = waiting


def ask_user() -> Tool:
    """A tool by which the model asks the person it talks to. The turn pauses until a `Reply`."""
    return Tool(_ask_user, name="ask_user", asks="question")


def _ask_user(question: Annotated[str, "What you need to know, as one clear question."]) -> str:
    """Asks the user a question and gives the answer. Use it when you cannot go on without it."""
    raise AssertionError(f"nobody runs this, not even for {question!r}")
