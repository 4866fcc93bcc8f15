"""`@tool`: a typed function becomes something a model can call (R-TOOL-1).

Decorating keeps the function and the options, no more. Signature, docstring and schema are read
when first needed, and kept.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, cast, overload

from retinue.errors import ConfigError
from retinue.tools.contract import contract
from retinue.tools.options import Retry, ToolSpec, as_tags, check_options
from retinue.tools.schema import Contract
from retinue.tools.signature import Signature, read_signature

if TYPE_CHECKING:  # the defaults let `Tool` alone mean a tool of any function
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


_OPTIONS: Final = (
    "function", "name", "parameters", "timeout", "retry", "serial", "return_direct", "sensitive",
    "tags", "isolation", "asks",
)  # fmt: skip


class Tool(Generic[P, R]):
    """A function and how it is run. Agents share it and keep what they read, so it is never
    changed; `with_` makes a changed copy.

    Calling a tool calls its function. In a class body it is a method like any other: the tool
    that an instance gives has `self` filled in.

    Args:
        function: what runs; sync or async, a generator too. It may be a method, a partial or any
            callable object.
        name: what the model calls it; the function's name by default.
        description: what it does; by default what the docstring says.
        parameters: JSON Schema of the arguments, where it comes as data; the function then takes
            them as `**kwargs`, unconverted.
        timeout: seconds the body may take; by default the engine's. An async function is
            cancelled. A sync one runs on in its thread, unheard, and can look at `ctx.cancel`;
            with `isolation="process"` it is ended.
        retry: promises that running it twice does no harm: True, the number of tries, or a
            `Retry`. Only transient failures are retried.
        serial: a batch that holds this tool runs in call order, one call after another.
        return_direct: its result is the answer, if every call of the batch says so.
        sensitive: a person is asked first, where the agent has a gate.
        tags: words that engines and layers know it by.
        isolation: "process" runs it in another process; the function must be importable. An engine
            keeps two processes for such tools, which import the main module when the first of them
            is called; the `ProcessPool` engine has as many as you say.
        asks: the function never runs: the turn pauses, and an answer is the result. "external"
            where the caller's front end runs the tool, "question" where a person is asked.

    Wrong options are refused by `check`, which an agent calls when it is built.
    """

    __slots__ = (
        "_contract", "_description", "_signature", "_spec", "asks", "function", "isolation",
        "name", "parameters", "retry", "return_direct", "sensitive", "serial", "tags", "timeout",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retry: bool | int | Retry = False,
        serial: bool = False,
        return_direct: bool = False,
        sensitive: bool = False,
        tags: str | Sequence[str] = (),
        isolation: Literal["process"] | None = None,
        asks: Literal["external", "question"] | None = None,
    ) -> None:
        self.function = function
        self.name = _name_of(function) if name is None else name
        self.parameters = parameters
        self.timeout = timeout
        self.retry = retry
        self.serial = serial
        self.return_direct = return_direct
        self.sensitive = sensitive
        self.tags = as_tags(tags)
        self.isolation = isolation
        self.asks: Literal["external", "question"] | None = asks
        self._description = description
        self._signature: Signature | None = None
        self._contract: Contract | None = None
        self._spec: ToolSpec | None = None

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object | None, owner: type | None = None) -> "Tool[..., R]":
        bind = getattr(self.function, "__get__", None)
        of_class = isinstance(self.function, (staticmethod, classmethod))
        if bind is None or (instance is None and not of_class):
            return self
        return self.with_(function=bind(instance, owner))

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function, where `inspect` and documentation tools look for it."""
        return self.function

    @property
    def spec(self) -> ToolSpec:
        """What a model is told. ConfigError: the function cannot be a tool."""
        if self._spec is None:
            self._spec = ToolSpec(self.name, self.description, self.contract.parameters)
        return self._spec

    @property
    def description(self) -> str:
        """What the tool does: as given, or the docstring without its sections."""
        return self.signature.description if self._description is None else self._description

    @property
    def retries(self) -> Retry | None:
        """How transient failures are retried, or None."""
        if isinstance(self.retry, Retry):
            return self.retry
        if self.retry is True:
            return Retry()
        return Retry(self.retry) if self.retry else None

    @property
    def signature(self) -> Signature:
        """What the function says of itself. ConfigError: it cannot be a tool."""
        if self._signature is None:
            self._signature = read_signature(self.function, self.name)
        return self._signature

    @property
    def contract(self) -> Contract:
        """What checks the model's arguments. ConfigError: the function cannot be a tool."""
        if self._contract is None:
            self._contract = contract(self.name, self.signature, self.parameters)
        return self._contract

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """JSON values as keyword arguments of the function, without its context.

        Raises:
            ArgumentsError: they do not fit; the message is for the model.
        """
        return (self._contract or self.contract).bind(arguments)

    def check(self) -> None:
        """Refuses what cannot work.

        Raises:
            ConfigError: names the tool, and the option or parameter.
        """
        check_options(self.name, self._options())
        self.contract.prepare()

    def with_(self, **changes: Any) -> "Tool[..., Any]":
        """A changed copy.

        Args:
            changes: arguments of `Tool` by name.

        Raises:
            ConfigError: there is no such option.
        """
        options = self._options()
        for name in changes:
            if name not in options:
                raise ConfigError(f"The tool {self.name!r} has no option {name!r}.")
        changed: Tool[..., Any] = Tool(**{**options, **changes})
        if changed.function is self.function:
            changed._signature = self._signature
            if changed.parameters is self.parameters and changed.name == self.name:
                changed._contract = self._contract
        return changed

    def _options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in _OPTIONS}
        options["description"] = self._description
        return options


def _name_of(function: Any) -> str:
    if isinstance(function, partial):
        function = cast("partial[Any]", function).func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    retry: bool | int | Retry = False,
    serial: bool = False,
    return_direct: bool = False,
    sensitive: bool = False,
    tags: str | Sequence[str] = (),
    isolation: Literal["process"] | None = None,
    asks: Literal["external", "question"] | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function: `@tool`, or `@tool(timeout=5)`. Options: see `Tool`."""
    if function is None:

        def decorate(function: Callable[..., Any]) -> Tool[..., Any]:
            return tool(function, **options)

        return decorate
    if isinstance(function, Tool):
        return cast("Tool[..., Any]", function).with_(**options)
    return Tool(function, **options)
