"""What the model sees of the tools during one turn, and what it has found."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from retinue.advisors.toolsearch.catalog import Catalog
from retinue.advisors.toolsearch.costs import Way
from retinue.advisors.toolsearch.ledger import Facts, Ledger
from retinue.advisors.toolsearch.reveal import definitions_in, with_calls, wrapped
from retinue.messages import Message, ToolCall, Usage
from retinue.tools import Tool


class Sight(Struct, kw_only=True):
    """One turn's, kept in the turn's own scratch.

    Attributes:
        way: how tools are shown; the same for the whole turn.
        catalog: the tools there are.
        ledger: what was seen with them.
        sizes: tokens of each definition, those of the search's own tools too.
        fixed: tokens of the definitions that each way sends always.
        standing: tokens before the question.
        question: tokens of the question.
        soon: whether the last turn with these tools was so near that a cache may have it.
        comparable: whether that turn showed its tools the same way.
        found: names of tools that were found, in order. Nothing is ever taken out.
        known: names that a search result before the model lists, each with whether its parameters
            stand there.
        forced: names of tools that a setting demanded, in order.
        sent: the tools of the last request.
        facts: how the turn goes, since the ledger learnt of it.
        learnt: how it went before that.
        usage: what its calls used up, or None.
        last: tokens of the last prompt, 0 before it.
        searched: whether the last answer searched.
        seen: messages by identity, each with what became of it: what it lists, or how it is sent.
    """

    way: Way
    catalog: Catalog
    ledger: Ledger
    sizes: Mapping[str, int]
    fixed: dict[Way, int]
    standing: int
    question: int
    soon: bool
    comparable: bool
    found: dict[str, None] = field(default_factory=dict[str, None])
    known: dict[str, bool] = field(default_factory=dict[str, bool])
    forced: dict[str, None] = field(default_factory=dict[str, None])
    sent: tuple[Tool, ...] = ()
    facts: Facts = field(default_factory=Facts)
    learnt: Facts = field(default_factory=Facts)
    usage: Usage | None = None
    last: int = 0
    searched: bool = False
    seen: dict[int, tuple[Message, Any]] = field(default_factory=dict[int, tuple[Message, Any]])

    def look(self, messages: Sequence[Message], find: str) -> None:
        """Takes in what the search results among the messages list."""
        self.known = {}
        for message in messages:
            if message.role == "tool":
                for name, full in self._listed(message, find).items():
                    self.known[name] = full or self.known.get(name, False)

    def find(self, names: Iterable[str], there: Mapping[str, Tool]) -> None:
        """These were found, if there are such tools."""
        self.found.update((name, None) for name in names if name in there)

    def wrap(
        self, messages: Sequence[Message], wrapper: str, there: Mapping[str, Tool]
    ) -> tuple[Message, ...]:
        """The messages with calls of tools that are not sent written as calls of the wrapper."""
        sent = {tool.name for tool in self.sent}

        def change(call: ToolCall) -> ToolCall:
            hidden = call.name in there and call.name not in sent
            return wrapped(call, wrapper) if hidden else call

        changed: list[Message] = []
        for message in messages:
            if message.role != "assistant":
                changed.append(message)
                continue
            # Made once in a turn: models keep the bytes of a message with it.
            kept = self.seen.get(id(message))
            if kept is None or kept[0] is not message:
                kept = self.seen[id(message)] = (message, with_calls(message, change))
            changed.append(kept[1])
        return tuple(changed)

    def _listed(self, message: Message, find: str) -> Mapping[str, bool]:
        kept = self.seen.get(id(message))
        if kept is None or kept[0] is not message:
            listed: dict[str, bool] = {}
            for result in message.tool_results:
                if result.name == find and result.ok:
                    listed |= definitions_in(result.text)
            kept = self.seen[id(message)] = (message, listed)
        return kept[1]

    def note(
        self, usage: Usage | None, asked: Sequence[str], find: str, now: float, least: int
    ) -> None:
        """An answer has come.

        Args:
            usage: what it used up.
            asked: names of the tools that it calls.
            find: the name of the search tool.
            now: the time.
            least: tokens of the shortest prompt that is cached.
        """
        facts = self.facts
        searches = sum(name == find for name in asked)
        facts.asked += searches
        if searches and searches == len(asked):
            facts.searches += 1
        else:
            facts.calls += 1
        if usage is not None and usage.input is not None:
            self._see(usage.input, usage.cache_read, now, least)
            self.usage = usage if self.usage is None else self.usage + usage
            if self.last and not self.searched:
                facts.growth += max(0, usage.input - self.last)
                facts.grown += 1
            self.last = usage.input
        self.searched = searches > 0

    def learnt_by(self, ledger: Ledger) -> Facts:
        """Tells the ledger what it has not learnt yet, and gives all that the turn has been."""
        revealed = sum(self.sizes.get(name, 0) for name in self.found)
        self.facts.revealed = revealed - self.learnt.revealed
        ledger.learn(self.facts, self.way)
        self.learnt += self.facts
        self.facts = Facts()
        return self.learnt

    def _see(self, tokens: int, read: int | None, now: float, least: int) -> None:
        if read is None:
            return
        ledger, before = self.ledger, self.fixed[self.way] + self.standing
        ledger.reports = True
        moment, kept = "later", self.last
        if not self.last:
            if not (self.comparable or read):
                return  # nobody has sent such a prompt before
            moment, kept = "first", tokens * before / (before + self.question)
        elif self.way == "append" and self.searched:
            shown = sum(self.sizes.get(name, 0) for name in self.found)
            moment, kept = "found", min(tokens, before + shown)
        if kept >= least:
            ledger.see(moment, read / kept, now, soon=self.soon)
