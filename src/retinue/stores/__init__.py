"""Where conversations are kept. SQLAlchemy is imported when a SQL store is first used."""

from retinue.stores.base import EVERYONE, Asker, Entry, EntryState, Everyone, Store, Summary
from retinue.stores.memory import InMemory
from retinue.stores.sql import PostgreSQL, SQLite

__all__ = [
    "EVERYONE",
    "Asker",
    "Entry",
    "EntryState",
    "Everyone",
    "InMemory",
    "PostgreSQL",
    "SQLite",
    "Store",
    "Summary",
]
