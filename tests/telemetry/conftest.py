"""A fresh SDK for each test, and the collector that some tests need: rotel, a wheel for Linux and
macOS (`tests.needs` says where these tests are left out).
"""

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.telemetry.traces import Traces

SECONDS = 10.0
"""How long the collector may take to start or to stop."""


@pytest.fixture
def traces() -> Traces:
    """Where a telemetry of this test records."""
    return Traces()


@pytest.fixture(autouse=True)
def _nothing_to_complain_of(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """OpenTelemetry raises nothing: of a value it cannot take, or a context that was left in
    another task than it was entered in, it tells the log."""
    yield
    told = [each for each in caplog.get_records("call") if each.name.startswith("opentelemetry")]
    assert [each.getMessage() for each in told] == []


class Collector:
    """A running collector that writes what it gets to a file.

    Attributes:
        url: where it takes OTLP over HTTP.
    """

    def __init__(self, folder: Path) -> None:
        spec = find_spec("rotel")
        if spec is None or spec.origin is None:
            pytest.fail("rotel is not installed; it is among the development dependencies.")
        ports = [_free_port(), _free_port()]
        self.url = f"http://127.0.0.1:{ports[0]}"
        self._file = folder / "collected.txt"
        with self._file.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    str(Path(spec.origin).with_name("rotel-agent")), "start",
                    "--otlp-http-endpoint", f"127.0.0.1:{ports[0]}",
                    "--otlp-grpc-endpoint", f"127.0.0.1:{ports[1]}",
                    "--exporter", "blackhole",
                    "--debug-log", "traces", "--debug-log", "metrics",
                    "--debug-log-verbosity", "detailed",
                    "--pid-file", str(folder / "pid"), "--log-file", str(folder / "log"),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._await_port(ports[0])

    def stop(self) -> str:
        """Ends it, and gives its file."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(SECONDS)
        return self._file.read_text("utf-8")

    def _await_port(self, port: int) -> None:
        for _ in range(int(SECONDS / 0.02)):
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            threading.Event().wait(0.02)  # another process tells nobody when it is ready
        pytest.fail(f"The collector did not start: {self.stop()}")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """A real collector, on this machine."""
    running = Collector(tmp_path)
    yield running
    running.stop()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
