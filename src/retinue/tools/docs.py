"""Docstrings, as far as a model reads them: the description, and a note for each parameter."""

import inspect
import re
from typing import Final

_TITLE: Final = (
    r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters"
    r"|Attributes|Returns?|Yields?|Raises|Examples?|Notes?|See Also|References|Warnings?)\s*:?\s*$"
)
_SECTIONS: Final = re.compile(
    rf"^\s*(?:(?P<NUMPYDOC>{_TITLE}\s*^\s*--)|(?P<GOOGLE>{_TITLE})|(?P<REST>:\w)|(?P<EPYDOC>@\w))",
    re.MULTILINE,
)
"""What only one style has, under the name of the style."""


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description and the notes on parameters of a Google, NumPy or reST docstring.

    A docstring that follows no style is all description.
    """
    if not text:
        return "", {}
    styles = {found.lastgroup for found in _SECTIONS.finditer(text)} if "\n" in text else None
    if not styles:
        return inspect.cleandoc(text), {}
    from docstring_parser import DocstringStyle, parse

    # To try all styles takes four times as long.
    style = DocstringStyle[styles.pop() or ""] if len(styles) == 1 else DocstringStyle.AUTO
    try:
        parsed = parse(text, style)
    except Exception:  # prose that only looks like a section
        return inspect.cleandoc(text), {}
    notes = {
        note.arg_name: " ".join(note.description.split())
        for note in parsed.params
        if note.description
    }
    return (parsed.description or "").strip(), notes
