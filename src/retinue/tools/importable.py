"""What a tool needs to run in another process, and how its function is found there."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from retinue.errors import MissingExtraError


def why_not_importable(function: Callable[..., Any]) -> str | None:
    """The reason why a fresh process cannot import a function, or None if it can."""
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return "it is not a plain function"
    if "<lambda>" in path:
        return "it is a lambda"
    if "<locals>" in path:
        return "it is defined inside another function"
    if module not in sys.modules:
        return f"its module {module!r} is not imported"
    try:
        found = resolve(module, path)
    except (ImportError, AttributeError):
        found = None
    if found != function:
        return f"{module}.{path} is not this function"
    return None


def require_pebble(who: str) -> None:
    """Raises MissingExtraError if the library that runs processes is not installed."""
    if importlib.util.find_spec("pebble") is None:
        raise MissingExtraError(
            f"{who} runs functions in processes, which needs pebble: pip install"
            " 'retinue[process]'."
        )


def resolve(module: str, path: str) -> Callable[..., Any]:
    """The function of that name. Where the name holds a tool, the function inside it."""
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return getattr(found, "function", found)
