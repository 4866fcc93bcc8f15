"""The tests' own ground rules: no network, no skips in CI, no complaint unheard, no unknown id."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.behaviours import BEHAVIOURS, RULES, Coverage
from tests.isolation import OffMachineError
from tests.structure.sources import ROOT

ELSEWHERE = "192.0.2.1"
"""An address that is reserved for documentation, and belongs to nobody."""


def pytest_run(test: Path, text: str, *options: str, **env: str) -> tuple[int, str]:
    test.write_text(text)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(test.parent)),
            *options,
            str(test),
        ],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_connecting_to_another_machine_fails_and_names_it() -> None:
    with socket.socket() as sock, pytest.raises(OffMachineError, match=ELSEWHERE):
        sock.connect((ELSEWHERE, 80))


def test_sending_to_another_machine_fails() -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as sock,
        pytest.raises(OffMachineError, match=ELSEWHERE),
    ):
        sock.sendto(b"x", (ELSEWHERE, 53))


def test_looking_up_a_name_fails_without_asking_anybody() -> None:
    with pytest.raises(OffMachineError, match=r"api\.example\.com"):
        socket.getaddrinfo("api.example.com", 443)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("nowhere.invalid", 443)


async def test_asyncio_and_the_http_client_are_held_too() -> None:
    with pytest.raises(OffMachineError, match=ELSEWHERE):
        await asyncio.open_connection(ELSEWHERE, 80)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(OffMachineError, match=r"api\.example\.com"):
            await session.get("https://api.example.com/v1")


def test_this_machine_is_within_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("localhost", port)) as client:
            assert client.getpeername() == ("127.0.0.1", port)


ways = pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "apart"])
"""In the process that reports, and in another one as by `make test`."""

SKIPS = "import pytest\n\ndef test_a():\n    pytest.skip('tired')\n"
EXPECTED = "import pytest\n\n@pytest.mark.xfail\ndef test_a():\n    assert False\n"
MODULE = "import pytest\n\npytest.skip('tired', allow_module_level=True)\n"


@ways
@pytest.mark.parametrize("text", [SKIPS, EXPECTED, MODULE], ids=["skip", "expected", "module"])
def test_a_skip_fails_the_run_in_ci(tmp_path: Path, text: str, options: tuple[str, ...]) -> None:
    code, output = pytest_run(tmp_path / "test_a.py", text, *options, CI="true")
    assert code != 0
    assert "was skipped; in CI every test runs" in output


def test_a_skip_is_only_a_skip_elsewhere(tmp_path: Path) -> None:
    code, output = pytest_run(tmp_path / "test_a.py", SKIPS, CI="")
    assert code == 0, output


UNRETRIEVED = """
import asyncio

async def test_a():
    async def fail():
        raise ValueError("lost")

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
"""
UNAWAITED = """
import asyncio

async def test_a():
    asyncio.sleep(0)
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(UNRETRIEVED, "exception was never retrieved"), (UNAWAITED, "was never awaited")],
    ids=["unretrieved", "unawaited"],
)
def test_what_asyncio_complains_of_fails_the_test(
    tmp_path: Path, text: str, complaint: str
) -> None:
    code, output = pytest_run(tmp_path / "test_a.py", text)
    assert code == 1
    assert complaint in output


@ways
def test_what_is_left_out_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    text = "def test_a(server): ...\ndef test_b(): ...\n"
    code, output = pytest_run(tmp_path / "test_a.py", text, *options, CI="", RETINUE_POSTGRES="")
    assert code == 0, output
    assert "1 tests of PostgreSQL were left out: RETINUE_POSTGRES names no server" in output
    assert "1 passed" in output


@ways
@pytest.mark.parametrize(("kind", "cited"), [("rule", "R-LOOP-99"), ("behaviour", "R-LOOP-1")])
def test_a_test_that_cites_what_does_not_exist_fails(
    tmp_path: Path, kind: str, cited: str, options: tuple[str, ...]
) -> None:
    text = f"import pytest\n\n@pytest.mark.{kind}('{cited}')\ndef test_a(): pass\n"
    code, output = pytest_run(tmp_path / "test_a.py", text, *options)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert f"test_a.py::test_a cites '{cited}'" in output


def test_the_report_counts_what_is_cited_and_lists_the_rest() -> None:
    coverage = Coverage()
    for cited in BEHAVIOURS:
        if cited != "B-ST-1":
            coverage.cite("behaviour", cited, "test")
    coverage.cite("rule", "R-LOOP-4", "test")
    behaviours, missing, rules, *_ = coverage.lines()
    assert behaviours == f"behaviours covered: {len(BEHAVIOURS) - 1} of {len(BEHAVIOURS)}"
    assert missing.split(maxsplit=1) == ["B-ST-1", BEHAVIOURS["B-ST-1"]]
    assert rules == f"rules covered: 1 of {len(RULES)}"
