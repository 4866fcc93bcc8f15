"""`retinue conversations`: what is in a database of conversations."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from retinue.cli import places
from retinue.cli.keeping import opened
from retinue.cli.plain import print_json
from retinue.cli.rows import print_rows
from retinue.cli.transcript import print_transcript
from retinue.errors import ConfigError
from retinue.stores import Asker, SQLite, Summary
from retinue.stores.rules import not_found


async def list_all(file: Path | None, owner: Asker, limit: int, *, as_json: bool) -> None:
    """Prints the owner's conversations, the one written last first.

    Raises:
        ConfigError: the database that was named is not there.
    """
    found: Sequence[Summary] = ()
    path = places.database(file)
    if path.exists() or path != places.own_database():
        async with _Opened(file) as store:
            found = await store.conversations(owner=owner, limit=limit)
    if as_json:
        for summary in found:
            print_json(summary)
        return
    if found:
        print_rows(
            ("id", "last written", "owner", "messages", "first question"),
            [
                (one.id, _when(one.updated), one.owner or "", f"{one.messages:,}", one.title)
                for one in found
            ],
        )


async def show(file: Path | None, conversation: str, owner: str | None, *, as_json: bool) -> None:
    """Prints the log of a conversation, the oldest message first.

    Raises:
        ConversationNotFound: there is none for this owner.
    """
    async with _Opened(file) as store:
        entries = await store.tail(conversation, owner=owner)
    if not entries:
        raise not_found(conversation)
    if as_json:
        for entry in entries:
            print_json(entry)
    else:
        print_transcript(Console(), entries)


async def remove(file: Path | None, conversations: Sequence[str], owner: str | None) -> None:
    """Removes conversations for good.

    Raises:
        ConversationBusy: a turn is writing one of them just now.
        ConversationNotFound: one is not there for this owner; those before it are gone.
    """
    async with _Opened(file) as store:
        for conversation in conversations:
            async with store.writing(conversation, wait=False):
                await store.delete(conversation, owner=owner)


class _Opened:
    """The store for a while. It is not made by looking into it."""

    def __init__(self, file: Path | None) -> None:
        path = places.database(file)
        if not path.exists():
            raise ConfigError(
                f"There is no database {path}; name one with --database, or chat first."
            )
        self._store = opened(file)

    async def __aenter__(self) -> SQLite:
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
