"""What can be found by name: the common shapes of personal data and of keys.

A pattern answers two questions about a text of which more may come: where is the next value, and
from where on could more text still begin or change one. Whatever begins before that place is
decided. Every expression here has an upper end to each repetition, so that both the time and what
is held back are bounded.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from retinue.messages.masking import NAMED, VALUE, secrets


class Found(Struct, frozen=True):
    """A value in a text: from `begin` to `end`, with what leads to it from `start` on."""

    start: int
    begin: int
    end: int


class Finder(Protocol):
    """Looks for one kind of value in one text that grows at its end."""

    def find(self, text: str, start: int, ended: bool) -> Found | None:
        """The first value that starts at `start` or later.

        Args:
            text: what is there of the text.
            start: where to begin; what stands before it is looked at as its surroundings.
            ended: whether no more comes.
        """
        ...

    def undecided(self, text: str, start: int) -> int:
        """From where on more text could begin a value, or change one."""
        ...

    def drop(self, count: int) -> None:
        """The text has lost its first `count` characters."""
        ...


class Pattern(Protocol):
    """One kind of value. It holds nothing of any text.

    Attributes:
        name: what it is called.
    """

    @property
    def name(self) -> str: ...

    def begin(self) -> Finder:
        """What looks through one text."""
        ...


Check = Callable[[re.Match[str]], int | None]
"""Where the value in a match ends, or None if there is none."""


class Known:
    """A kind of value that is told by an expression, and perhaps by a sum.

    Args:
        name: what it is called.
        expression: what it looks like; the group `lead`, if it has one, is no part of the value.
        longest: characters that a match has at most.
        word: the characters of a value that has no spaces: a run of them at the end of the text
            is undecided.
        open: what the beginning of a value with spaces looks like, up to the end of the text.
        marker: a character that every value has, or "".
        check: judges a match.
    """

    def __init__(
        self,
        name: str,
        expression: re.Pattern[str],
        longest: int,
        *,
        word: str = "",
        open: str = "",
        marker: str = "",
        check: Check | None = None,
    ) -> None:
        self.name = name
        self._search = expression.search
        self._longest = longest
        self._apart = re.compile(f"[^{word}]").search if word else None
        self._open = re.compile(rf"(?:{open})\Z").search if open else None
        self._marker = marker
        self._check = check

    def begin(self) -> Finder:
        """Itself: nothing is kept between two questions."""
        return self

    def find(self, text: str, start: int, ended: bool) -> Found | None:
        """The first value from `start` on."""
        if self._marker and text.find(self._marker, start) < 0:
            return None
        while (match := self._search(text, start)) is not None:
            end = match.end() if self._check is None else self._check(match)
            if end is not None:
                lead = match.end("lead") if "lead" in match.re.groupindex else -1
                return Found(match.start(), max(lead, match.start()), end)
            start = match.start() + 1
        return None

    def undecided(self, text: str, start: int) -> int:
        """Where the last word begins, or something that goes on over spaces."""
        size = len(text)
        floor = max(start, size - self._longest - 1)
        at = size
        if self._apart is not None:
            apart = self._apart(text[: floor - 1 if floor else None : -1])
            at = floor if apart is None else size - apart.start()
        if self._open is not None:
            begun = self._open(text, floor)
            at = at if begun is None else min(at, begun.start())
        return at

    def drop(self, count: int) -> None:
        """Nothing is kept."""


def _luhn(match: re.Match[str]) -> int | None:
    """Where a card number ends: its last digit is right (ISO/IEC 7812)."""
    end = match.end()
    digits = [int(one) for one in match[0] if one.isdecimal()]
    if not _is_card(digits) and match["more"]:  # what follows a number of 16 digits is no part
        end, digits = match.start("more"), digits[:16]
    return end if _is_card(digits) else None


def _is_card(digits: list[int]) -> bool:
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban(match: re.Match[str]) -> int | None:
    """Where an IBAN ends: it has the length of its country, and its remainder is 1 (ISO 13616)."""
    length = _IBAN_LENGTHS.get(match[0][:2].upper())
    if length is None:
        return None
    signs = [at for at, sign in enumerate(match[0]) if sign.isalnum()]
    if len(signs) < length:
        return None
    end = match.start() + signs[length - 1] + 1
    if match.string[end : end + 1].isalnum():
        return None
    code = "".join(match[0][at] for at in signs[:length]).upper()
    number = "".join(str(int(sign, 36)) for sign in code[4:] + code[:4])
    return end if int(number) % 97 == 1 else None


def _address(match: re.Match[str]) -> int | None:
    """Where an IP address ends; a full stop or a colon behind it is no part of it."""
    text = match[0].rstrip(".")
    text = text if text.endswith("::") else text.rstrip(":")
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return None
    return match.start() + len(text) if len(text) > 2 else None


_IBAN_LENGTHS: Final[Mapping[str, int]] = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27"
        " DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21"
        " HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27"
        " MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24"
        " RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22"
        " VG24 XK20 YE30",
    )
}

_SECRET: Final = 8_000  # characters of a key, about

# Scripts that put spaces between words; of the others a whole sentence would be one word.
_LETTER: Final = "A-Za-z0-9_\u00c0-\u024f\u0370-\u0dff\u1e00-\u1fff"
_EMAIL: Final = re.compile(
    rf"(?<![{_LETTER}.%+-])[{_LETTER}.%+-]{{1,64}}@(?:[{_LETTER}-]{{1,63}}\.){{1,8}}"
    r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z\u00c0-\u024f\u0370-\u0dff]{2,63})"
)
_PHONE: Final = re.compile(
    # +49 (0)30 1234567, 0049 30 1234567
    r"(?<![\d+A-Za-z])(?:(?:\+|00)[ ]?[1-9](?:[ .\-/()]{0,2}\d){6,13}"
    # (415) 555-2671, 1-415-555-2671
    r"|(?:1[ .\-])?(?:\([2-9]\d\d\)[ ]?|[2-9]\d\d[ .\-])[2-9]\d\d[ .\-]\d{4}"
    # 030 1234567, (0171) 123-4567
    r"|(?:\(0[1-9]\d{1,4}\)|0[1-9]\d{1,4})[ /\-]{1,3}\d(?:[ \-]?\d){4,9}"
    # 01 23 45 67 89
    r"|0[1-9](?:[ .]\d\d){4})(?!\d)",
    re.ASCII,
)
_CARD: Final = re.compile(
    r"(?<!\d)(?:[2-6]\d{12,18}|[2-6]\d{3}(?P<by>[ -])\d{4}(?P=by)\d{4}(?P=by)\d{4}"
    r"(?P<more>(?P=by)\d{3})?|3\d{3}(?P<of>[ -])\d{6}(?P=of)\d{4,5})(?!\d)",
    re.ASCII,
)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]){11,29}", re.ASCII)
_IBAN_BEGUN: Final = (
    r"(?<![A-Za-z0-9])[A-Za-z](?:[A-Za-z](?:\d(?:\d(?:[ -]?[A-Za-z0-9]){0,30}[ -]?)?)?)?"
)
_IP: Final = re.compile(
    r"(?<![\w.:])(?:[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?!\w|\.\w)"
    r"|(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:.]{3,46}(?![\w:]))",
    re.ASCII,
)
_KEY_BEGUN: Final = (
    rf"(?ai:\b(?:bearer|basic)\s{{1,8}}{VALUE}{{0,{_SECRET}}}"
    r"|:(?:/(?:/[^\s/:@]{0,64}(?::[^\s/@]{0,256})?)?)?"
    rf"|{NAMED}(?:[:=]\s{{0,8}}[\"']?(?:(?:bearer|basic)\s{{1,8}})?{VALUE}{{0,{_SECRET}}})?"
    r"|-----BEGIN [A-Z0-9 ]{0,80}(?:-{0,5}|-----[^-]{0,7200}(?:-{1,5}[A-Z0-9 ]{0,80}-{0,4})?))"
)

KNOWN: Final[Mapping[str, Pattern]] = {
    pattern.name: pattern
    for pattern in (
        Known("email", _EMAIL, 650, word=rf"{_LETTER}.%+\-@", marker="@"),
        Known("phone", _PHONE, 48, open=r"[+(\d][\d ()./+\-]*"),
        Known("card", _CARD, 24, open=r"\d[\d -]*", check=_luhn),
        Known("iban", _IBAN, 68, open=_IBAN_BEGUN, check=_iban),
        Known("keys", secrets(_SECRET), _SECRET + 200, word=r"A-Za-z0-9_.\-", open=_KEY_BEGUN),
        Known("ip", _IP, 48, word="0-9A-Fa-f:.", check=_address),
    )
}
"""The patterns that have names."""

USUAL: Final = ("email", "phone", "card", "iban", "keys")
"""Those that are looked for where none is named."""
