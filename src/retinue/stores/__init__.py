"""Where conversations are kept. SQLAlchemy and redis-py are imported when they are first needed."""

from retinue.stores.base import EVERYONE, Asker, Entry, EntryState, Everyone, Held, Store, Summary
from retinue.stores.memory import InMemory
from retinue.stores.redis import Redis
from retinue.stores.sql import PostgreSQL, SQLite
from retinue.stores.timeline import Branch, Point, Timeline

__all__ = [
    "EVERYONE",
    "Asker",
    "Branch",
    "Entry",
    "EntryState",
    "Everyone",
    "Held",
    "InMemory",
    "Point",
    "PostgreSQL",
    "Redis",
    "SQLite",
    "Store",
    "Summary",
    "Timeline",
]
