"""Lists of advisors: put together from several sources, checked, and shown (R-ONION-8 to -10)."""

import textwrap
import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Final, cast

from msgspec import Struct

from retinue.chains.advisor import TRAITS, Layer, check_advisor, hooks_of, name_of
from retinue.errors import ConfigError


class OnionWarning(UserWarning):
    """The onion will work, but probably not as it was meant."""


_REFUSED: Final[Sequence[tuple[str, str, str]]] = (
    ("memory", "memory", "both keep the conversation, so every message would be sent twice"),
    ("searches-tools", "searches-tools", "the inner one would search only what is found already"),
    ("traces", "traces", "both record every call, so each would be counted twice"),
    ("validates", "validates", "their attempts multiply; give one of them the form and the check"),
    ("holds", "validates-stream", "the inner one would check text that the outer one still holds"),
    ("forwards", "holds", "the outer one would forward only what the inner one has released"),
    ("restores", "redacts", "the outer one would put back what the inner one takes out"),
)
"""Pairs of traits, outer and inner, that cannot work together."""

_DOUBTED: Final[Sequence[tuple[str, str, str]]] = (
    ("retries", "swallows", "the outer one never sees the errors that it should retry"),
    ("validates", "swallows", "the outer one would have an error mended as if it were an answer"),
    ("reads-history", "memory", "the outer one reads the conversation before it is loaded"),
    ("grounds", "guards", "the outer one looks things up for questions that the inner one refuses"),
    ("memory", "guards", "the outer one locks the conversation for what the inner one refuses"),
    ("rewrites", "holds", "the outer one may change what the inner one has let go"),
    ("memory", "redacts-log", "what a layer between them answers is stored as it was asked"),
    ("redacts-prompt", "grounds", "what the inner one finds is sent as it stands"),
    ("grounds", "repeats", "the inner one would repeat the documents with the question"),
    ("repeats", "repeats", "the question would be sent four times"),
    ("consults", "meters", "what the outer one asks on the side is neither counted nor limited"),
    ("searches-tools", "changes-tools", "the outer one searches tools as they were before that"),
    ("words-errors", "words-errors", "the outer one words anew what the inner one has worded"),
    ("takes-out-thinking", "holds", "the inner one would take reasoning in tags for the answer"),
    (
        "takes-out-thinking",
        "validates-stream",
        "the inner one would check reasoning in tags as if it were the answer",
    ),
    ("searches-tools", "memory", "the inner one may cut results that the outer one counts on"),
)
"""Pairs of traits, outer and inner, that are probably a mistake."""


def assemble(*sources: Iterable[object]) -> list[object]:
    """One list out of several: the defaults of a deployment, plug-ins, the application.

    Sorted by `advisor.order`, stably: of equal orders, the earlier source comes first. An advisor
    without an order stays behind the one that it follows in its own source; at the head of a
    source it stays before the first that has an order; a source with no orders at all comes last,
    as it is.

    Raises:
        ConfigError: a source is no list, or an order is no number.
    """
    placed: list[tuple[float, object]] = []
    for source in sources:
        advisors = _listed(source)
        orders = [_order(advisor) for advisor in advisors]
        place = next((order for order in orders if order is not None), float("inf"))
        for advisor, order in zip(advisors, orders, strict=True):
            place = place if order is None else order
            placed.append((place, advisor))
    return [advisor for _, advisor in sorted(placed, key=lambda pair: pair[0])]


def _listed(source: Any) -> list[object]:
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise ConfigError(f"assemble() takes lists of advisors, not {source!r} alone; write [...].")
    return list(cast("Iterable[object]", source))


def _order(advisor: object) -> float | None:
    order: Any = getattr(advisor, "order", None)
    if order is None or type(order) in (int, float):
        return order
    raise ConfigError(f"{name_of(advisor)} has order={order!r}; give a number, or None.")


def check(advisors: Sequence[object]) -> list[str]:
    """Refuses an onion that cannot work; gives warnings about what is likely wrong (R-ONION-9).

    Raises:
        ConfigError: naming the layer, or both layers, and what to do.
    """
    for number, advisor in enumerate(advisors, 1):
        check_advisor(advisor, number)
    for at, advisor in enumerate(advisors):
        if any(advisor is other for other in advisors[:at]):
            raise ConfigError(
                f"The advisor {name_of(advisor)} stands in the list twice; make a second object if"
                " it is meant to work twice."
            )
    for outer, inner, why, alike in _pairs(advisors, _REFUSED):
        way_out = "Drop one" if alike else "Change the order or drop one"
        raise ConfigError(f"{outer} outside {inner} cannot work: {why}. {way_out}.")
    return [
        f"{outer} stands outside {inner}: {why}. {'Drop one' if alike else 'Swap them'}."
        for outer, inner, why, alike in _pairs(advisors, _DOUBTED)
    ]


