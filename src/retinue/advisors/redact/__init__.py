"""`Redact`: personal data and keys are taken out of what is shown, stored and sent, each by choice.

`advisor.py` is the advisor. `patterns.py` and `own.py` say what is looked for, `scanner.py` finds
it in a text that comes in pieces, `places.py` knows where texts stand in messages, `showing.py` is
the transform, `tokens.py` the placeholders that can be taken back.
"""

from retinue.advisors.redact.advisor import Redact

__all__ = ["Redact"]
