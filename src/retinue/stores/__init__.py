"""Where conversations are kept. SQLAlchemy is imported when a SQL store is first used."""

from retinue.stores.base import EVERYONE, Entry, EntryState, Store, Summary
from retinue.stores.memory import InMemory
from retinue.stores.sql import PostgreSQL, SQLite

__all__ = [
    "EVERYONE",
    "Entry",
    "EntryState",
    "InMemory",
    "PostgreSQL",
    "SQLite",
    "Store",
    "Summary",
]
