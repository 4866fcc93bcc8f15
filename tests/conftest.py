"""What holds for every test: it stays on this machine, leaves nothing behind, and is never skipped
in CI. A whole run ends by telling which rules and behaviours have a test.
"""

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings

from tests import needs
from tests.behaviours import Coverage
from tests.isolation import stay_on_this_machine

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# A busy machine makes deadlines lie, and a red run must be the same red for everyone.
settings.register_profile("retinue", deadline=None, derandomize=True, database=None)
settings.load_profile("retinue")


class Complaints(logging.Handler):
    """What asyncio can only log: an exception that nobody retrieved, a task that was dropped."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())

    def take(self) -> list[str]:
        """The complaints since the last time; they are forgotten here."""
        texts, self._texts = self._texts, []
        return texts


_complaints = Complaints()
_told = pytest.StashKey[tuple[list[str], list[str]]]()
"""What was left out, and what is covered."""
_misquotes = pytest.StashKey[list[str]]()
"""A sentence for each thing that a test cites and that does not exist."""


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """A handler of a signal."""


def pytest_configure(config: pytest.Config) -> None:
    # Tests inherit that Ctrl-C is ignored where a script runs them in the background, and that a
    # lost terminal is under nohup; so would the processes that they start and signal. A handler
    # that does nothing keeps this run alive, and is not inherited: a process that shares the tests
    # has one always, and ends with its parent.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    shares = hasattr(config, "workerinput")
    if shares or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _do_nothing)
    logging.getLogger("asyncio").addHandler(_complaints)


def pytest_unconfigure() -> None:
    logging.getLogger("asyncio").removeHandler(_complaints)


@pytest.fixture(scope="session", autouse=True)
def on_this_machine_only() -> Iterator[None]:
    """Whatever leaves the loopback interface fails."""
    with pytest.MonkeyPatch.context() as patch:
        stay_on_this_machine(patch)
        yield


@pytest.fixture(scope="session")
def server() -> str:
    """The URL of a PostgreSQL server."""
    return needs.POSTGRES.url()


@pytest.fixture(scope="session")
def redis_server() -> str:
    """The URL of a Redis server."""
    return needs.REDIS.url()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Fails a test that left something which asyncio complains of."""
    result = yield
    # Young garbage is enough: what a test made has not grown old yet.
    gc.collect(1)
    left = _complaints.take()
    if left:
        pytest.fail("asyncio complains after this test:\n" + "\n".join(left), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped or expected failure is a failure in CI: there, all tests can run."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped; in CI every test runs."
        vars(report).pop("wasxfail", None)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped; in CI every test runs."
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gathers the ids that tests cite. What needs a server or a program that is not there is left
    out, but not in CI.
    """
    if not IN_CI:
        needs.leave_out(config, items)
    coverage = Coverage()
    for item in items:
        faults = item.stash[_misquotes] = []
        for marker in item.iter_markers():
            if marker.name in ("rule", "behaviour"):
                for cited in marker.args:
                    if fault := coverage.cite(marker.name, cited, item.nodeid):
                        faults.append(fault)
    config.stash[_told] = (needs.lines(config), coverage.lines())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test that cites what does not exist."""
    if faults := item.stash[_misquotes]:
        pytest.fail("\n".join(faults), pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends the parent what there is to tell: where processes share the tests, it collects none."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None and _told in session.config.stash:
        output["told"] = session.config.stash[_told]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes it from a process that has ended."""
    if told := getattr(node, "workeroutput", {}).get("told"):
        node.config.stash[_told] = told


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints what was missing and, when the run was not narrowed, what is covered."""
    if _told not in config.stash:
        return
    left_out, covered = config.stash[_told]
    for line in left_out:
        terminalreporter.line(line)
    narrowed = config.option.keyword or config.option.markexpr
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed
    if not whole:
        return
    terminalreporter.section("covered")
    for line in covered:
        terminalreporter.line(line)
