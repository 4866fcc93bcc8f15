"""Conversations in a SQL database: one code path, and a class per database.

`store` is the protocol, `worker` the thread, `log` the statements, `schema` the versions of the
tables. What only SQLite does stands in `sqlite`.
"""

from retinue.stores.sql.sqlite import SQLite
from retinue.stores.sql.store import SQLStore

__all__ = ["SQLStore", "SQLite"]
