"""The demo runs, and fails where what it shows is not so. The model in it is the real one."""

import os
import subprocess
import sys
from pathlib import Path

from tests.structure.sources import ROOT, SRC

DEMO = ROOT / "demo" / "demo.py"


def run(program: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(SRC), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


def test_the_demo_shows_everything_and_every_check_holds() -> None:
    done = run(DEMO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n✓") >= 7
    assert "NOT SO" not in done.stdout
    assert "135 million parameters" in done.stdout


def test_a_demo_whose_memory_is_taken_away_fails(tmp_path: Path) -> None:
    code = DEMO.read_text("utf-8")
    memory = "Memory(self.store), "
    assert memory in code
    (tmp_path / "demo.py").write_text(code.replace(memory, ""), "utf-8")
    done = run(tmp_path / "demo.py")
    assert done.returncode == 1
    assert "NOT SO: the model was sent the first exchange" in done.stdout
    assert "NOT SO: the model was sent all that was said" in done.stdout
