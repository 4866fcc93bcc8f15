"""Every file in `docs_src/` is a program that runs as a reader would run it, and prints what the
docs say it prints.

An example runs in a fresh process and an empty folder, offline, with warnings as errors. Where
`NAME.out` lies beside `NAME.py`, that is its output, exactly. Where `NAME.pattern` does, its output
fits that regular expression: the embedded model chooses its words, and on another CPU others.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure.sources import ROOT

EXAMPLES = sorted((ROOT / "docs_src").rglob("*.py"))
SECONDS = 60
"""How long one example may take; the embedded model loads in about one."""


def run(example: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program as `python example.py` in the folder, with no provider's key at hand."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=folder,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_of_the_docs_runs_and_prints_what_is_said(example: Path, tmp_path: Path) -> None:
    done = run(example, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    expected = example.with_suffix(".out")
    if expected.exists():
        assert done.stdout == expected.read_text("utf-8")
    pattern = example.with_suffix(".pattern")
    if pattern.exists():
        assert re.fullmatch(pattern.read_text("utf-8"), done.stdout)


def test_an_example_that_fails_is_noticed(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text("import warnings\nwarnings.warn('old')\n")
    assert run(example, tmp_path).returncode == 1
