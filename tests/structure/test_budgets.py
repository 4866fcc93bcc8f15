"""Files and functions stay small, and are named after what they do."""

from pathlib import Path

import pytest

from tests.structure.budgets import complexity_faults, file_faults, function_faults, name_faults
from tests.structure.sources import CODE, ROOT, Source, read_sources

FOLDERS = [ROOT / folder for folder in CODE if (ROOT / folder).is_dir()]


@pytest.fixture(scope="module")
def sources() -> dict[str, Source]:
    return {
        f"{folder.name}/{name}": source
        for folder in FOLDERS
        for name, source in read_sources(folder).items()
    }


def test_no_file_is_longer_than_its_budget(sources: dict[str, Source]) -> None:
    assert file_faults(sources) == []


def test_no_function_is_longer_than_its_budget(sources: dict[str, Source]) -> None:
    assert function_faults(sources) == []


def test_no_function_is_more_tangled_than_its_budget() -> None:
    assert complexity_faults(FOLDERS) == []


def test_no_file_is_named_like_a_drawer(sources: dict[str, Source]) -> None:
    assert name_faults(sources) == []


@pytest.mark.parametrize(("lines", "faults"), [(400, 0), (401, 1)])
def test_a_file_over_its_budget_is_found(tmp_path: Path, lines: int, faults: int) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * lines)
    assert len(file_faults(read_sources(tmp_path))) == faults


@pytest.mark.parametrize(("lines", "faults"), [(60, 0), (61, 1)])
def test_a_method_over_its_budget_is_found(tmp_path: Path, lines: int, faults: int) -> None:
    body = "        x = 1\n" * (lines - 1)
    (tmp_path / "long.py").write_text(f"class A:\n    async def long(self):\n{body}")
    assert len(function_faults(read_sources(tmp_path))) == faults


@pytest.mark.parametrize(("branches", "faults"), [(11, 0), (12, 1)])
def test_a_tangle_is_found_though_it_is_excused(tmp_path: Path, branches: int, faults: int) -> None:
    body = "    if x: pass\n" * branches
    (tmp_path / "tangle.py").write_text(f"def tangle(x):  # noqa: C901\n{body}")
    assert len(complexity_faults([tmp_path])) == faults


@pytest.mark.parametrize("place", ["utils.py", "helpers.py", "helpers/text.py"])
def test_a_drawer_is_found(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    assert len(name_faults(read_sources(tmp_path))) == 1
