"""`Memory`: the conversation so far goes into the prompt, and the turn into the log (R-MEM).

`advisor.py` is the advisor, `window.py` what a model call may be sent, `reading.py` what is read of
the log for it, `summary.py` what stands for the turns that are cut off, `journal.py` the writing.
"""

from retinue.advisors.memory.advisor import Memory
from retinue.advisors.memory.summary import Summarizer

__all__ = ["Memory", "Summarizer"]
