"""`Validate`: the final answer fits what was asked for, or the model is asked again.

It is the repair that `Agent(output=...)` brings by itself (`chains/repair.py`), with choices: a
check of your own, the number of retries, what becomes of an answer that never fits, and streams
that show nothing before it does. It judges the answer, never a round of tool calls.
"""

import inspect
from typing import Any, Final, Literal

from retinue.chains import (
    Advisor,
    CallNext,
    Check,
    Output,
    Repair,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError

_CHOICES: Final = {"exhausted": ("return", "raise"), "problems": ("all", "first")}


class Validate(Advisor):
    """Validates the final answer, and asks again with what is wrong with it.

    Where the model takes a schema, it is held to the form while it writes; any other is told the
    form in its instructions. What comes is read leniently (see `Output.read`) and judged strictly.
    The typed value is `result.output`.

    Args:
        form: the form of the answer: a type or a JSON Schema. None for the form that the agent or
            the turn asks for, if any does.
        check: judges the value of the answer, or its text where no form is asked for: gives None
            where it is right, a text that says what is wrong where it is not, or raises ValueError.
            It may be `async`. Any other error ends the turn.
        retries: how often the model is asked again; 2 by default, so 3 calls at most. When a layer
            outside re-enters the turn, they count anew.
        exhausted: what becomes of an answer that still does not fit: "return" gives it as it is,
            with `result.reason` saying what is wrong (`result.output` raises OutputError where it
            is not of the form); "raise" raises OutputError.
        problems: whether the model is told "all" that is wrong, 20 things at most, or the "first".
        hold: whether a stream shows an answer only when it fits, and then at once. What is said
            before tool calls is shown when the call comes, reasoning at once.

    Raises:
        ConfigError: a value cannot be used.
        MissingExtraError: the form is a JSON Schema, and jsonschema-rs is not installed.
    """

    def __init__(
        self,
        form: Any = None,
        *,
        check: Check | None = None,
        retries: int = 2,
        exhausted: Literal["return", "raise"] = "return",
        problems: Literal["all", "first"] = "all",
        hold: bool = False,
    ) -> None:
        if inspect.isroutine(form):
            raise ConfigError(
                f"Validate({form.__name__}) got a function for a form; write Validate(check=...)."
            )
        if check is not None:
            _check_check(check)
        if not _is_count(retries):
            raise ConfigError(f"Validate(retries={retries!r}): give a whole number, 0 or more.")
        for name, value in (("exhausted", exhausted), ("problems", problems)):
            if value not in _CHOICES[name]:
                known = " or ".join(map(repr, _CHOICES[name]))
                raise ConfigError(f"Validate({name}={value!r}): give {known}.")
        self._form = None if form is None else Output.of(form)
        self._hold = hold
        self.traits = frozenset({"validates", "withholds"} if hold else {"validates"})
        self._repair = Repair(check, retries=retries, exhausted=exhausted, problems=problems)

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Asks for the form, and again while the answer does not fit.

        Raises:
            ConfigError: the agent, the turn or an outer layer asks for another form.
            OutputError: the answer never fitted, and it is to be raised.
        """
        form = self._form
        if form is not None:
            if request.output is not None and request.output != form:
                raise ConfigError(
                    f"Two forms are asked for: {request.output.name!r}, and {form.name!r} by"
                    " Validate; give Validate none, and it takes the other."
                )
            request = request.with_(output=form)
        if self._hold and self._repair.judges(request.output):
            request = request.with_(held=True)
        return await self._repair.turn(request, call_next)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _check_check(check: Any) -> None:
    if not callable(check) or isinstance(check, type):
        raise ConfigError(f"Validate(check={check!r}): give a function of the answer.")
    if not takes(check, 1):
        raise ConfigError(f"Validate(check={check!r}): it must take the answer alone.")
