"""`retinue conversations`: what is in a database of conversations."""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from retinue.chains.snapshot import Snapshot
from retinue.cli import places
from retinue.cli.answers import pending_lines
from retinue.cli.keeping import opened
from retinue.cli.plain import print_json
from retinue.cli.rows import print_rows
from retinue.cli.transcript import print_transcript
from retinue.cli.wording import count_words, safe
from retinue.errors import ConfigError
from retinue.stores import Asker, Store, Summary
from retinue.stores.rules import not_found


async def list_all(database: str | None, owner: Asker, limit: int, *, as_json: bool) -> None:
    """Prints the owner's conversations, the one written last first.

    Raises:
        ConfigError: the database that was named is not there.
    """
    found: Sequence[Summary] = ()
    if not nothing_kept(database):
        async with Opened(database) as store:
            found = await store.conversations(owner=owner, limit=limit)
    if as_json:
        for summary in found:
            print_json(summary)
        return
    if found:
        print_rows(
            ("id", "last written", "owner", "state", "messages", "first question"),
            [
                (
                    one.id,
                    _when(one.updated),
                    one.owner or "",
                    "paused" if one.paused else "",
                    f"{one.messages:,}",
                    one.title,
                )
                for one in found
            ],
        )


async def show(
    database: str | None, conversation: str, owner: str | None, *, as_json: bool
) -> None:
    """Prints the log of a conversation, the oldest message first, and then what it waits for.

    Raises:
        ConversationNotFound: there is none for this owner.
        SnapshotError: a later version of retinue has paused it; what was said is printed.
    """
    async with Opened(database) as store:
        entries = await store.tail(conversation, owner=owner)
        held = await store.held(conversation, owner=owner)
    if not entries:
        raise not_found(conversation)
    if as_json:
        for entry in entries:
            print_json(entry)
    else:
        print_transcript(Console(), entries)
    if held is not None:
        pending = Snapshot.load(held.document).pending
        if as_json:
            print_json({"pause": held.id, "pending": pending})
        else:
            print("\n".join(pending_lines(pending)))


def remove(
    database: str | None, conversations: Sequence[str], owner: str | None, *, yes: bool
) -> None:
    """Removes conversations for good, once it is confirmed.

    Raises:
        Abort: it is not confirmed.
        ConfigError: nobody can confirm.
        ConversationNotFound: one is not there for this owner; nothing was removed.
        ConversationBusy: a turn is writing one of them just now; those before it are gone.
    """
    ids = list(dict.fromkeys(conversations))

    async def size() -> int:
        async with Opened(database) as store:
            logs = {one: await store.tail(one, owner=owner) for one in ids}
        for one, entries in logs.items():
            if not entries:
                raise not_found(one)
        return sum(map(len, logs.values()))

    async def delete() -> None:
        async with Opened(database) as store:
            for one in ids:
                async with store.writing(one, wait=False):
                    await store.delete(one, owner=owner)

    messages = count_words(asyncio.run(size()), "message")
    what = f"conversation{'s' * (len(ids) > 1)} {', '.join(map(repr, ids))}"
    confirm(f"This removes {what} with {messages}.", yes=yes)
    asyncio.run(delete())


def confirm(what: str, *, yes: bool) -> None:
    """Asks whether something shall be removed, unless that was said before.

    Call it from outside of an event loop: Ctrl-C cancels a task there, which would not notice while
    the terminal is read.

    Raises:
        Abort: no.
        ConfigError: nobody can be asked here.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{what} Nobody can be asked here; say it with --yes.")
    typer.confirm(f"{safe(what)} Go on?", abort=True, err=True)


def nothing_kept(database: str | None) -> bool:
    """Whether no other database is named and the user's own is not there, as before any chat."""
    own = places.own_database()
    return places.database(database) == own and not own.exists()


class Opened:
    """The store of a command, for a while. It is not made by looking into it."""

    def __init__(self, database: str | None) -> None:
        place = places.database(database)
        if isinstance(place, Path) and not place.exists():
            raise ConfigError(
                f"There is no database {place}; name one with --database, or chat first."
            )
        self._store = opened(database)

    async def __aenter__(self) -> Store:
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
