"""`UsageCollector`: what turns use, added up, and held to quotas.

`totals.py` adds up, `quotas.py` says what may be used, `ledger.py` keeps how much of it is,
`collector.py` is the advisor.
"""

from retinue.advisors.usage.collector import UsageCollector
from retinue.advisors.usage.ledger import Claim, Ledger, LocalLedger
from retinue.advisors.usage.quotas import Quota
from retinue.advisors.usage.totals import Total

__all__ = ["Claim", "Ledger", "LocalLedger", "Quota", "Total", "UsageCollector"]
