"""The strict fake provider that the tests of models call, over loopback.

It is no part of the repository. `RETINUE_PROVIDER` names its folder; without it it is looked for
beside the repository. Its README says what a script may hold.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def folder() -> Path:
    """Where the provider is."""
    return Path(os.environ.get("RETINUE_PROVIDER") or ROOT.parent / "shared" / "provider")


@contextmanager
def running() -> Iterator[Any]:
    """The provider, until the end of the block.

    Raises:
        AssertionError: it is not there; a test without it would prove nothing.
    """
    path = folder() / "rig.py"
    assert path.is_file(), (
        f"There is no {path}. Set RETINUE_PROVIDER to the folder that holds the fake provider"
        " (rig.py, server.py)."
    )
    spec = importlib.util.spec_from_file_location("retinue_provider_rig", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Rig() as rig:
        rig.key = module.OPENAI_KEY
        yield rig


def run_script(
    source: str, *options: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """A Python program in a process of its own, at most 60 seconds."""
    return subprocess.run(
        [sys.executable, *options, "-c", source],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **environment},
        check=False,
    )
