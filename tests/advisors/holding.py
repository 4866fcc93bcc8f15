"""Texts cut into chunks, sent through a transform as a model's answer is."""

from collections.abc import Awaitable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from retinue import Advisor
from retinue.chains import Refusal
from retinue.messages import Delta, TextDelta


def split(text: str, cuts: Sequence[int]) -> list[str]:
    """The text cut at these places."""
    places = [0, *sorted(at % (len(text) + 1) for at in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


cuts = st.lists(st.integers(0, 10_000), max_size=12)
"""Places where a text may be cut, whatever its length."""


async def passed(advisor: Any, deltas: Sequence[Delta]) -> tuple[list[Delta], Refusal | None]:
    """What a transform of the advisor gives for these deltas, and what it refuses."""
    transform = advisor.stream(a_request())
    out: list[Delta] = []
    try:
        for delta in deltas:
            out += await _now(transform.feed(delta))
        out += await _now(transform.flush())
    except Refusal as refusal:
        return out, refusal
    return out, None


async def shown(advisor: Advisor, chunks: Sequence[str]) -> tuple[str, str | None]:
    """The text that leaves, and the reason why no more of it does."""
    out, refusal = await passed(advisor, [TextDelta(chunk) for chunk in chunks if chunk])
    text = "".join(delta.text for delta in out if isinstance(delta, TextDelta))
    return text, None if refusal is None else refusal.reason


class _Request:
    """As much of a request as a transform asks for."""

    def __init__(self) -> None:
        self._locals: dict[int, dict[str, Any]] = {}

    def local(self, owner: object) -> dict[str, Any]:
        return self._locals.setdefault(id(owner), {})


def a_request() -> Any:
    """A request for one model call."""
    return _Request()


async def _now(given: Any) -> Any:
    return await given if isinstance(given, Awaitable) else given
