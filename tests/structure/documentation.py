"""Every Python block of the docs is the text of a file, or of a marked region of one.

The files lie in `docs_src/`, where they are run by `tests/docs`. A region goes from a line
`# region NAME` to the next `# endregion`.
"""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?:python|py)\b[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)",
    re.MULTILINE | re.DOTALL,
)
_REGION: Final = re.compile(
    r"^ *# region\b[^\n]*\n(?P<code>.*?)^ *# endregion\b[^\n]*$", re.MULTILINE | re.DOTALL
)
_MARK: Final = re.compile(r"^ *# (?:end)?region\b[^\n]*\n", re.MULTILINE)


def pages(root: Path) -> list[Path]:
    """The README and all pages of the docs."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def blocks_of(page: str) -> Iterator[tuple[int, str]]:
    """The Python blocks of a page: the line each begins on, and its code."""
    for found in _BLOCK.finditer(page):
        yield page.count("\n", 0, found.start()) + 1, _tidy(found["code"])


def examples_of(source: str) -> Iterator[str]:
    """What a page may quote of a file: the whole without its marks, and each region."""
    yield _tidy(_MARK.sub("", source))
    for found in _REGION.finditer(source):
        yield _tidy(found["code"])


def block_faults(root: Path) -> list[str]:
    """Python blocks that no file in `docs_src/` holds."""
    examples = {
        example
        for path in sorted((root / "docs_src").rglob("*.py"))
        for example in examples_of(path.read_text("utf-8"))
    }
    return [
        f"{page.relative_to(root)}:{line}: this block is not the text of a file or region "
        "in docs_src/."
        for page in pages(root)
        for line, code in blocks_of(page.read_text("utf-8"))
        if code not in examples
    ]


def _tidy(code: str) -> str:
    return textwrap.dedent(code).strip("\n")
