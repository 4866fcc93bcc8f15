"""Placeholders that can be taken back: `<EMAIL_1>` for a value that a model must not see.

They are numbered in the order in which the values come up in what is sent. So a placeholder depends
only on what was sent before it: as long as a conversation begins alike, it is sent alike, and a
provider's cache holds. Nothing of a value is in its placeholder, and those of two conversations
cannot be compared.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from retinue.advisors.redact.patterns import Known

_TOKEN: Final = r"<[A-Z][A-Z0-9_]{0,30}_[0-9]{1,6}>"
_find_token: Final = re.compile(_TOKEN)
_open: Final = re.compile(r"<[A-Z0-9_]{0,38}\Z").search

LOOKALIKE: Final = Known("text", re.compile(_TOKEN), 40, open=r"<[A-Z0-9_]{0,38}", marker="<")
"""What looks like a placeholder and is none of ours. It gets one, so that ours stay unique."""


class Vault:
    """The values of one turn and their placeholders. It lives as long as the turn.

    Args:
        values: those of the turn before it paused, by their placeholders, in order.
    """

    __slots__ = ("_counts", "_tokens", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(values or {})
        self._tokens = {value: token for token, value in self._values.items()}
        self._counts: dict[str, int] = {}
        for token in self._values:
            kind, _, number = token.strip("<>").rpartition("_")
            self._counts[kind] = int(number)

    @property
    def values(self) -> Mapping[str, str]:
        """The values by their placeholders, in order."""
        return self._values

    def token(self, name: str, value: str) -> str:
        """The placeholder of a value, the same each time."""
        token = self._tokens.get(value)
        if token is None:
            kind = name.upper().replace("-", "_")
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            token = self._tokens[value] = f"<{kind}_{number}>"
            self._values[token] = value
        return token

    def restored(self, text: str, *, in_json: bool = False) -> str:
        """The text with the values back; unknown placeholders stay."""
        if "<" not in text or not self._values:
            return text
        return _find_token.sub(lambda found: self._value(found[0], in_json), text)

    def may_begin(self, text: str) -> bool:
        """Whether one of the placeholders begins so."""
        return any(token.startswith(text) for token in self._values)

    def _value(self, token: str, in_json: bool) -> str:
        value = self._values.get(token, token)
        return _escaped(value) if in_json and value is not token else value


class Restorer:
    """Puts the values back into a text that comes in pieces.

    Args:
        vault: the values.
        in_json: whether the text is JSON, in whose strings they stand.
    """

    __slots__ = ("_held", "_in_json", "_vault")

    def __init__(self, vault: Vault, *, in_json: bool) -> None:
        self._vault = vault
        self._in_json = in_json
        self._held = ""

    def feed(self, text: str) -> str:
        """More of the text; gives what is decided."""
        text = self._held + text
        begun = _open(text)
        at = len(text) if begun is None else begun.start()
        if at < len(text) and not self._vault.may_begin(text[at:]):
            at = len(text)
        self._held = text[at:]
        return self._vault.restored(text[:at], in_json=self._in_json)

    def flush(self) -> str:
        """No more comes: gives the rest."""
        text, self._held = self._held, ""
        return text


def _escaped(value: str) -> str:
    return msgspec.json.encode(value).decode()[1:-1]
