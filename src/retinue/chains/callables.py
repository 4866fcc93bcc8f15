"""Whether a function that was given can be called as it will be: asked before any turn runs."""

import inspect
from typing import Any


def takes(function: Any, count: int) -> bool:
    """Whether it can be called with so many arguments, by their places.

    One that does not say what it takes, as some that are built in, is taken at its word.
    """
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:  # it is no function at all, too
        return False
    except ValueError:
        return callable(function)
    return True
