"""`Safeguard`: a guard on questions and answers. Read `advisor.py` first.

`folding.py` makes different ways to write a word the same, `matcher.py` finds words and regular
expressions, `rules.py` reads what a guard is told to look for.
"""

from retinue.advisors.safeguard.advisor import Safeguard

__all__ = ["Safeguard"]
