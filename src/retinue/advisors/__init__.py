"""Advisors that work: one a file, none importing another. `rereading.py` is the tutorial."""

from retinue.advisors.logging import Logging
from retinue.advisors.memory import Memory
from retinue.advisors.rereading import ReReading
from retinue.advisors.usage import UsageCollector

__all__ = ["Logging", "Memory", "ReReading", "UsageCollector"]
