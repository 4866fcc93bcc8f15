"""Every Python block of the docs is the text of a file, or of a marked region of one; every link to
a file leads to one.

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
_CODE: Final = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)|(?P<ticks>`+).+?(?P=ticks)",
    re.MULTILINE | re.DOTALL,
)
_LINK: Final = re.compile(
    r"\]\((?P<inline>[^)\s]+)[^)]*\)|^ *\[[^\]]+\]: *(?P<apart>\S+)", re.MULTILINE
)
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)
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


def links_of(page: str) -> Iterator[tuple[int, str]]:
    """The links of a page to files beside it: the line of each, and the path."""
    prose = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), page)
    for found in _LINK.finditer(prose):
        target = found["inline"] or found["apart"]
        if not _ELSEWHERE.match(target):
            yield prose.count("\n", 0, found.start()) + 1, target.partition("#")[0]


def link_faults(root: Path) -> list[str]:
    """Links to files that are not there, in all Markdown of the repository."""
    files = {*pages(root), *root.glob("*.md"), *(root / "changelog.d").glob("*.md")}
    return [
        f"{page.relative_to(root)}:{line}: there is no {target}."
        for page in sorted(files)
        for line, target in links_of(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]


def _tidy(code: str) -> str:
    return textwrap.dedent(code).strip("\n")
