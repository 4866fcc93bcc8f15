"""Conversations in a SQL database: one code path, and a class per database.

`store` is the protocol, `worker` the threads, `log` the statements, `schema` the versions of the
tables. What only SQLite does stands in `sqlite`, what only PostgreSQL does in `postgresql`.
"""

from retinue.stores.sql.postgresql import PostgreSQL
from retinue.stores.sql.sqlite import SQLite
from retinue.stores.sql.store import SQLStore

__all__ = ["PostgreSQL", "SQLStore", "SQLite"]
