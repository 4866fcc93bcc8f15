"""What is wrong with a value, in words that a model can act on: path, expected, got.

Three judges say it in their own ways: msgspec, pydantic and jsonschema_rs. Here their words become
one kind of `Problem`. msgspec stops at the first; the others are found by asking it of each part.
"""

import dataclasses
import enum
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from retinue.errors import Problem

_SHOWN: Final = 80  # characters of a value that a problem quotes
_LISTS: Final = (list, set, frozenset, Sequence)
_PLACED: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<at>.*)`)?", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected (?P<kind>.+?)(?:, got `.*`)?", re.DOTALL)

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_NO_FIELD: Final = "is no field of the form"

Step = str | int


def shown(value: Any) -> str:
    """A value as a problem quotes it: JSON, cut where it is long."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def path_of(steps: Iterable[Step]) -> str:
    """The way to a part of a value, such as `items[0].name`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".")


# -- types that msgspec reads ---------------------------------------------------------------------


def plain_problems(value: Any, form: Any, steps: tuple[Step, ...] = ()) -> list[Problem]:
    """What does not fit a type that msgspec reads; empty if all does.

    Args:
        value: plain JSON values.
        form: the type.
        steps: the way to them.
    """
    try:
        msgspec.convert(value, form, str_keys=True)
    except msgspec.ValidationError as error:
        found = list(_missing(value, form, steps))
        for step, inner, kind in _parts(value, form):
            found += plain_problems(inner, kind, steps if step is None else (*steps, step))
        return found or [_plain(error, value, form, steps)]
    return []


def _plain(error: Exception, value: Any, form: Any, steps: tuple[Step, ...]) -> Problem:
    said = _PLACED.fullmatch(str(error))
    what, at = (said["what"], said["at"]) if said is not None else (str(error), None)
    unknown = _UNKNOWN.fullmatch(what)
    if unknown is not None and not at:
        name = unknown["name"]
        return Problem(path_of((*steps, name)), _NO_FIELD, shown(value[name]))
    place = path_of((*steps, at)) if at else path_of(steps)
    kind = _EXPECTED.fullmatch(what)
    allowed = _allowed(form)
    if allowed and not at:
        what = f"should be one of {allowed}"
    elif kind is not None:
        what = f"should be {kind['kind'].replace('`', '')}"
    return Problem(place, what, "" if at else shown(value))


def _allowed(form: Any) -> str:
    if isinstance(form, enum.EnumMeta):
        return ", ".join(shown(one.value) for one in cast("type[enum.Enum]", form))
    if typing.get_origin(form) is typing.Literal:
        return ", ".join(map(shown, typing.get_args(form)))
    return ""


def _missing(value: Any, form: Any, steps: tuple[Step, ...]) -> Iterator[Problem]:
    if not isinstance(value, dict):
        return
    for name, _, required in _fields(form):
        if required and name not in value:
            yield Problem(path_of((*steps, name)), "is required", "nothing")


def _parts(value: Any, form: Any) -> Iterator[tuple[Step | None, Any, Any]]:
    """The parts of a value, each with its step and its type; None is the step to the value itself
    under another type."""
    origin, inside = typing.get_origin(form), typing.get_args(form)
    if origin in (typing.Union, types.UnionType):
        some = [one for one in inside if one is not type(None)]
        if len(some) == 1:
            yield None, value, some[0]
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        alike = origin in _LISTS or (origin is tuple and inside[1:] == (...,))
        for at, one in enumerate(items if alike else ()):
            yield at, one, inside[0]
    elif isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if origin in (dict, Mapping):
            for name, one in members.items():
                yield name, one, inside[1]
        for name, kind, _ in _fields(form):
            if name in members:
                yield name, members[name], kind