def warn(messages: Iterable[str]) -> None:
    """Shows warnings where the agent is built."""
    for message in messages:
        warnings.warn(message, OnionWarning, stacklevel=4)


def _pairs(
    advisors: Sequence[object], rules: Sequence[tuple[str, str, str]]
) -> Iterable[tuple[str, str, str, bool]]:
    """The names of outer and inner, why they do not go together, and whether they are alike in
    that, so that another order would not help."""
    traits: list[frozenset[str]] = [frozenset(getattr(a, "traits", ())) for a in advisors]
    for at, below in combinations(range(len(advisors)), 2):
        for first, second, why in rules:
            if first in traits[at] and second in traits[below]:
                alike = first in traits[below] and second in traits[at]
                yield name_of(advisors[at]), name_of(advisors[below]), why, alike


class LayerView(Struct, frozen=True):
    """One layer as `explain()` shows it.

    Attributes:
        name: how it is called.
        hooks: which hooks it has.
        source: the module and class it comes from.
        order: its number for `assemble`, or None.
        notes: what its traits mean for the answer.
    """

    name: str
    hooks: tuple[str, ...]
    source: str
    order: int | None
    notes: tuple[str, ...]


class Explanation(Struct, frozen=True):
    """An agent's onion as data; `print` it for the picture.

    Attributes:
        agent: the agent's name.
        model: provider and name of its model.
        layers: the advisors, the outermost first.
        tools: names of the tools.
        warnings: what is probably wrong.
    """

    agent: str
    model: str
    layers: tuple[LayerView, ...]
    tools: tuple[str, ...]
    warnings: tuple[str, ...]

    def chain(self, hook: str) -> tuple[str, ...]:
        """The names of the layers of one hook, from the outside in."""
        return tuple(layer.name for layer in self.layers if hook in layer.hooks)

    def __str__(self) -> str:
        ends = {
            "chat": self.model,
            "stream": "reader",
            "tool": ", ".join(self.tools) or "no tools",
        }
        lines = [self.agent]
        for hook, stem, how_often in _PICTURE:
            chain = self.chain(hook)
            steps = [*(reversed(chain) if hook == "stream" else chain)]
            way = " → ".join([*steps, *([ends[hook]] if hook in ends else [])]) or "·"
            lines += _hanging(f"{stem + hook:<20}{how_often:<23}", way)
        if self.layers:
            lines += ["", *_columns(self.layers)]
        return "\n".join([*lines, *(f"! {warning}" for warning in self.warnings)])


_WIDTH: Final = 100

_PICTURE: Final = (
    ("turn", "└─ ", "once per user request"),
    ("round", "   └─ ", "once per round"),
    ("chat", "      ├─ ", "once per model call"),
    ("stream", "      │  └─ ", "what the model sends"),
    ("tool", "      └─ ", "once per tool run"),
)
"""The hooks as a tree: each is inside the one above it and to its left."""


def _hanging(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns(layers: Sequence["LayerView"]) -> list[str]:
    """The layers as a table: name, hooks, source, then the order and what is to be known."""
    rows = [(layer.name, " ".join(layer.hooks), layer.source) for layer in layers]
    name, hooks, source = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        f"{row[0]:<{name}}  {row[1]:<{hooks}}  {row[2]:<{source}}  {_remarks(layer)}".rstrip()
        for row, layer in zip(rows, layers, strict=True)
    ]


def _remarks(layer: "LayerView") -> str:
    order = () if layer.order is None else (f"order {layer.order}",)
    return "; ".join((*order, *layer.notes))


def view(advisor: object) -> LayerView:
    """One advisor as `explain()` shows it."""
    hooks = hooks_of(advisor)
    # a layer of plain functions comes from where these come from
    made_of: Any = getattr(advisor, hooks[0]) if isinstance(advisor, Layer) else advisor
    return LayerView(
        name_of(advisor),
        hooks,
        _source(made_of),
        getattr(advisor, "order", None),
        tuple(TRAITS[trait] for trait in sorted(getattr(advisor, "traits", ()))),
    )


def _source(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else cast("type[Any]", type(thing))
    return f"{named.__module__}:{named.__qualname__}"
