"""`retinue conversations tree`, `turns`, `fork`, `rollback` and `prune`: conversations through
time."""

import asyncio
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from retinue.cli.conversations import Opened, confirm, nothing_kept
from retinue.cli.plain import print_json
from retinue.cli.rows import print_rows
from retinue.cli.wording import count_words, cut, safe
from retinue.errors import ConfigError
from retinue.stores import Asker, Branch, Point, Summary, Timeline

_TITLE_WIDTH = 60


async def show_tree(database: str | None, owner: Asker, *, as_json: bool) -> None:
    """Prints all conversations, each with its forks below it.

    Raises:
        ConfigError: the database that was named is not there.
    """
    branches: Sequence[Branch] = ()
    if not nothing_kept(database):
        async with Opened(database) as store:
            branches = await Timeline(store).tree(owner=owner)
    console = Console()
    for branch in branches:
        if as_json:
            print_json(branch)
        else:
            console.print(_drawn(branch), highlight=False, soft_wrap=True)


async def show_turns(
    database: str | None, conversation: str, owner: str | None, *, as_json: bool
) -> None:
    """Prints the turns of a conversation, the oldest first.

    Raises:
        ConversationNotFound: there is none for this owner.
    """
    points = await _points(database, conversation, owner)
    if as_json:
        for point in points:
            print_json(point)
        return
    print_rows(
        ("number", "turn", "state", "messages", "question"),
        [
            (str(n), one.turn, "paused" if one.paused else "", f"{one.messages:,}", one.question)
            for n, one in enumerate(points, 1)
        ],
    )


async def fork(
    database: str | None, conversation: str, new: str | None, at: str | None, owner: str | None
) -> None:
    """Makes a fork and prints its id.

    Raises:
        ConfigError: there is no such turn, or the new id is taken.
        ConversationNotFound: there is no such conversation for this owner.
    """
    async with Opened(database) as store:
        line = Timeline(store)
        if at is not None:
            at = named(await line.points(conversation, owner=owner), at).turn
        print(await line.fork(conversation, new, at=at, owner=owner))


def rollback(
    database: str | None, conversation: str, to: str, owner: str | None, *, yes: bool
) -> None:
    """Removes what came after a turn, once it is confirmed.

    Raises:
        Abort: it is not confirmed.
        ConfigError: there is no such turn, or nobody can confirm.
        ConversationNotFound: there is no such conversation for this owner.
    """
    points = asyncio.run(_points(database, conversation, owner))
    last = None if to == "0" else named(points, to)
    gone = points if last is None else points[points.index(last) + 1 :]
    paused = any(one.paused for one in points)
    if not gone and not paused:
        print(f"Nothing comes after that turn of {safe(conversation)}.")
        return
    confirm(_removes(gone, conversation, paused=paused), yes=yes)

    async def cut() -> None:
        async with Opened(database) as store:
            turn = None if last is None else last.turn
            await Timeline(store).rollback(conversation, turn, owner=owner)

    asyncio.run(cut())


def prune(
    database: str | None, conversation: str, keep: int, owner: str | None, *, yes: bool
) -> None:
    """Removes the oldest turns, once it is confirmed.

    Raises:
        Abort: it is not confirmed.
        ConfigError: nobody can confirm.
        ConversationNotFound: there is no such conversation for this owner.
    """
    points = asyncio.run(_points(database, conversation, owner))
    if len(points) <= keep:
        print(f"{safe(conversation)} has {count_words(len(points), 'turn')}; all stay.")
        return
    confirm(_removes(points[:-keep], conversation), yes=yes)

    async def cut() -> None:
        async with Opened(database) as store:
            await Timeline(store).prune(conversation, keep, owner=owner)

    asyncio.run(cut())


def named(points: Sequence[Point], turn: str) -> Point:
    """The turn of this id or number.

    Raises:
        ConfigError: there is none.
    """
    for number, point in enumerate(points, 1):
        if turn in (point.turn, str(number)):
            return point
    raise ConfigError(
        f"There is no turn {turn!r}; give the id of a turn or its number, 1 to {len(points)}, as"
        " `retinue conversations turns` lists them."
    )


async def _points(database: str | None, conversation: str, owner: str | None) -> Sequence[Point]:
    async with Opened(database) as store:
        return await Timeline(store).points(conversation, owner=owner)


def _removes(gone: Sequence[Point], conversation: str, *, paused: bool = False) -> str:
    turns = count_words(len(gone), "turn")
    messages = count_words(sum(one.messages for one in gone), "message")
    too = ", and the pause of its last turn" if paused else ""
    return f"This removes {turns} with {messages} of conversation {conversation!r}{too}."


def _drawn(branch: Branch) -> Tree:
    root = Tree(_line(branch.conversation))
    todo = [(root, branch)]
    while todo:
        tree, branch = todo.pop()
        todo += [(tree.add(_line(fork.conversation)), fork) for fork in branch.forks]
    return root


def _line(one: Summary) -> Text:
    text = Text(safe(one.id), style="bold")
    facts = [count_words(one.messages, "message")]
    if one.forked_at is not None:
        facts.append(f"forked at position {one.forked_at}")
    text.append(f"  {', '.join(facts)}", style="dim")
    if one.paused:
        text.append("  paused", style="yellow")
    return text.append(f"  {cut(one.title, _TITLE_WIDTH)}", style="default")
