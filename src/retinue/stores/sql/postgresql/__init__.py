"""Conversations in a PostgreSQL database, for any number of processes and machines.

`store` is the class, `address` the URL, `session` how a connection begins, `failures` what errors
mean, and `locks` what keeps writers apart. psycopg is imported when a store is made.
"""

from retinue.stores.sql.postgresql.store import PostgreSQL

__all__ = ["PostgreSQL"]
