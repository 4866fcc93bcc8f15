"""Which memory a conversation on the command line has: the agent's own, or one that is put on."""

from pathlib import Path
from typing import Final

from retinue.advisors import Memory
from retinue.agent import Agent
from retinue.cli import places
from retinue.errors import ConfigError, MissingExtraError
from retinue.stores import InMemory, SQLite, Store

_OWN: Final = (
    "The agent {name!r} keeps its conversations itself, so {option} would change nothing; leave it"
    " out."
)


def with_memory(agent: Agent, *, file: Path | None, on_disk: bool = True) -> Agent:
    """The agent with a memory. One that it has already stays; else it gets one, outermost.

    Args:
        agent: the agent.
        file: the SQLite file that was named, or None for the user's own.
        on_disk: whether the conversation shall outlive the process.

    Raises:
        ConfigError: the agent has a memory and another was asked for.
        MissingExtraError: the packages for SQLite are not installed.
    """
    if any("memory" in getattr(advisor, "traits", ()) for advisor in agent.advisors):
        if file is not None or not on_disk:
            option = "--no-memory" if file is None else "--database"
            raise ConfigError(_OWN.format(name=agent.name, option=option))
        return agent
    if on_disk:
        store: Store = opened(file)
    else:
        store = InMemory()
    return agent.with_(advisors=[Memory(store), *agent.advisors])


def store_of(agent: Agent) -> Store | None:
    """The store behind the agent's memory, or None if its memory is not one of ours."""
    return next((one.store for one in agent.advisors if isinstance(one, Memory)), None)


async def let_go(agent: Agent) -> None:
    """Closes what the agent holds, its store included."""
    await agent.close()
    store = store_of(agent)
    if store is not None:
        await store.close()


def opened(file: Path | None) -> SQLite:
    """The conversations in a SQLite file; nothing is read yet. The user's own folder is made.

    Raises:
        ConfigError: the folder cannot be made.
        MissingExtraError: the packages for SQLite are not installed.
    """
    path = places.database(file)
    if path.parent == places.data_folder():
        places.made_data_folder()
    try:
        return SQLite(path)
    except MissingExtraError as error:
        raise MissingExtraError(f"{error} Or chat with --no-memory.") from error
