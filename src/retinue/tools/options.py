"""The options of a tool: the values they take, and the check of them before any turn runs."""

import math
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

from msgspec import Struct

from retinue.errors import ConfigError
from retinue.tools.importable import require_pebble, why_not_importable
from retinue.tools.shapes import is_iterable


class Retry(Struct, frozen=True):
    """How a transient failure of an idempotent tool is tried again (R-TOOL-10).

    The wait before try n+1 is random between 0 and `base * 2**(n-1)` seconds, or what the failure
    asked for; neither is longer than `cap`.

    Attributes:
        attempts: tries in all, the first included.
        base: seconds.
        cap: seconds. A failure that asks for a longer wait gets no retry.

    Raises:
        ConfigError: there is no attempt, or a wait is no number of seconds from 0 up.
    """

    attempts: int = 3
    base: float = 0.2
    cap: float = 30.0

    def __post_init__(self) -> None:
        waits = all(_is_number(w) and math.isfinite(w) and w >= 0 for w in (self.base, self.cap))
        if not waits or not _is_count(self.attempts):
            raise ConfigError(
                f"{self!r} cannot be used; give 1 attempt or more, and finite waits of 0 seconds or"
                " more."
            )

    def wait(self, attempt: int, retry_after: float | None = None) -> float | None:
        """Seconds to wait after try number `attempt` failed, or None to give up."""
        if attempt >= self.attempts:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.cap else None
        return random.uniform(0, min(self.cap, self.base * 2 ** (attempt - 1)))


class ToolSpec(Struct, frozen=True):
    """What a model is told of a tool. `parameters` is JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def as_tags(tags: Any) -> tuple[str, ...]:
    """One word or several, as a tuple. What is neither stays in it, for the check to find."""
    return tuple(tags) if is_iterable(tags) and not isinstance(tags, str) else (tags,)


def check_options(tool: Any, options: Mapping[str, Any]) -> None:
    """Refuses the first option that cannot work.

    Args:
        tool: the tool's name, as far as it has one.
        options: the arguments of `Tool` by name.

    Raises:
        ConfigError: names the tool, the option, and what it takes.
    """
    for option, judge in _JUDGES.items():
        complaint = judge(options[option])
        if complaint is not None:
            raise ConfigError(f"The tool {tool!r} cannot be used: {option} {complaint}.")
    if options["isolation"] is not None:
        require_pebble(f"The tool {tool!r}")
        reason = why_not_importable(options["function"])
        if reason is not None:
            raise ConfigError(
                f"The tool {tool!r} cannot be used: isolation 'process' needs a function that"
                f" another process can import, and {reason}."
            )


def is_positive(value: Any) -> TypeGuard[float]:
    """Whether a value is a number above 0 that is not infinite."""
    return _is_number(value) and math.isfinite(value) and value > 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _function(function: Any) -> str | None:
    return None if callable(function) else f"{function!r} is not callable"


def _name(name: Any) -> str | None:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return f"{name!r} is not 1 to 64 letters, digits, '_' or '-', which is what providers take"


def _description(text: Any) -> str | None:
    return None if text is None or isinstance(text, str) else f"{text!r} is not text"


def _parameters(given: Any) -> str | None:
    if given is None or isinstance(given, Mapping):
        return None
    return f"{given!r} is no JSON Schema; give a mapping"


def _timeout(seconds: Any) -> str | None:
    if seconds is None or is_positive(seconds):
        return None
    return f"{seconds!r} is not a number of seconds above 0"


def _retry(retry: Any) -> str | None:
    if isinstance(retry, (bool, Retry)) or _is_count(retry):
        return None
    return f"{retry!r} is not True, False, a number of tries from 1 up, or a Retry"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"{value!r} is not True or False"


def _tags(tags: Any) -> str | None:
    wrong = [tag for tag in tags if not isinstance(tag, str) or not tag]
    return f"{wrong[0]!r} is not a word" if wrong else None


def _isolation(isolation: Any) -> str | None:
    return None if isolation in (None, "process") else f"{isolation!r} is not 'process' or None"


def _asks(asks: Any) -> str | None:
    known = (None, "external", "question")
    return None if asks in known else f"{asks!r} is not 'external', 'question' or None"


_JUDGES: Final[dict[str, Callable[[Any], str | None]]] = {
    "function": _function,
    "name": _name,
    "description": _description,
    "parameters": _parameters,
    "timeout": _timeout,
    "retry": _retry,
    "serial": _flag,
    "return_direct": _flag,
    "sensitive": _flag,
    "tags": _tags,
    "isolation": _isolation,
    "asks": _asks,
}
