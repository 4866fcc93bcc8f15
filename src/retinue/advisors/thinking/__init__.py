"""`Thinking`: reasoning apart from the answer. `advisor.py` is the advisor, `tags.py` takes
reasoning out of the text, `veil.py` keeps it from the reader."""

from retinue.advisors.thinking.advisor import Thinking, Thoughts

__all__ = ["Thinking", "Thoughts"]
