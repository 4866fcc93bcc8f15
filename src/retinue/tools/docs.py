"""Docstrings, as far as a model reads them: the description, and a note for each parameter."""

import inspect
import re
from typing import Final

_SECTIONS: Final = re.compile(
    r"^\s*(?:(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters"
    r"|Attributes|Returns?|Yields?|Raises|Examples?|Notes?|See Also|References|Warnings?)\s*:?\s*$"
    r"|[:@]\w)",
    re.MULTILINE,
)


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description and the notes on parameters of a Google, NumPy or reST docstring.

    A docstring that follows no style is all description.
    """
    if not text:
        return "", {}
    if "\n" not in text or not _SECTIONS.search(text):
        return inspect.cleandoc(text), {}
    from docstring_parser import parse

    try:
        parsed = parse(text)
    except Exception:  # prose that only looks like a section
        return inspect.cleandoc(text), {}
    notes = {
        note.arg_name: " ".join(note.description.split())
        for note in parsed.params
        if note.description
    }
    return (parsed.description or "").strip(), notes
