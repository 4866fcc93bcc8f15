"""What a turn's layers take of its time, for a reader who asked to be told.

A turn that nobody measures pays one look at an attribute for each layer.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from retinue.chains.events import LayerTime
from retinue.messages import Delta

if TYPE_CHECKING:
    from retinue.chains.responses import Spent
    from retinue.chains.send import Transform

R = TypeVar("R")

Price = Callable[[Iterable["Spent"]], float | None]
"""What model calls cost in US dollars, or None where that is not known."""


class Times:
    """The times of one turn, by hook and layer."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[object, _Row] = {}

    def watch(self, layer: object, hook: str, name: str) -> "Watch":
        """A watch for one call of a layer; it runs already.

        Args:
            layer: what tells the layer from others of the same name.
            hook: the hook that is called.
            name: the layer's name.
        """
        return Watch(self._row(layer, hook, name))

    @contextmanager
    def model(self, name: str) -> Generator[None]:
        """Measures a model call, with the transforms that its answer goes through."""
        watch = self.watch(("model", name), "model", name)
        try:
            yield
        finally:
            watch.stop()

    def transform(self, made: "Transform", layer: object, name: str) -> "Transform":
        """The transform, measured."""
        return _Measured(made, self._row(layer, "stream", name))

    def taken(self) -> tuple[LayerTime, ...]:
        """What each layer has taken so far; those of one hook from the outside in."""
        return tuple(
            LayerTime(row.name, row.hook, row.calls, row.seconds) for row in self._rows.values()
        )

    def _row(self, layer: object, hook: str, name: str) -> "_Row":
        row = self._rows.get(layer)
        if row is None:
            row = self._rows[layer] = _Row(hook, name)
        row.calls += 1
        return row


class Watch:
    """One call of a layer: it runs but while a layer inside is at work."""

    __slots__ = ("_inside", "_row", "_since")

    def __init__(self, row: "_Row") -> None:
        self._row = row
        self._inside = 0
        self._since = perf_counter()

    async def inside(self, inner: Awaitable[R]) -> R:
        """Awaits an inner layer; there may be several at the same time."""
        self._count()
        self._inside += 1
        try:
            return await inner
        finally:
            self._count()
            self._inside -= 1

    def stop(self) -> None:
        """The call has come to its end."""
        self._count()

    def _count(self) -> None:
        now = perf_counter()
        if not self._inside:
            self._row.seconds += now - self._since
        self._since = now


class _Row:
    __slots__ = ("calls", "hook", "name", "seconds")

    def __init__(self, hook: str, name: str) -> None:
        self.hook = hook
        self.name = name
        self.calls = 0
        self.seconds = 0.0


class _Measured:
    """A transform whose time is measured; for all else it is the one inside."""

    def __init__(self, made: "Transform", row: _Row) -> None:
        self._made = made
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def feed(self, delta: Delta, /) -> Any:
        """See `Transform.feed`."""
        return self._timed(self._made.feed, delta)

    def flush(self) -> Any:
        """See `Transform.flush`."""
        return self._timed(self._made.flush)

    def _timed(self, method: Callable[..., Any], *arguments: Any) -> Any:
        begun = perf_counter()
        try:
            given = method(*arguments)
            if isawaitable(given):
                return self._awaited(given)
            if isinstance(given, Iterator):  # it works when it is read
                return tuple(cast("Iterator[Delta]", given))
            return given
        finally:
            self._row.seconds += perf_counter() - begun

    async def _awaited(self, given: Awaitable[Any]) -> Any:
        begun = perf_counter()
        try:
            return await given
        finally:
            self._row.seconds += perf_counter() - begun
