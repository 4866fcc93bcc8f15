"""Which memory a conversation on the command line has: the agent's own, or one that is put on."""

import os
from pathlib import Path
from typing import Final

from retinue.advisors import Memory
from retinue.agent import Agent
from retinue.cli import places
from retinue.errors import ConfigError, MissingExtraError
from retinue.stores import InMemory, PostgreSQL, Redis, SQLite, Store

_OWN: Final = (
    "The agent {name!r} keeps its conversations itself, so {option} would change nothing; leave it"
    " out."
)


def with_memory(agent: Agent, *, database: str | None, on_disk: bool = True) -> Agent:
    """The agent with a memory. One that it has already stays; else it gets one, outermost.

    Args:
        agent: the agent.
        database: the file or the URL that was named, or None for the user's own file.
        on_disk: whether the conversation shall outlive the process.

    Raises:
        ConfigError: the agent has a memory and another was asked for.
        MissingExtraError: the packages for SQLite are not installed.
    """
    if any(map(is_memory, agent.advisors)):
        if database is not None or not on_disk:
            option = "--no-memory" if database is None else "--database"
            raise ConfigError(_OWN.format(name=agent.name, option=option))
        return agent
    try:
        store = opened(database) if on_disk else InMemory()
    except MissingExtraError as error:
        raise MissingExtraError(f"{error} Or chat with --no-memory.") from error
    return agent.with_(advisors=[Memory(store), *agent.advisors])


def is_memory(advisor: object) -> bool:
    """Whether an advisor keeps conversations, in our way or in one of its own."""
    return "memory" in getattr(advisor, "traits", ())


def store_of(agent: Agent) -> Store | None:
    """The store behind the agent's memory, or None if its memory is not one of ours."""
    return next((one.store for one in agent.advisors if isinstance(one, Memory)), None)


async def let_go(agent: Agent) -> None:
    """Closes what the agent holds, its store included."""
    await agent.close()
    store = store_of(agent)
    if store is not None:
        await store.close()


def opened(database: str | None) -> Store:
    """The store of the conversations; nothing is read yet. The user's own folder is made.

    Raises:
        ConfigError: the folder cannot be made, or the URL is none of a store.
        MissingExtraError: the packages for the store are not installed.
    """
    place = places.database(database)
    if isinstance(place, Path) and place.parent == places.data_folder():
        places.made_data_folder()
    return _at(place)


def store_at(database: str | None) -> Store | None:
    """The conversations at a place that was named, here or in the variable; None where none was.
    Nothing is read yet.

    Raises:
        ConfigError: it is the URL of something else.
        MissingExtraError: its packages are not installed.
    """
    named = database is not None or os.environ.get(places.VARIABLE)
    return _at(places.database(database)) if named else None


def _at(place: Path | str) -> Store:
    return SQLite(place) if isinstance(place, Path) else _on_a_server(place)


def _on_a_server(url: str) -> Store:
    scheme = url.partition("://")[0]
    if scheme in ("postgresql", "postgres"):
        return PostgreSQL(url)
    if scheme in ("redis", "rediss", "unix"):
        return Redis(url)
    raise ConfigError(
        "The URL of the database is none of a store; give postgresql://…, redis://…, rediss://…,"
        " unix://…, or the name of a SQLite file."
    )
