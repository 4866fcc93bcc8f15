"""The demo runs, and fails where what it shows is not so. The model in it is the real one."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from retinue.chains import Output
from tests.structure.sources import ROOT, SRC

DEMO = ROOT / "demo" / "demo.py"
MOST_DIGITS = 16
"""That llama.cpp lets an integer have. A character may take four tokens, one for each byte."""


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
    assert done.stdout.count("\n✓") >= 14
    assert "NOT SO" not in done.stdout
    assert "135 million parameters" in done.stdout
    scene = [
        "paused: Waits for 1 answer: book (approval).",
        "The process ends here.",
        "waits (approval)",
        ": 3 nights.",
        "✓ the turn completed, and what was approved is what ran",
    ]
    places = [done.stdout.find(line) for line in scene]
    assert -1 not in places
    assert places == sorted(places)


def test_what_the_model_fills_in_fits_into_its_answer_whatever_it_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(DEMO.parent)
    demo = runpy.run_path(str(DEMO))
    tools = (demo["forecast"], demo["book"])
    for schema in (*(one.spec.parameters for one in tools), Output.of(demo["Person"]).schema):
        fields = schema["properties"].values()
        texts = [field["maxLength"] for field in fields if field["type"] == "string"]
        numbers = [field for field in fields if field["type"] == "integer"]
        assert len(texts) + len(numbers) == len(fields)
        tokens = 4 * sum(texts) + MOST_DIGITS * len(numbers)
        assert tokens < demo["ROOMY"].max_tokens / 2  # the rest is for the JSON round them


def test_a_demo_whose_memory_is_taken_away_fails(tmp_path: Path) -> None:
    shutil.copy(DEMO.with_name("layers.py"), tmp_path)
    code = DEMO.read_text("utf-8")
    memory = "Memory(self.store), "
    assert memory in code
    (tmp_path / "demo.py").write_text(code.replace(memory, ""), "utf-8")
    done = run(tmp_path / "demo.py")
    assert done.returncode == 1
    assert "NOT SO: the model was sent the first exchange" in done.stdout
    assert "NOT SO: the model was sent all that was said" in done.stdout
