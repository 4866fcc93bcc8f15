"""The other side of a process pool: a job in, an outcome out, both as bytes."""

import asyncio
import contextvars
import pickle
from typing import Any, cast

from msgspec import Struct

from retinue.errors import Failure, ToolError, classify
from retinue.tools.base import ToolContext, ToolReturn
from retinue.tools.engines.base import is_pending, settled, spent
from retinue.tools.importable import resolve
from retinue.tools.results import as_content, said


class Variable(Struct, frozen=True):
    """A context variable: the module and the name that hold it, and its pickled value."""

    module: str
    name: str
    value: bytes


class Job(Struct, frozen=True):
    """A call of a function by name. `arguments` and `context` are pickled on their own."""

    module: str
    path: str
    arguments: bytes
    names: tuple[str, ...]
    context: bytes
    variables: tuple[Variable, ...]


class Raised(Struct, frozen=True):
    """An exception on its way back. `pickled` is None where it cannot travel as itself."""

    pickled: bytes | None
    kind: str
    text: str
    failure: Failure
    retry_after: float | None


def work(packed: bytes) -> bytes:
    """Runs a job; called in the worker process."""
    job: Job = pickle.loads(packed)
    try:
        for one in job.variables:
            _set(one)
        function = resolve(job.module, job.path)
        arguments: dict[str, Any] = pickle.loads(job.arguments)
        if job.names:
            ctx: ToolContext = pickle.loads(job.context)
            arguments.update(dict.fromkeys(job.names, ctx))
        value = function(**arguments)
        value = asyncio.run(settled(value)) if is_pending(value) else spent(value)
    except BaseException as error:  # it is raised again on the side that asked
        return pickle.dumps(_raised(error))
    return _returned(value)


def _set(variable: Variable) -> None:
    """Sets a context variable. One that is not found here was not meant for tools."""
    try:
        holder = resolve(variable.module, variable.name)
        cast(contextvars.ContextVar[Any], holder).set(pickle.loads(variable.value))
    except Exception:  # unpickling and importing run foreign code
        return


def _returned(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # what cannot travel as itself travels as what the model will read
        if type(value) is ToolReturn:
            return pickle.dumps(ToolReturn(list(as_content(value.value)), dict(value.writes)))
        return pickle.dumps(list(as_content(value)))


def _raised(error: BaseException) -> Raised:
    failure = classify(error)
    try:
        pickled = pickle.dumps(error)
        if classify(pickle.loads(pickled)) != failure:
            pickled = None  # what caused it does not travel with it
    except Exception:  # an exception with arguments of its own may pickle and not come back
        pickled = None
    retry_after = getattr(error, "retry_after", None)
    return Raised(
        pickled,
        type(error).__name__,
        said(error),
        failure,
        retry_after if isinstance(retry_after, (int, float)) else None,
    )


def received(answer: bytes) -> Any:
    """The value behind an outcome; called in the process that asked. Raises what was raised."""
    value = pickle.loads(answer)
    if type(value) is not Raised:
        return value
    if value.pickled is not None:
        raise pickle.loads(value.pickled)
    stand_in = cast(type[ToolError], type(value.kind, (ToolError,), {}))
    raise stand_in(value.text, failure=value.failure, retry_after=value.retry_after)
