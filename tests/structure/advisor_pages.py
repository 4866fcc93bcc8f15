"""Each advisor has a page of one shape, with an example, and a line in the index.

A page is `docs/advisors/<name in lower case>.md`. It begins with what the advisor is, has the five
headings in their order, and a Python block under "Example". The line in the index, in `README.md`
beside it, links to the page and names the hooks.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from retinue import Advisor
from retinue.chains import hooks_of
from retinue.chains.advisor import HOOKS
from tests.structure.documentation import blocks_of

HEADINGS: Final = (
    "What it does",
    "Where it stands",
    "What it costs",
    "Example",
    "What it cannot do",
)
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_ROW: Final = re.compile(r"^\| \[`(\w+)`\]\((\S+)\) \| ([^|]+) \|", re.MULTILINE)


def advisors_of(*modules: ModuleType) -> dict[str, Sequence[str]]:
    """The advisors that the modules offer, by name, each with the hooks that its class has."""
    return {
        name: hooks_of(thing)
        for module in modules
        for name in module.__all__
        if isinstance(thing := getattr(module, name), type) and issubclass(thing, Advisor)
    }


def page_faults(folder: Path, names: Sequence[str]) -> list[str]:
    """Pages that are missing, or not of the shape."""
    faults: list[str] = []
    for name in names:
        page = folder / f"{name.lower()}.md"
        if not page.exists():
            faults.append(f"{name} has no page {page.name}.")
            continue
        text = page.read_text("utf-8")
        if not text.startswith(f"# {name}\n\n`{name}` "):
            faults.append(f"{page.name} does not begin with what {name} is.")
        headings = _HEADING.findall(text)
        if headings != [*HEADINGS]:
            faults.append(f"{page.name} has the headings {headings}.")
        elif not any(_is_example(text, line) for line, _ in blocks_of(text)):
            faults.append(f"{page.name} shows no example.")
    return faults


def index_faults(folder: Path, advisors: Mapping[str, Sequence[str]]) -> list[str]:
    """Advisors without a line in the index, and lines that are wrong.

    A line may name more hooks than the class has: some come when it is made with certain arguments.
    """
    index = (folder / "README.md").read_text("utf-8")
    rows = {name: (link, hooks) for name, link, hooks in _ROW.findall(index)}
    faults = [f"the index names {name}, which is none." for name in rows.keys() - advisors.keys()]
    for name, hooks in advisors.items():
        link, told = rows.get(name, ("", ""))
        if link != f"{name.lower()}.md":
            faults.append(f"the index does not lead to the page of {name}.")
        elif not set(hooks) <= set(words := _WORD.findall(told)) <= {*HOOKS, "or"}:
            faults.append(f"the index says that {name} has {words}; it has {hooks}.")
    return faults


def _is_example(text: str, line: int) -> bool:
    """Whether what stands on this line is under the heading of the example."""
    before = "\n".join(text.splitlines()[: line - 1])
    return _HEADING.findall(before)[-1:] == ["Example"]
