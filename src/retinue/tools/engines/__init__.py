"""Engines: how the calls of a batch are run (R-ENGINE-2)."""

from retinue.tools.engines.base import Engine
from retinue.tools.engines.concurrent import Concurrent
from retinue.tools.engines.pools import ProcessPool, ThreadPool
from retinue.tools.engines.sequential import Sequential

__all__ = ["Concurrent", "Engine", "ProcessPool", "Sequential", "ThreadPool"]
