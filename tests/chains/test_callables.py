"""Whether a function can be called as it will be."""

from functools import partial
from typing import Any

import pytest

from retinue.chains.callables import takes


def two(one: Any, other: Any, third: Any = None) -> None:
    """Takes two or three."""


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        (two, [2, 3]),
        (partial(two, 1), [1, 2]),
        (lambda *, key: key, []),
        (max, [0, 1, 2, 3]),  # built in, and it does not say
        ("text", []),
        (None, []),
    ],
)
def test_a_function_takes_what_it_says_and_one_that_says_nothing_is_believed(
    function: Any, counts: list[int]
) -> None:
    assert [count for count in range(4) if takes(function, count)] == counts
