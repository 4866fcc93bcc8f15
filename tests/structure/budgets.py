"""The budgets: how long a file and a function may be, how tangled, and what no file is called."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.structure.sources import Source, functions_of

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60
COMPLEXITY: Final = 12
DRAWERS: Final = frozenset({"utils", "util", "helpers", "helper", "misc"})
"""File names that say nothing, and so collect everything."""


def file_faults(sources: Mapping[str, Source]) -> list[str]:
    """Files over their budget of lines."""
    return [
        f"{source.place} has {lines} lines; a file has at most {FILE_LINES}."
        for source in sources.values()
        if (lines := len(source.text.splitlines())) > FILE_LINES
    ]


def function_faults(sources: Mapping[str, Source]) -> list[str]:
    """Functions over their budget of lines, counted from `def` to the end."""
    return [
        f"{source.place}:{node.lineno}: {node.name} has {lines} lines; "
        f"a function has at most {FUNCTION_LINES}."
        for source in sources.values()
        for node in functions_of(source.tree)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]


def complexity_faults(folders: Iterable[Path]) -> list[str]:
    """Functions over their budget of branches, by ruff's count, and no `noqa` is heard."""
    command = [
        *(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--ignore-noqa"),
        *("--exit-zero", "--select", "C901", "--output-format", "json"),
        *("--config", f"lint.mccabe.max-complexity={COMPLEXITY}"),
        *map(str, folders),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [
        f"{found['filename']}:{found['location']['row']}: {found['message']}"
        for found in json.loads(done.stdout)
    ]


def name_faults(sources: Mapping[str, Source]) -> list[str]:
    """Files named like a drawer."""
    return [
        f"{source.place}: name the file, or its folder, after what is in it."
        for source in sources.values()
        if DRAWERS.intersection(source.name.split("."))
    ]
