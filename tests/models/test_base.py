"""What a retry of model calls can be asked for; the retries are in `tests/agent/test_retry.py`."""

import math
from typing import Any

import pytest

from retinue.errors import ConfigError
from retinue.models import ModelRetry


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"base": -1.0}, {"cap": -0.5}, {"base": math.nan}], ids=str
)
def test_a_retry_that_cannot_be_is_refused_by_name(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ConfigError, match=f"{name}={value}.*1 attempt or more"):
        ModelRetry(**wrong)


def test_one_attempt_without_a_wait_is_no_retry_and_no_error() -> None:
    assert ModelRetry(attempts=1, base=0, cap=0).wait(1, None) is None
