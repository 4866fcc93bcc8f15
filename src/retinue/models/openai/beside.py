"""What an answer holds beside text, thoughts and calls, for the `meta` of a response.

In a stream it comes piece by piece, and some servers send again what they have sent.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from retinue.models.loose import a_list, a_text, an_object
from retinue.models.openai.details import joined

GROWING: Final = ("annotations", "executed_tools", "images")
"""Lists in what is said."""
WHOLE: Final = ("citations", "search_results")
"""Lists beside it. Each is the whole one: the numbers in the text are places in it."""


class Beside:
    """Collects it.

    Attributes:
        meta: what there is so far.
    """

    __slots__ = ("_sound", "meta")

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self._sound: list[str] = []  # base64, in pieces that are each padded on their own

    def note(self, source: object) -> None:
        """Takes the lists of an answer, or of what is said in it."""
        for name in GROWING:
            if more := a_list(getattr(source, name, None)):
                self.meta[name] = _grown(a_list(self.meta.get(name)), more)
        for name in WHOLE:
            if value := getattr(source, name, None):
                self.meta[name] = value

    def hear(self, sound: Any) -> str:
        """Takes a piece of speech; gives the words in it."""
        said = {name: value for name, value in an_object(sound).items() if value}
        if not said:
            return ""
        words = a_text(said.get("transcript"))
        kept = self.meta.setdefault("audio", {})
        self._sound.append(a_text(said.pop("data", None)))
        kept |= said | {"transcript": kept.get("transcript", "") + words}
        return words

    def weigh(self, logprobs: Any) -> None:
        """Takes the log probabilities of more tokens."""
        weighed: Mapping[str, Any] = an_object(logprobs)
        for name, value in weighed.items():
            if value:
                kept = self.meta.setdefault("logprobs", {})
                kept[name] = [*a_list(kept.get(name)), *value] if a_list(value) else value

    def end(self) -> None:
        """Joins what came of speech."""
        if any(self._sound):
            try:
                whole = b"".join(map(base64.b64decode, self._sound))
            except binascii.Error:  # no base64, or a piece of it: whoever plays it will see
                self.meta["audio"]["data"] = "".join(self._sound)
                return
            self.meta["audio"]["data"] = base64.b64encode(whole).decode()


def _grown(before: list[Any], more: list[Any]) -> list[Any]:
    both = before + [one for one in more if one not in before]
    return joined(both) if all(map(an_object, both)) else both
