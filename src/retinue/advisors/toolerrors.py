"""`ToolErrors`: what a model is told of a tool's failure, by tool and by error.

It has one hook, `tool`, and changes words alone: the class of the failure, its retries and its
exception stay, so the loop goes on as it would. What the words end up in, a request, an event or a
log, is free of what looks like a secret, and of tracebacks.
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import structs

from retinue.chains import Advisor, CallNext, ToolRequest
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.messages import Text
from retinue.messages.masking import excerpt, mask
from retinue.tools import Tool, ToolResponse
from retinue.tools.schema import ArgumentsError

Told = Callable[[ToolRequest, ToolResponse], str | Awaitable[str | None] | None]
"""Words for one failure, or None to leave it to the next rule; it may be `async`."""

Wording = str | Told | Mapping[Any, Any]
"""Words; a function that gives them; or, for a tool, rules of its own by error."""

_FAILURES: Final = ("semantic", "transient", "environment")
_TAG: Final = "tag:"
_TRACE: Final = re.compile(
    r"(?:\+ Exception Group )?Traceback \(most recent call last\):\n(?:[ \t|+].*(?:\n|\Z))*"
)
_logger: Final = logging.getLogger("retinue")


class ToolErrors(Advisor):
    """Words what a model is told of failures; without rules, what it would be told anyway, cleaned.

    Rules go by what failed, the first that fits of: the tool, its tags, the class of the exception
    (the nearest base counts; in a group, any member), the class of the failure. The key is

        a Tool, or its name              "search"
        a tag                            "tag:web"
        a class of exceptions            TimeoutError
        a class of failures              "semantic", "transient" or "environment"

    and the value is the words, a function of the request and the response that gives them (or None,
    for the next rule), or, for a tool or a tag, a mapping with the last two kinds of keys.

    A call whose arguments do not fit, or that names no tool, never ran, and the model is told what
    is wrong and what would be right, whole. Only a rule for the class `ArgumentsError` changes
    that. What a layer or a gate refused keeps its words.

    Args:
        rules: what to say.
        default: where no rule fits: words, or a function; by default "name of the exception: its
            message".
        longest: characters that the model is told at most, 1,000 by default.
        masks: takes secrets out of a text; by default what looks like a key or a password becomes
            `***`.

    Raises:
        ConfigError: a key or a value is of none of these kinds.
    """

    traits = frozenset({"words-errors"})

    def __init__(
        self,
        rules: Mapping[Any, Wording] | None = None,
        *,
        default: str | Told | None = None,
        longest: int = 1_000,
        masks: Callable[[str], str] = mask,
    ) -> None:
        if type(longest) is not int or longest < 1:
            raise ConfigError(f"ToolErrors(longest={longest!r}): give 1 character or more.")
        if not takes(masks, 1):
            raise ConfigError(f"ToolErrors(masks={masks!r}): give a function of a text.")
        self._rules = _checked(rules or {}, nested=False)
        self._default = None if default is None else _words("default", default, nested=True)
        self._longest = longest
        self._masks = masks

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """Words the failure, if it is one."""
        response = await call_next(request)
        if response.ok or response.refused:
            return response
        told = await self._told(request, response)
        if told is None and _never_ran(request, response):
            return response  # to cut the list of tools, or mask "password: a text", is no help
        result = response.result
        parts = result.parts if told is None else (Text(told),)
        cleaned = [Text(self._clean(part.text)) if type(part) is Text else part for part in parts]
        if not any(part for part in cleaned if part != Text("")):
            cleaned = [Text(type(response.error).__name__)]  # it was a traceback and no more
        return response.with_(result=structs.replace(result, parts=tuple(cleaned)))

    async def _told(self, request: ToolRequest, response: ToolResponse) -> str | None:
        for wording in self._fitting(request, response):
            try:
                told: Any = wording if isinstance(wording, str) else wording(request, response)
                if inspect.isawaitable(told):
                    told = await told
                if told is not None and (not isinstance(told, str) or not told.strip()):
                    raise ConfigError(f"It gave {told!r}; it must give words, or None.")
            except Exception:  # the failure must reach the model all the same
                _logger.exception("A wording of %s for %r failed.", self.name, request.call.name)
                continue
            if told is not None:
                return told
        return None

    def _fitting(self, request: ToolRequest, response: ToolResponse) -> Iterator[str | Told]:
        """The wordings that fit, the nearest first."""
        error = response.error
        if error is None or isinstance(error, ArgumentsError):
            if error is not None and ArgumentsError in self._rules:
                yield self._rules[ArgumentsError]
            return
        for key in _keys(request):
            found: Any = self._rules.get(key)
            if isinstance(found, dict):
                yield from _by_error(cast("dict[Any, Any]", found), response)
            elif found is not None:
                yield found
        yield from _by_error(self._rules, response)
        if self._default is not None:
            yield self._default

    def _clean(self, text: str) -> str:
        """What may be told: no traceback, no secret, not too long."""
        text = _TRACE.sub("", text).strip()
        return excerpt(text, self._longest, self._masks, more="… [cut]").strip()


def _never_ran(request: ToolRequest, response: ToolResponse) -> bool:
    """Whether there is no such tool, or its arguments do not fit."""
    unknown = request.tool is None and response.error is None
    return unknown or isinstance(response.error, ArgumentsError)


def _keys(request: ToolRequest) -> Iterator[Any]:
    if request.tool is not None:
        yield ("tool", request.tool.name)
        yield from (_TAG + tag for tag in request.tool.tags)


def _by_error(rules: Mapping[Any, Any], response: ToolResponse) -> Iterator[str | Told]:
    yield from _by_class(rules, response.error)
    if response.failure in rules:
        yield rules[response.failure]


def _by_class(rules: Mapping[Any, Any], error: BaseException | None) -> Iterator[str | Told]:
    yield from (rules[kind] for kind in type(error).__mro__ if kind in rules)
    if isinstance(error, BaseExceptionGroup):
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _by_class(rules, member)


def _checked(rules: object, *, nested: bool) -> dict[Any, Any]:
    """The rules with the keys of tools told apart from those of failures."""
    if not isinstance(rules, Mapping):
        raise ConfigError(f"ToolErrors({rules!r}) cannot be used; give a mapping of rules.")
    checked: dict[Any, Any] = {}
    for key, value in cast("Mapping[Any, Any]", rules).items():
        kind = _kind(key)
        if kind is None or (nested and kind in ("tool", "tag")):
            known = "a class of exceptions, " + ", ".join(map(repr, _FAILURES))
            more = "" if nested else f", a tool, the name of one, or '{_TAG}...'"
            raise ConfigError(f"ToolErrors: {key!r} is no key for words; give {known}{more}.")
        words = _words(key, value, nested=nested or kind not in ("tool", "tag"))
        if kind == "tool":
            key = ("tool", key.name if isinstance(key, Tool) else key)
        checked[key] = words
    return checked


def _kind(key: Any) -> str | None:
    if isinstance(key, Tool):
        return "tool"
    if isinstance(key, type):
        return "error" if issubclass(key, BaseException) else None
    if not isinstance(key, str) or not key:
        return None
    if key in _FAILURES:
        return "failure"
    return "tag" if key.startswith(_TAG) else "tool"


def _words(key: Any, value: Any, *, nested: bool) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if _is_rules(value) and not nested:
        return _checked(value, nested=True)
    if not callable(value) or isinstance(value, type):
        more = "" if nested else ", or a mapping by error"
        raise ConfigError(
            f"ToolErrors: {key!r} has {value!r} for words; give a text, or a function of the"
            f" request and the response{more}."
        )
    if not takes(value, 2):
        raise ConfigError(
            f"ToolErrors: the function for {key!r} must take the request and the response."
        )
    return value


def _is_rules(value: Any) -> bool:
    return isinstance(value, Mapping)
