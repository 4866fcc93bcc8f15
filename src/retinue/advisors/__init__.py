"""Advisors that work: one a file, none importing another. `rereading.py` is the tutorial.

`standard` is a list of five of them.
"""

from retinue.advisors.forward import Feed, Forward, Heard
from retinue.advisors.holdrelease import HoldRelease, Stop
from retinue.advisors.interceptors import Interceptors
from retinue.advisors.logging import Logging
from retinue.advisors.memory import Memory, Summarizer
from retinue.advisors.questionanswer import QuestionAnswer
from retinue.advisors.redact import Redact
from retinue.advisors.rereading import ReReading
from retinue.advisors.safeguard import Safeguard
from retinue.advisors.standard import Pipeline, standard
from retinue.advisors.thinking import Thinking, Thoughts
from retinue.advisors.toolerrors import ToolErrors
from retinue.advisors.toolsearch import ToolSearch
from retinue.advisors.usage import Ledger, LocalLedger, Quota, UsageCollector
from retinue.advisors.validate import Validate

__all__ = [
    "Feed",
    "Forward",
    "Heard",
    "HoldRelease",
    "Interceptors",
    "Ledger",
    "LocalLedger",
    "Logging",
    "Memory",
    "Pipeline",
    "QuestionAnswer",
    "Quota",
    "ReReading",
    "Redact",
    "Safeguard",
    "Stop",
    "Summarizer",
    "Thinking",
    "Thoughts",
    "ToolErrors",
    "ToolSearch",
    "UsageCollector",
    "Validate",
    "standard",
]
