"""Advisors that work: one a file, none importing another. `rereading.py` is the tutorial."""

from retinue.advisors.logging import Logging
from retinue.advisors.memory import Memory, Summarizer
from retinue.advisors.questionanswer import QuestionAnswer
from retinue.advisors.rereading import ReReading
from retinue.advisors.toolsearch import ToolSearch
from retinue.advisors.usage import Ledger, LocalLedger, Quota, UsageCollector
from retinue.advisors.validate import Validate

__all__ = [
    "Ledger",
    "LocalLedger",
    "Logging",
    "Memory",
    "QuestionAnswer",
    "Quota",
    "ReReading",
    "Summarizer",
    "ToolSearch",
    "UsageCollector",
    "Validate",
]
