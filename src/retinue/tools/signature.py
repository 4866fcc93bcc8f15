"""What a function says of itself: its parameters, its docstring, whether it is async.

Works for functions, methods, partials, callable objects and classes. It knows nothing of JSON:
`schema` makes a contract with the model from what is read here.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from retinue.errors import ConfigError
from retinue.tools.base import ToolContext
from retinue.tools.docs import read_docstring

REQUIRED: Final[Any] = inspect.Parameter.empty
"""The default of a parameter that has none."""


class Parameter(Struct, frozen=True):
    """One parameter that the model fills.

    Attributes:
        annotation: the resolved type; `Any` where there is none.
        default: `REQUIRED`, or the value the function takes without it.
        description: what the docstring says of it, or "".
    """

    name: str
    annotation: Any
    default: Any
    description: str


class Signature(Struct, frozen=True):
    """What was read.

    Attributes:
        parameters: those that the model fills, in the order of the function.
        context: the names of those that take the `ToolContext`.
        open: whether the function takes `**kwargs`.
        description: the docstring without its sections.
        is_async: whether calling it gives a coroutine or an async generator.
    """

    parameters: tuple[Parameter, ...]
    context: tuple[str, ...]
    open: bool
    description: str
    is_async: bool


def read_signature(function: Callable[..., Any], tool: str) -> Signature:
    """Reads a function.

    Args:
        function: any callable.
        tool: the name that errors call it by.

    Raises:
        ConfigError: the function cannot be a tool; the message names the parameter.
    """
    outer, inner, bound = _unwrapped(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"The tool {tool!r} has a signature that cannot be read; wrap it in a function."
        ) from error
    hints = _hints(inner, tool)
    own = None if isinstance(outer, type) else inner.__doc__
    description, notes = read_docstring(own or outer.__doc__)
    parameters: list[Parameter] = []
    context: list[str] = []
    is_open = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
            continue
        _check_kind(parameter, tool)
        annotation = hints.get(name, Any)
        if _is_context(annotation):
            context.append(name)
        elif name not in bound:
            parameters.append(Parameter(name, annotation, parameter.default, notes.get(name, "")))
    is_async = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
    return Signature(tuple(parameters), tuple(context), is_open, description, is_async)


def _unwrapped(function: Any) -> tuple[Any, Any, Mapping[str, Any]]:
    """The callable under a partial, the function that carries its annotations, and what the
    partial has filled in by name."""
    bound: Mapping[str, Any] = {}
    if isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        # What a partial fills in is often a secret; the model may neither see nor replace it.
        bound = partial.keywords
        function = partial.func
    if isinstance(function, types.FunctionType):
        return function, function, bound
    if isinstance(function, types.MethodType):
        return function, function.__func__, bound
    if isinstance(function, type):
        return function, cast(Any, function).__init__, bound
    call = type(function).__call__
    return function, call if isinstance(call, types.FunctionType) else function, bound


def _check_kind(parameter: inspect.Parameter, tool: str) -> None:
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise ConfigError(
            f"The tool {tool!r} takes *{parameter.name}, and a model names every argument; take a"
            " list instead."
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(
            f"The tool {tool!r} takes {parameter.name!r} by position only, and a model names every"
            " argument; remove the '/' from its signature."
        )


def _is_context(annotation: Any) -> bool:
    return annotation is ToolContext or (
        type(annotation) is not type and ToolContext in typing.get_args(annotation)
    )


def _hints(inner: Any, tool: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except Exception:  # a name that is only known to type checkers, or local to a function
        return _hints_one_by_one(inner, tool)


def _hints_one_by_one(inner: Any, tool: str) -> dict[str, Any]:
    code = inspect.unwrap(inner)
    names = getattr(code, "__globals__", {})
    local: dict[str, Any] = {"ToolContext": ToolContext, **_closure(code)}
    hints: dict[str, Any] = {}
    annotations: Mapping[str, Any] = getattr(inner, "__annotations__", {})
    for name, annotation in annotations.items():
        if name == "return":
            continue
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints.update(typing.get_type_hints(holder, names, local, include_extras=True))
        except Exception as error:
            raise ConfigError(
                f"The tool {tool!r} annotates {name!r} as {annotation!r}, which cannot be"
                f" resolved: {error}. Define or import that name at the top of the module."
            ) from error
    return hints


def _closure(code: Any) -> dict[str, Any]:
    cells = getattr(code, "__closure__", None) or ()
    names = code.__code__.co_freevars if cells else ()
    found: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a variable that is not assigned yet
            continue
    return found
