"""The public surface is small and documented, and importing it is cheap."""

from pathlib import Path

import pytest

from tests.structure.docstrings import docstring_faults
from tests.structure.sources import SRC, read_sources
from tests.structure.surface import IMPORT_SECONDS, fresh_import, root_faults, weight_faults


def test_the_package_root_offers_few_names_and_says_which() -> None:
    assert root_faults(fresh_import(SRC)) == []


def test_importing_the_package_loads_no_library_of_a_provider_server_or_database() -> None:
    assert weight_faults(fresh_import(SRC)) == []


def test_importing_the_package_is_quick() -> None:
    fresh_import(SRC)  # which may have to compile
    assert min(fresh_import(SRC)["seconds"] for _ in range(8)) <= IMPORT_SECONDS


def test_public_things_have_docstrings() -> None:
    assert docstring_faults(read_sources(SRC)) == []


def module(root: Path, text: str) -> Path:
    (root / "room.py").write_text(text)
    return root


def test_a_slow_import_is_measured(tmp_path: Path) -> None:
    slow = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass"
    assert fresh_import(module(tmp_path, slow), "room")["seconds"] > IMPORT_SECONDS


def test_an_import_is_measured_without_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    fresh_import(module(tmp_path, "x = 1"), "room")
    assert [*tmp_path.rglob("room.*.pyc")]


def test_a_heavy_import_is_found(tmp_path: Path) -> None:
    report = fresh_import(module(tmp_path, "import pydantic.fields"), "room")
    assert "importing the package loads pydantic." in weight_faults(report)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "needs __all__"),
        ("x = 1\ny = 2\n__all__ = ['x']", "y is public but not in __all__"),
        ("__all__ = ['ghost']", "ghost is in __all__ but does not exist"),
        (
            "__all__ = [f'x{n}' for n in range(41)]\nglobals().update(dict.fromkeys(__all__))",
            "41 public names",
        ),
    ],
)
def test_a_careless_root_is_found(tmp_path: Path, text: str, fault: str) -> None:
    (found,) = root_faults(fresh_import(module(tmp_path, text), "room"))
    assert fault in found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1", "the module"),
        ("'''Room.'''\ndef open(): ...", "open"),
        ("'''Room.'''\nclass Door: ...", "Door"),
        ("'''Room.'''\nclass Door:\n    '''A door.'''\n    async def open(self): ...", "Door.open"),
    ],
)
def test_a_missing_docstring_is_found(tmp_path: Path, text: str, fault: str) -> None:
    (found,) = docstring_faults(read_sources(module(tmp_path, text)))
    assert f"{fault} has no docstring." in found


@pytest.mark.parametrize(
    "text",
    [
        "def _open(): ...",
        "class Contract:\n    '''A contract.'''\n    def test_it_holds(self): ...",
        "class _Door:\n    def open(self): ...",
        "class Door:\n    '''A door.'''\n    def __init__(self): ...",
        "class Door:\n    '''A door.\n\n    Attributes:\n        wide: how wide.\n    '''\n"
        "    @property\n    def wide(self): ...",
        "class Way(Protocol):\n    '''A way.'''\n    def open(self):\n        '''Opens.'''\n"
        "class Door:\n    '''A door.'''\n    def open(self): ...",
        "class Base:\n    '''A base.'''\n    def open(self):\n        '''Opens.'''\n"
        "class Door(Base):\n    '''A door.'''\n    def open(self): ...",
    ],
)
def test_private_things_and_kept_promises_need_no_docstring(tmp_path: Path, text: str) -> None:
    assert docstring_faults(read_sources(module(tmp_path, f"'''Room.'''\n{text}"))) == []
