"""Reasoning between tags in the text, told apart from it, however the text is cut into chunks.

Tags are told by what they are, whatever their case. Text and reasoning keep every character but the
tags. A text is held only while it may be the beginning of a tag.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from retinue.errors import ConfigError
from retinue.messages import Delta, TextDelta, ThinkingDelta

Tag = str | tuple[str, str]
"""A name, as "think" for `<think>` and `</think>`; or what opens and what closes, word for word."""

TAGS: Final[tuple[Tag, ...]] = ("think", "thinking", "thought", "reasoning")
"""The tags that models are known to use."""

_FOLD: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
"""Lower case for ASCII alone: as long as before, and the same as the patterns take for equal."""
_NAME: Final = re.compile(r"[A-Za-z][\w.:-]*")
_SPACE: Final = re.compile(r"\s*")


class Tags:
    """The tags to look for, made once.

    Args:
        tags: names or pairs.

    Raises:
        ConfigError: one is none, or one begins as another does, so that it could not be told.
    """

    def __init__(self, tags: Sequence[Tag]) -> None:
        pairs = [_pair(tag) for tag in tags]
        self.closing = {opening: _Mark([closing]) for opening, closing in pairs}
        self.opening = _Mark([*self.closing])
        self.any_closing = _Mark([closing for _, closing in pairs])
        for one in self.closing:
            for other in self.closing:
                if one != other and other.startswith(one):
                    raise ConfigError(
                        f"Thinking(tags=...): {other!r} begins with {one!r}, so the two cannot be"
                        " told apart; give one of them."
                    )


class _Mark:
    """One of several words, looked for in text that goes on."""

    __slots__ = ("_first", "_longest", "_words", "pattern")

    def __init__(self, words: Sequence[str]) -> None:
        flags = re.IGNORECASE | re.ASCII
        self.pattern = re.compile("|".join(map(re.escape, words)), flags)
        self._first = re.compile("|".join(re.escape(word[0]) for word in words), flags)
        self._words = words
        self._longest = max(map(len, words))

    def begun(self, text: str) -> int:
        """How many characters at the end of the text may be the beginning of one."""
        found = self._first.search(text, max(0, len(text) - self._longest + 1))
        while found is not None:
            end = text[found.start() :].translate(_FOLD)
            if any(word.startswith(end) for word in self._words):
                return len(end)
            found = self._first.search(text, found.end())
        return 0


class Untag:
    """A transform: reasoning in tags becomes reasoning, and is noted as it comes.

    Args:
        tags: what to look for; None for reasoning that the provider tells apart already.
        anywhere: whether tags count in the middle of an answer too.
        opened: whether the answer begins inside of one.
        note: called for each piece of reasoning.
    """

    __slots__ = ("_anywhere", "_held", "_inside", "_note", "_plain", "_tags")

    def __init__(
        self, tags: Tags | None, *, anywhere: bool, opened: bool, note: Callable[[], None]
    ) -> None:
        self._tags = tags
        self._plain = tags is None  # or the answer has begun, and tags in it do not count
        self._anywhere = anywhere
        self._inside = tags.any_closing if tags is not None and opened else None
        self._held = ""
        self._note = note

    def feed(self, delta: Delta) -> tuple[Delta, ...]:
        """Takes one delta."""
        if type(delta) is ThinkingDelta:
            self._note()
            return (delta,)
        if self._plain or type(delta) is not TextDelta:
            return (delta,)
        text, self._held = self._held + delta.text, ""
        told: list[Delta] = []
        while text and not self._plain:
            text = self._say(text, told) if self._inside is None else self._think(text, told)
        if text:
            told.append(TextDelta(text))
        return tuple(told)

    def flush(self) -> tuple[Delta, ...]:
        """What was held is what it was, and no tag."""
        told: list[Delta] = []
        held, self._held = self._held, ""
        if held and self._inside:
            self._thought(held, told)
        elif held:
            told.append(TextDelta(held))
        return tuple(told)

    def _think(self, text: str, told: list[Delta]) -> str:
        """Takes reasoning up to its end; gives what is left."""
        closing = self._inside
        if closing is None:
            return text
        found = closing.pattern.search(text)
        if found is not None:
            self._thought(text[: found.start()], told)
            self._inside = None
            return text[found.end() :]
        self._thought(self._hold(text, closing), told)
        return ""

    def _say(self, text: str, told: list[Delta]) -> str:
        """Takes text up to the next tag; gives what is left."""
        tags = self._tags
        if tags is None:
            return text
        pattern = tags.opening.pattern
        blank = _SPACE.match(text)
        at = 0 if blank is None else blank.end()
        found = pattern.search(text) if self._anywhere else pattern.match(text, at)
        if found is not None:
            if found.start():
                told.append(TextDelta(text[: found.start()]))
            self._inside = tags.closing[found[0].translate(_FOLD)]
            return text[found.end() :]
        said = self._hold(text, tags.opening)
        if not self._anywhere and at < len(said):  # the answer has begun
            self._plain, self._held = True, ""
            return text
        if said:
            told.append(TextDelta(said))
        return ""

    def _hold(self, text: str, mark: _Mark) -> str:
        """The text without what may be the beginning of a tag, which is held."""
        at = len(text) - mark.begun(text)
        self._held = text[at:]
        return text[:at]

    def _thought(self, text: str, told: list[Delta]) -> None:
        if text:
            self._note()
            told.append(ThinkingDelta(text))


def _pair(tag: object) -> tuple[str, str]:
    if isinstance(tag, str) and _NAME.fullmatch(tag):
        return f"<{tag}>".translate(_FOLD), f"</{tag}>".translate(_FOLD)
    match tag:
        case (str(opening), str(closing)) if opening[:1].strip() and closing.strip():
            return opening.translate(_FOLD), closing.translate(_FOLD)
        case _:
            raise ConfigError(
                f"Thinking(tags=...): {tag!r} is no tag; give a name such as 'think', or a pair"
                " such as ('[THINK]', '[/THINK]')."
            )
