"""Markdown that is still being written: which of it will not change any more.

No terminal and no events here: text in, text out.
"""

from rich.markdown import Markdown


class Blocks:
    """Text that comes in pieces, given on as whole blocks: paragraphs, lists, tables, code.

    Attributes:
        rest: what has come and is not settled.
    """

    __slots__ = ("rest",)

    def __init__(self) -> None:
        self.rest = ""

    def add(self, chunk: str) -> str:
        """Takes a chunk; gives the blocks that are settled by it, or an empty text."""
        self.rest += chunk
        if "\n" not in chunk:
            return ""
        end = _last_block(self.rest)
        settled, self.rest = self.rest[:end], self.rest[end:]
        return settled

    def take(self) -> str:
        """What is left, at the end; it is forgotten here."""
        rest, self.rest = self.rest, ""
        return rest


def _last_block(text: str) -> int:
    """Where the last block begins. It may still grow, as may what the last, cut line will be."""
    whole = text[: text.rfind("\n") + 1]
    starts = [token.map[0] for token in Markdown(whole).parsed if token.level == 0 and token.map]
    if not starts:
        return 0
    lines = whole.splitlines(keepends=True)
    return sum(map(len, lines[: starts[-1]]))
