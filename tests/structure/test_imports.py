"""Imports only go down the ranks, and never in a circle."""

from pathlib import Path

import pytest

from tests.structure.imports import cycle_faults, rank_faults
from tests.structure.sources import SRC, read_sources


def tree(root: Path, files: dict[str, str]) -> Path:
    for place, text in files.items():
        path = root / "retinue" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()
    return root


def test_imports_go_down_the_ranks() -> None:
    assert rank_faults(read_sources(SRC)) == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert cycle_faults(read_sources(SRC)) == []


@pytest.mark.parametrize(
    "text",
    [
        "from retinue.agent import Agent",
        "from retinue import agent",
        "import retinue.agent",
        "import retinue.agent.loop as loop",
        "from ..agent import loop",
        "def late():\n    from retinue.agent import Agent",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from retinue.agent import Agent",
        "from importlib import import_module\nLAZY = {'Agent': 'retinue.agent.loop'}",
    ],
)
def test_an_import_upward_is_found_wherever_it_hides(tmp_path: Path, text: str) -> None:
    root = tree(tmp_path, {"agent/loop.py": "", "tools/tool.py": text})
    (fault,) = rank_faults(read_sources(root))
    assert fault.startswith("retinue/tools/tool.py:")
    assert "retinue.tools.tool (rank 2) must not import retinue.agent" in fault


def test_packages_of_one_rank_do_not_import_each_other(tmp_path: Path) -> None:
    root = tree(tmp_path, {"stores/sql.py": "", "tools/tool.py": "import retinue.stores.sql"})
    assert len(rank_faults(read_sources(root))) == 1


def test_nothing_imports_the_package_root(tmp_path: Path) -> None:
    root = tree(tmp_path, {"cli/main.py": "from retinue import Agent", "errors.py": ""})
    (fault,) = rank_faults(read_sources(root))
    assert "must not import retinue " in fault


def test_imports_downward_and_inside_a_package_are_fine(tmp_path: Path) -> None:
    text = "import retinue.errors\nfrom retinue.tools import base\nfrom retinue import errors"
    root = tree(tmp_path, {"errors.py": "", "tools/base.py": "", "tools/tool.py": text})
    assert rank_faults(read_sources(root)) == []


def test_a_package_without_a_rank_is_found(tmp_path: Path) -> None:
    (fault, _) = rank_faults(read_sources(tree(tmp_path, {"extras/odd.py": ""})))
    assert "retinue.extras has no rank" in fault


def test_a_circle_hidden_in_a_function_is_found(tmp_path: Path) -> None:
    late = "def late():\n    from retinue.tools.tool import x"
    root = tree(tmp_path, {"tools/tool.py": "import retinue.tools.run", "tools/run.py": late})
    (fault,) = cycle_faults(read_sources(root))
    assert "retinue.tools.tool" in fault
    assert "retinue.tools.run" in fault


def test_a_circle_through_the_own_package_is_found(tmp_path: Path) -> None:
    root = tree(tmp_path, {"tools/tool.py": "from retinue.tools import Tool"})
    (root / "retinue/tools/__init__.py").write_text("from retinue.tools.tool import Tool")
    assert len(cycle_faults(read_sources(root))) == 1


def test_what_only_the_type_checker_reads_closes_no_circle(tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import retinue.tools.tool"
    root = tree(tmp_path, {"tools/tool.py": "import retinue.tools.run", "tools/run.py": typed})
    assert cycle_faults(read_sources(root)) == []
