"""What clients are told of failures, and what stands in the log instead."""

import logging

import pytest

from retinue import ConfigError
from retinue.errors import (
    ConversationBusy,
    ConversationNotFound,
    MissingExtraError,
    MissingKeyError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    OutputError,
    PauseNotFound,
    StoreError,
)
from retinue.serve.faults import CODES, Refused, fault_of, record

TOLD = [
    (Refused("too_many", "Wait."), "too_many"),
    (ConfigError("No such field."), "invalid"),
    (ConversationNotFound("There is none."), "not_found"),
    (PauseNotFound("Nothing waits."), "conflict"),
    (ConversationBusy("Another one writes."), "conflict"),
    (ModelRefused("The prompt is too long.", status=400), "model_failed"),
    (ModelOverloaded("Ask less often.", status=429), "model_failed"),
    (OutputError("No JSON."), "model_failed"),
]
HIDDEN = [
    (MissingExtraError("retinue lacks db.internal"), "internal"),
    (MissingKeyError("set DB_INTERNAL, db.internal"), "internal"),
    (StoreError("db.internal:5432 is down"), "unavailable"),
    (ModelUnreachable("vllm (db.internal:8000) cannot be reached"), "model_failed"),
    (ModelTimeout("vllm (db.internal:8000) sent nothing"), "model_failed"),
    (ModelRefused("vllm (db.internal) refused the key", status=401), "internal"),
    (RecursionError("in db.internal"), "internal"),
    (KeyError("db.internal"), "internal"),
    (KeyboardInterrupt("db.internal"), "internal"),
]


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(("error", "code"), TOLD)
def test_what_speaks_of_the_request_is_told_as_it_is(
    error: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    record(error, "Turn t")
    assert (fault_of(error).code, fault_of(error).message) == (code, str(error))
    assert code in CODES
    assert not caplog.records


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(("error", "code"), HIDDEN)
def test_what_speaks_of_the_server_stands_in_the_log_alone(
    error: BaseException, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    record(error, "Turn t")
    assert fault_of(error).code == code
    assert "db.internal" not in fault_of(error).message
    assert "db.internal" in caplog.text


def test_the_time_to_wait_is_told_with_it() -> None:
    assert fault_of(Refused("too_many", "Wait.", retry_after=2.5)).retry_after == 2.5
    assert fault_of(ModelOverloaded("Wait.", retry_after=7.0)).retry_after == 7.0


def test_a_key_is_masked_wherever_it_stands(caplog: pytest.LogCaptureFixture) -> None:
    secret = "sk-abcdefghijklmnop"
    assert secret not in fault_of(ConfigError(f"What is {secret}?")).message
    errors: list[BaseException] = [RuntimeError(f"no {secret}")]
    try:
        try:
            raise ValueError(f"cannot connect with {secret}")
        except ValueError as cause:
            raise RuntimeError("no connection") from cause
    except RuntimeError as error:
        errors.append(error)
    errors.append(ExceptionGroup("several", [OSError(f"refused {secret}")]))
    with caplog.at_level(logging.ERROR):
        for error in errors:
            record(error, "Turn t")
    assert len(caplog.records) == 3
    assert secret not in caplog.text


def test_a_failure_without_a_key_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        raise RuntimeError("no connection")
    except RuntimeError as error:
        record(error, "Turn t")
    assert "Turn t failed: RuntimeError: no connection" in caplog.text
    assert "Traceback" in caplog.text
