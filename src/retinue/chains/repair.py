"""Answers that do not fit are sent back with what is wrong with them, as a layer of the turn.

The agent has one such layer innermost where a form is asked for, and the advisor `Validate` is
another. What is judged is the final answer of a turn that completed, never a round of tool calls:
the tools have run by then, and are not run again.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from retinue.chains.misfits import pydantic_problems
from retinue.chains.onion import CallNext
from retinue.chains.output import Output
from retinue.chains.requests import TurnRequest
from retinue.chains.responses import TurnResponse
from retinue.errors import ConfigError, OutputError, Problem

Check = Callable[[Any], str | Awaitable[str | None] | None]
"""Judges a value: gives None, or says what is wrong, or raises ValueError; it may be `async`."""

_TOLD: Final = 20  # problems that a model is told at once


class Repair:
    """Asks again until the answer fits.

    Args:
        check: judges the value of the answer, or its text where no form is asked for.
        retries: how often it asks again in one pass through this layer.
        exhausted: whether an answer that still does not fit is returned, with `reason` saying so,
            or raised as OutputError.
        problems: whether the model is told all that is wrong at once, or the first thing.
        name: what it is called in pictures.
    """

    order = None
    traits = frozenset({"validates"})

    def __init__(
        self,
        check: Check | None = None,
        *,
        retries: int = 2,
        exhausted: Literal["return", "raise"] = "return",
        problems: Literal["all", "first"] = "all",
        name: str = "output",
    ) -> None:
        self.name = name
        self._check = check
        self._retries = retries
        self._exhausted = exhausted
        self._problems = problems

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Judges the answer, and asks again."""
        response = await call_next(request)
        asked = 0
        while self._is_judged(response):
            try:
                return await self._read(response)
            except OutputError as error:
                if asked == self._retries:
                    return self._give_up(response, error)
                asked += 1
                request = request.again(self._feedback(response, error), after=response)
            response = await call_next(request)
        return response

    def judges(self, form: Output | None) -> bool:
        """Whether it has anything to judge where this form is asked for."""
        return form is not None or self._check is not None

    def _is_judged(self, response: TurnResponse) -> bool:
        """Whether a model wrote this as its final answer, and something is asked of it."""
        if not self.judges(response.form):
            return False
        # Where the transcript ends with results, they are the answer (return-direct), or their
        # calls were not eligible: the model is not to be asked again.
        last = response.messages[-1].role if response.messages else ""
        return response.status == "completed" and response.blocked_by is None and last != "tool"

    async def _read(self, response: TurnResponse) -> TurnResponse:
        """The response with its answer read.

        Raises:
            OutputError: it does not fit.
        """
        value = response.text if response.form is None else response.output
        if self._check is not None:
            await _judge(self._check, value)
        return response if response.form is None else response.with_read(value)

    def _give_up(self, response: TurnResponse, error: OutputError) -> TurnResponse:
        if self._exhausted == "raise":
            raise error
        return response.with_(reason=f"Not valid after {self._retries + 1} attempts. {error}")

    def _feedback(self, response: TurnResponse, error: OutputError) -> str:
        form = response.form
        found = error.problems or (Problem("", str(error), ""),)
        found = found if self._problems == "all" else found[:1]
        more = len(found) - _TOLD
        lines = ["Your answer does not fit:", *(f"- {problem}" for problem in found[:_TOLD])]
        if more > 0:
            lines.append(f"- and {more} more")
        if response.message is not None and response.message.finish == "length":
            lines.append("It was cut off where it reached the longest length; write a shorter one.")
        if form is None:
            return "\n".join([*lines, "Answer again, with the whole corrected answer alone."])
        lines.append(
            "Answer again, with the whole corrected answer as JSON alone, without prose or a code"
            " fence."
        )
        if not error.is_json:  # nobody holds this model to the form, so it is told once more
            lines.append(f"It must fit this JSON Schema:\n{_as_text(form)}")
        return "\n".join(lines)


async def _judge(check: Check, value: Any) -> None:
    try:
        verdict = check(value)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except ValueError as error:
        listed: Any = getattr(error, "errors", None)
        if callable(listed):  # of pydantic
            details = cast("Iterable[Mapping[str, Any]]", listed())
            raise _rejected(pydantic_problems(details, value)) from error
        raise _rejected([Problem("", str(error) or repr(error), "")]) from error
    given = cast("object", verdict)
    if given is None or given == "":
        return
    if not isinstance(given, str):
        raise ConfigError(
            f"The check {getattr(check, '__name__', check)!r} gave {given!r}; it must give None"
            " where the answer is right, or a text that says what is wrong."
        )
    raise _rejected([Problem("", given, "")])


def _rejected(problems: Sequence[Problem]) -> OutputError:
    told = "; ".join(str(one) if one.path else one.expected for one in problems)
    return OutputError(f"The answer was not accepted: {told}", problems)


def _as_text(form: Output) -> str:
    return msgspec.json.encode(form.schema).decode()
