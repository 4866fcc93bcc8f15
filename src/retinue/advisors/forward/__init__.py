"""`Forward`: others hear the events of a turn. `advisor.py` is the advisor, `line.py` the way to
one consumer, `feed.py` the consumer that another task iterates."""

from retinue.advisors.forward.advisor import Forward
from retinue.advisors.forward.feed import Feed, Heard

__all__ = ["Feed", "Forward", "Heard"]
