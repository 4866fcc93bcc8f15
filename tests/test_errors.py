"""The class of a failure, whoever's error it is."""

import errno
import http.client
import socket
import ssl
import urllib.error
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from retinue.errors import (
    Failure,
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    OutputError,
    ToolError,
    classify,
)

KEY: Any = SimpleNamespace(host="h", port=1, ssl=True)
"""Where aiohttp's errors of a connection say that it went."""


def foreign(module: str, name: str, *bases: type[BaseException]) -> BaseException:
    """An error of a library that need not be installed."""
    return type(name, bases or (Exception,), {"__module__": module})("x")


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """The error as `raise error from cause` leaves it."""
    error.__cause__ = cause
    return error


CONNECTION_ERROR = type("ConnectionError", (OSError,), {"__module__": "requests.exceptions"})
LIBRARY_ERROR = type("LibraryError", (Exception,), {"__module__": "library.errors"})


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "refused")),
        aiohttp.ClientConnectorDNSError(KEY, OSError(None, "unknown")),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError("cut short"),
        foreign(
            "httpx", "ConnectError", type("NetworkError", (Exception,), {"__module__": "httpx"})
        ),
        foreign("requests.exceptions", "ConnectTimeout", CONNECTION_ERROR),
        urllib.error.URLError(ConnectionRefusedError("refused")),
        urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "unknown")),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        http.client.IncompleteRead(b"half"),
        caused(LIBRARY_ERROR("no answer"), TimeoutError()),
        caused(LIBRARY_ERROR("outer"), caused(LIBRARY_ERROR("inner"), ConnectionResetError())),
    ],
    ids=repr,
)
def test_a_connection_that_fails_may_work_later_whoever_says_so(error: BaseException) -> None:
    assert classify(error) == "transient"


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize(
    "error",
    [
        PermissionError("denied"),
        PermissionError(errno.EACCES, "denied"),
        ssl.SSLCertVerificationError("not trusted"),
        aiohttp.ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError("expired")),
        foreign("requests.exceptions", "SSLError", CONNECTION_ERROR),
        aiohttp.ClientConnectorError(KEY, OSError(errno.EACCES, "firewall")),
        caused(LIBRARY_ERROR("cannot write"), OSError(errno.ENOSPC, "full")),
        caused(LIBRARY_ERROR("cannot read"), ToolError("no key", failure="environment")),
    ],
    ids=repr,
)
def test_what_a_person_must_mend_is_known_whoever_says_so(error: BaseException) -> None:
    assert classify(error) == "environment"


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize(
    "error",
    [
        LIBRARY_ERROR("x"),
        foreign("mine.network", "NetworkError"),
        urllib.error.URLError("unknown url type"),
        caused(ValueError("no such file; name another"), PermissionError("denied")),
        caused(AssertionError(), TimeoutError()),
        caused(OutputError("does not fit"), TimeoutError()),
        caused(LIBRARY_ERROR("too large"), MemoryError()),
    ],
    ids=repr,
)
def test_what_says_what_is_wrong_is_the_models_to_mend(error: BaseException) -> None:
    assert classify(error) == "semantic"


def test_errors_that_cause_each_other_are_classified_too() -> None:
    first, second = LIBRARY_ERROR("a"), LIBRARY_ERROR("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first) == "semantic"


@pytest.mark.rule("R-FAIL-1", "R-FAIL-2")
@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ModelRefused("no"), "semantic"),
        (ModelRefused("no", status=400), "semantic"),
        (ModelRefused("no", status=401), "environment"),
        (ModelOverloaded("later", status=409), "transient"),
        (ModelUnreachable("gone"), "transient"),
        (ModelBroken("half"), "semantic"),
        (ModelError("what?", status=503), "transient"),
    ],
    ids=lambda value: f"{value!r} {value.status}" if isinstance(value, ModelError) else "",
)
def test_a_model_error_says_itself_whose_it_is_and_whether_a_retry_may_help(
    error: ModelError, failure: Failure
) -> None:
    assert error.failure == classify(error) == failure
    assert error.retryable is (failure == "transient")
