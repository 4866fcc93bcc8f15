"""Runs an answer through a vendor's decoder, cut into chunks, and folds what comes out."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Accumulator, Delta, Message, Thinking
from retinue.models import sse
from retinue.models.failures import Peer

SECRETS: Final = ["sk-secret-secret", "AIza-secret-secret"]


class Decoded(Struct, frozen=True):
    """What came out."""

    message: Message
    deltas: list[Delta]
    meta: dict[str, Any]
    error: ModelError | None

    @property
    def kept(self) -> list[dict[str, Any]]:
        """What is kept as it came, to go back so."""
        thoughts = [part for part in self.message.parts if type(part) is Thinking]
        return [json.loads(thought.opaque) for thought in thoughts if thought.opaque]

    @property
    def shape(self) -> list[str]:
        """The types of the parts."""
        return [type(part).__name__ for part in self.message.parts]


class Decoding:
    """One vendor's decoder, and of whom its errors speak."""

    def __init__(self, decoder: Callable[..., Any], provider: str, variable: str) -> None:
        self.peer = Peer(provider, "api.example", "some-model", variable, SECRETS)
        self._decoder = decoder
        self._provider = provider

    def stream(self, chunks: Iterable[bytes]) -> Decoded:
        """A stream, chunk by chunk."""
        events = sse.Decoder()
        decoder = self._decoder(self.peer)
        deltas: list[Delta] = []
        for chunk in chunks:
            for event in events.feed(chunk):
                deltas += decoder.feed(event)
        for event in events.flush():
            deltas += decoder.feed(event)
        return self._finish(decoder, deltas)

    def whole(self, body: bytes | dict[str, Any] | list[Any]) -> Decoded:
        """A whole answer."""
        decoder = self._decoder(self.peer, whole=True)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._finish(decoder, list(decoder.feed(sse.Event(data))))

    def _finish(self, decoder: Any, deltas: list[Delta]) -> Decoded:
        error = None
        try:
            deltas += decoder.end()
        except ModelError as raised:
            error = raised
        folded = Accumulator()
        for delta in deltas:
            folded.add(delta)
        return Decoded(folded.message(provider=self._provider), deltas, decoder.meta, error)


def pieces(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The body cut at these places."""
    at = [0, *sorted(cuts), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(at)]


def arguments(text: str) -> Any:
    """A call's arguments as a recording has them: parsed, or the raw text if that fails."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
