"""A vendor that tests of models call: what it is told to do, and what it tells of its callers.

`FaultyVendor` is one on this machine, for any format of which there is a `Dialect`. The model
contract runs against whatever is a `Vendor`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, field

from retinue.errors import Failure
from retinue.messages import ToolCall

KEY: Final = "sk-contract-of-models"
"""The key that models of the contract have."""

TEXT: Final = ("Grüße ", "aus 東京 ", "🌍, ", "und noch ", "viel mehr ", "Text.")
"""What a vendor says, in its chunks, unless a step has something else."""

TOKENS: Final = (12, 34)
"""The tokens that a vendor reports: of the prompt, and of the answer."""

Fault = Literal["reset", "close", "hang", "error", "stop"]
"""How an answer goes wrong: the connection is reset or closed, nothing more comes until the reader
leaves, the vendor says that it failed, or the body ends as if all were well."""

Place = Literal["before", "headers", "within"]
"""Where it goes wrong: before anything is sent, after the headers, or after some of the text."""

Bad = Literal["key", "model", "context", "quota", "schema"]
"""What is bad of a request: the key is wrong, there is no such model, the messages are longer than
the context, the account has no credit, or the schema of the answer is not taken."""


class Step(Struct, frozen=True, kw_only=True):
    """One answer of a vendor.

    Attributes:
        text: what it says, in these chunks.
        call: the tool that it asks for after that.
        bad: it refuses the request for this, with its own status and in its own words.
        status: an HTTP status of an error instead of an answer.
        message: what the vendor says of an error.
        headers: further headers of the answer.
        fault: what goes wrong.
        at: where it goes wrong. In an answer that is not streamed, "within" is half of it.
        drip: seconds before each event of a stream.
        split: the size in bytes of the pieces that the body comes in; "utf8" cuts inside every
            character of more than one byte.
        gzip: whether the body is compressed.
        crlf: whether lines of a stream end in CRLF.
        comments: whether comments stand between the events of a stream.
        html: a web page with status 200 instead of an answer.
        truncated: whether the JSON ends in its middle, and the body with it.
        stale: what happens to the kept connection: "closed" at once, or "reset" at its next use.
        when: only for requests that hold this text.
        repeat: whether it answers every such request; else one.
    """

    text: Sequence[str] = TEXT
    call: ToolCall | None = None
    bad: Bad | None = None
    status: int | None = None
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: Fault | None = None
    at: Place = "before"
    drip: float = 0.0
    split: int | Literal["utf8"] = 0
    gzip: bool = False
    crlf: bool = False
    comments: bool = False
    html: bool = False
    truncated: bool = False
    stale: Literal["closed", "reset"] | None = None
    when: str = ""
    repeat: bool = False


class Seen(Struct):
    """One request that a vendor got.

    Attributes:
        target: where it was for; from a client of a proxy, a whole URL.
        headers: their names are in lower case.
        body: the JSON; None if it is none.
        connection: a number for each connection.
        left: the time (seconds since the epoch) when its reader was seen to leave, or None.
    """

    target: str
    headers: Mapping[str, str]
    body: Any
    connection: int
    left: float | None = None


class Vendor(Protocol):
    """What the model contract asks of a vendor."""

    @property
    def url(self) -> str:
        """The base URL, for the model."""
        ...

    def script(self, *steps: Step) -> None:
        """Sets the answers to come, one a request, each to the first request that it is for."""
        ...

    async def seen(self) -> Sequence[Seen]:
        """The requests so far, in the order they came."""
        ...

    async def arrived(self, count: int) -> None:
        """Waits until so many requests have come."""
        ...

    async def left(self) -> Seen:
        """Waits until the reader of the last answer has left; the request that was for."""
        ...

    async def idle(self) -> None:
        """Waits until no connection is open."""
        ...


class Refusal(Struct, frozen=True):
    """How a vendor refuses a request.

    Attributes:
        status: the HTTP status.
        body: JSON.
        words: what of it a user must see.
        failure: who can mend it: of key and quota a person, mostly.
    """

    status: int
    body: bytes
    words: str
    failure: Failure = "semantic"


class Frames(Struct, frozen=True):
    """A streamed answer as server-sent events, each with its blank line, with `\\n` as line end.

    Attributes:
        begin: what comes before the text.
        said: one event for each chunk of the text.
        end: what comes after it: calls, the finish reason, usage, the end marker.
    """

    begin: Sequence[bytes]
    said: Sequence[bytes]
    end: Sequence[bytes]


class Dialect(Protocol):
    """A vendor's format, as far as a faulty vendor must write it.

    Answers report `TOKENS`, and finish because the model was done, or for the call.
    """

    @property
    def refusals(self) -> Mapping[Bad, Refusal]:
        """How bad requests are refused."""
        ...

    def streams(self, target: str, body: Mapping[str, Any]) -> bool:
        """Whether a request asks for a stream."""
        ...

    def whole(self, text: Sequence[str], call: ToolCall | None) -> bytes:
        """An answer as JSON."""
        ...

    def frames(self, text: Sequence[str], call: ToolCall | None) -> Frames:
        """The same answer, streamed."""
        ...

    def failure(self, status: int, message: str) -> bytes:
        """The JSON that says that the vendor failed."""
        ...

    def broken(self, message: str) -> bytes:
        """An event that says so in the middle of a stream."""
        ...
