"""Nothing in the repository tells where it was written."""

from pathlib import Path

import pytest

from tests.structure.leaks import leak_faults, tracked_files
from tests.structure.sources import ROOT


def test_no_file_names_a_machine_or_a_registry() -> None:
    files = tracked_files(ROOT)
    assert ROOT / "pyproject.toml" in files
    assert leak_faults(files) == []


@pytest.mark.parametrize(
    "parts",
    [
        ("see /", "home/ann/notes"),
        ("open('/", "Users/ann/x')"),
        ("/", "root/x"),
        ("path = /", "tmp/x.db"),
        ("C:\\", "Users\\ann"),
        ("https://py", "pi.org/simple"),
        ("pip install --index", "-url x"),
        ("pip install --find", "-links x"),
    ],
)
def test_a_leak_is_found(tmp_path: Path, parts: tuple[str, str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("first\n" + "".join(parts))
    (fault,) = leak_faults([page])
    assert fault.startswith(f"{page}:2 ")


@pytest.mark.parametrize("text", ["docs/home/page.md", "GET /v1/root", "a/tmp/b", "/homely/x"])
def test_an_ordinary_path_is_no_leak(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert leak_faults([page]) == []
