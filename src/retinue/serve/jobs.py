"""What is to be run, as plain data: it goes to an agent in this process or over a wire to another.

A job holds no object of the caller's and no secret: the key of a provider stays where the model
is. `Job.dump` and `Job.load` are its form on the wire, `{"format": 1, ...}`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from retinue.chains import Settings
from retinue.messages import Message, new_id
from retinue.messages.codec import FormatError
from retinue.tools import Answer, Approve, Proceed, Reject, Reply, Retry

FORMAT: Final = 1

ToolName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Answered(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An answer to a call that waits.

    Attributes:
        kind: what is answered; what a call takes stands in its `kind`.
        args: with `approve`, the arguments that the call runs on in place of the model's.
        reason: with `reject`, what the model is told.
        value: with `reply`, the result of the call: a text as it is, all else as JSON.

    Raises ValueError where one of the last three stands with another kind.
    """

    kind: Literal["approve", "reject", "reply", "retry", "proceed"]
    args: dict[str, Any] | None = None
    reason: str = ""
    value: Any = None

    def __post_init__(self) -> None:
        for name, kind in _TAKEN_WITH.items():
            if self.kind != kind and getattr(self, name) not in (None, ""):
                raise ValueError(f"`{name}` goes with the kind {kind!r}, not with {self.kind!r}")

    @property
    def answer(self) -> Answer:
        """The answer as an agent takes it."""
        match self.kind:
            case "approve":
                return Approve(self.args)
            case "reject":
                return Reject(self.reason or "It was refused.")
            case "reply":
                return Reply(self.value)
            case "retry":
                return Retry()
            case "proceed":
                return Proceed()


_TAKEN_WITH: Final = {"args": "approve", "reason": "reject", "value": "reply"}


class ClientTool(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool that the client runs itself: the turn pauses, and an answer is its result.

    Attributes:
        parameters: JSON Schema of its arguments.
    """

    name: ToolName
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object"})


class Choices(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How the model shall answer, as far as a client may say it: see `retinue.Settings`.

    Headers and further fields of the provider's request are the server's business.
    """

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    stop: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    effort: str | None = None

    @property
    def settings(self) -> Settings:
        """The same as an agent takes it."""
        return Settings(**msgspec.structs.asdict(self))


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn to be run, or to be gone on with.

    Attributes:
        id: the name of the job, and of the turn that a `run` begins. A job is run once.
        agent: the name of the agent.
        kind: `run` begins a turn with `messages`; `resume` goes on with the paused turn of
            `conversation` by `answers`; `recover` goes on with its turn that was cut off.
        messages: what is asked.
        answers: answers by the ids of what is pending.
        conversation: the id under which the turn is stored, or None.
        owner: whose conversation it is, or None where nobody is told apart.
        context: values for layers and tools.
        choices: how the model shall answer.
        tools: tools that the client runs itself.
        output: JSON Schema of the answer, or None.
        request: the client's own id of the request, or None.
        seconds: how long the turn may take from when the job is handed over, or None. It is a
            span and no time of day, since clocks differ.
        detached: whether the turn goes on without a reader.
        final_only: leave out text that the model says before it calls a tool.
        measure: whether the events tell what layers took and what model calls cost.
    """

    format: int = FORMAT
    id: str = field(default_factory=new_id)
    agent: str
    kind: Literal["run", "resume", "recover"] = "run"
    messages: tuple[Message, ...] = ()
    answers: Mapping[str, Answered] = field(default_factory=dict[str, Answered])
    conversation: str | None = None
    owner: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    choices: Choices = Choices()
    tools: tuple[ClientTool, ...] = ()
    output: Mapping[str, Any] | None = None
    request: str | None = None
    seconds: float | None = None
    detached: bool = False
    final_only: bool = False
    measure: bool = False

    def dump(self) -> bytes:
        """The job as JSON. TypeError, ValueError: the context holds what JSON cannot."""
        return _encoder.encode(self)

    @classmethod
    def load(cls, document: bytes | str) -> "Job":
        """The job that `dump` wrote.

        Raises:
            FormatError: it is no job, or one of a later format.
        """
        try:
            version = _version.decode(document).format
            if version != FORMAT:
                raise FormatError(
                    f"This job has format {version}, and this version of retinue reads format"
                    f" {FORMAT}; upgrade retinue."
                )
            return _decoder.decode(document)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise FormatError(f"This is no job: {error}.") from error


class _Versioned(Struct):
    format: int = FORMAT


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Job)
_version: Final = msgspec.json.Decoder(_Versioned)
