"""What looks like a key or a password in a text, masked: for logs, spans and error messages.

It knows the common shapes of secrets, no more. It is not redaction: names and addresses stay.
"""

import re
from typing import Final

_SECRETS: Final = re.compile(
    r"(?i)\b(sk-[\w-]{8,}|gh[pousr]_\w{16,}|xox[abprs]-[\w-]{8,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|(?P<lead>\b(?:bearer|basic)\s+|://[^\s/:@]*:(?=[^\s/@]*@)"
    r"|(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d)(?:[_-]\w+)?"
    r"[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic)\s+)?)"
    r"[^\s\"',}@]{4,}"
)


def mask(text: str) -> str:
    """The text with what looks like a key or a password replaced by ***."""
    return _SECRETS.sub(lambda found: (found["lead"] or "") + "***", text)
