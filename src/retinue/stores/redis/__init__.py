"""Conversations in a Redis server, for any number of processes and machines.

`store` is the class, `address` the URL, `scripts` what the server runs, `session` the connections,
`thread` where they live, and `failures` what errors mean. redis-py is imported at the first call.
"""

from retinue.stores.redis.store import Redis

__all__ = ["Redis"]
