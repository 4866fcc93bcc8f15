"""Whatever is done to them, a SQLite store and one in memory say the same."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import RetinueError
from retinue.messages import Message, Text
from retinue.stores import EVERYONE, InMemory, SQLite, Store

names = st.sampled_from(["a", "b", "../c"])
owners = st.sampled_from([None, "ann", "bob", EVERYONE])
ids = st.sampled_from([f"m{n}" for n in range(8)])
states = st.sampled_from(["", "unanswered", "superseded"])
positions = st.integers(-1, 10) | st.sampled_from([-(2**70), 2**70])
documents = st.binary(max_size=4)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
messages = st.builds(
    lambda role, text, id, meta: Message(role, (Text(text),), id, meta=meta),
    st.sampled_from(["user", "assistant", "system"]),
    texts,
    ids,
    st.dictionaries(texts, st.none() | st.booleans() | texts, max_size=2),
)


@dataclass(frozen=True)
class Step:
    """One call of a store."""

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def step(method: str, *args: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]) -> Any:
    return st.builds(Step, st.just(method), st.tuples(*args), st.fixed_dictionaries(options))


append = step(
    "append",
    names,
    st.lists(messages, max_size=4),
    turn=st.sampled_from(["t1", "t2"]),
    owner=owners,
    states=st.none() | st.dictionaries(ids, states, max_size=2),
)
anything = st.one_of(
    append,
    step("revise", names, messages, owner=owners),
    step(
        "tail",
        names,
        owner=owners,
        limit=st.none() | st.integers(-1, 6),
        before=st.none() | st.integers(-1, 10),
    ),
    step("known", names, st.lists(ids), owner=owners),
    step("conversations", owner=owners, limit=st.integers(-1, 4)),
    step("delete", names, owner=owners),
    step("hold", names, ids, documents, owner=owners),
    step("held", names, owner=owners),
    step("release", names, ids, owner=owners),
    step("fork", names, names, at=st.none() | positions, owner=owners),
    step("rollback", names, after=positions, owner=owners),
    step("prune", names, before=positions, owner=owners),
)
looks = [
    *(Step("tail", (name,), {"owner": EVERYONE}) for name in ("a", "b", "../c")),
    Step("conversations", (), {"owner": EVERYONE}),
]


async def outcome(store: Store, call: Step) -> Any:
    """What the call gives, but for the times; an error by its kind and its words."""
    try:
        result = await getattr(store, call.method)(*call.args, **call.options)
    except RetinueError as error:
        return type(error), str(error)
    if call.method == "tail":
        return [(e.position, e.turn, e.message, e.state) for e in result]
    if call.method == "conversations":
        return [
            (s.id, s.owner, s.title, s.messages, s.parent, s.forked_at, s.paused) for s in result
        ]
    return result


@pytest.mark.rule("R-MEM-1", "R-MEM-7", "R-MEM-8", "R-MEM-9")
@given(st.lists(append | anything, max_size=25))
def test_any_series_of_calls_has_the_same_outcome_in_both(calls: list[Step]) -> None:
    async def run() -> None:
        memory, sqlite = InMemory(), SQLite(":memory:")
        try:
            for call in [*calls, *looks]:
                assert await outcome(memory, call) == await outcome(sqlite, call)
        finally:
            await sqlite.close()

    asyncio.run(run())