def _fields(kind: Any) -> Sequence[tuple[str, Any, bool]]:
    """The fields of a class: name, type, and whether each is required."""
    if not isinstance(kind, type):
        return ()
    form = cast("type[Any]", kind)
    if issubclass(form, msgspec.Struct):
        return [(one.encode_name, one.type, one.required) for one in msgspec.structs.fields(form)]
    typed: Any = getattr(form, "__required_keys__", None)  # of a TypedDict
    if typed is None and not dataclasses.is_dataclass(form):
        return ()
    hints = typing.get_type_hints(form, include_extras=True)
    if typed is not None:
        return [(name, _unwrapped(kind), name in typed) for name, kind in hints.items()]
    return [
        (
            one.name,
            hints[one.name],
            one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
        )
        for one in dataclasses.fields(form)
        if one.init
    ]


def _unwrapped(kind: Any) -> Any:
    """The type in `Required[...]` and `NotRequired[...]`."""
    wrapped = typing.get_origin(kind) in (typing.Required, typing.NotRequired)
    return typing.get_args(kind)[0] if wrapped else kind


# -- types that pydantic reads --------------------------------------------------------------------


def pydantic_problems(details: Iterable[Mapping[str, Any]], value: Any) -> list[Problem]:
    """The problems in `ValidationError.errors()`.

    Args:
        details: what pydantic lists.
        value: the plain JSON values that were judged.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for one in details:
        path, kind = path_of(_real(one["loc"], value)), one["type"]
        if kind == "missing":
            path, got = path_of((*_real(one["loc"], value), one["loc"][-1])), "nothing"
        else:
            got = shown(one["input"])
        found.setdefault((path, got), []).append(_said(kind, one["msg"]))
    # A union says for each member why it is not that; one place is one problem.
    return [
        Problem(path, " or ".join(dict.fromkeys(all_)), got) for (path, got), all_ in found.items()
    ]


def _said(kind: str, message: str) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _NO_FIELD
    for prefix in ("Value error, ", "Assertion failed, "):
        message = message.removeprefix(prefix)
    return message.replace("Input should", "should", 1)


def _real(loc: Sequence[Step], value: Any) -> tuple[Step, ...]:
    """The steps that are in the value; pydantic puts members of unions and the like among them."""
    steps: list[Step] = []
    for step in loc:
        if isinstance(value, dict) and step in value:
            value = cast("dict[Any, Any]", value)[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = cast("list[Any]", value)[step]
        else:
            continue
        steps.append(step)
    return tuple(steps)


# -- schemas given as data ------------------------------------------------------------------------


def schema_problems(errors: Iterable[Any]) -> list[Problem]:
    """The problems that a validator of jsonschema_rs finds.

    Args:
        errors: what `iter_errors` gives.
    """
    return [problem for error in errors for problem in _of_schema(error)]


def _of_schema(error: Any) -> Iterator[Problem]:
    steps: tuple[Step, ...] = tuple(error.instance_path)
    told: Mapping[str, Any] = error.kind.as_dict()
    rule = error.kind.name
    if rule == "required":
        yield Problem(path_of((*steps, told["property"])), "is required", "nothing")
    elif rule == "additionalProperties":
        for name in told["unexpected"]:
            got = shown(error.instance[name])
            yield Problem(path_of((*steps, name)), _NO_FIELD, got)
    else:
        yield Problem(path_of(steps), _rule(rule, told, error.message), shown(error.instance))


def _rule(rule: str, told: Mapping[str, Any], message: str) -> str:
    if rule == "type":
        return f"should be of type {' or '.join(told['types'])}"
    if rule == "enum":
        return f"should be one of {', '.join(map(shown, told['options']))}"
    if rule == "const":
        return f"should be {shown(told['expected_value'])}"
    if rule == "pattern":
        return f"should match the pattern {told['pattern']}"
    if rule == "format":
        return f"should be of the format {told['format']}"
    if rule in ("oneOf", "anyOf"):
        reasons = dict.fromkeys(
            str(problem) if problem.path else problem.expected
            for branch in told.get("context", ())
            for error in branch
            for problem in _of_schema(error)
        )
        return f"{message} ({'; or '.join(reasons)})" if reasons else message
    return message
