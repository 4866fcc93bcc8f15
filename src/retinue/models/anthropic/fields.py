"""The fields of a request beside its tools and messages, and what is refused before the call."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.models.anthropic.abilities import NEWEST, UNKNOWN, Abilities
from retinue.models.anthropic.turns import Turn
from retinue.models.loose import an_object
from retinue.models.outgoing import check_choice, check_extra
from retinue.tools import Tool

ANSWER: Final = 16_384
"""Tokens of an answer, where nobody says how many: the field must be there."""
BUDGETS: Final[Mapping[str, int]] = {
    "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 65_536,
}  # fmt: skip
"""Tokens of thinking by effort: the budget of a model that takes one, and room for any other."""

_OWN: Final = ("messages", "model", "stream", "system")  # what `Settings.extra` must not set
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_LEAST: Final = 1024  # tokens; the smallest budget that the vendor takes
_MERGED: Final = ("thinking", "output_config")


class Wishes:
    """What is asked of one model beside an answer.

    Args:
        model: its name.
        abilities: what it takes.
        version: the version of the API that is spoken.
    """

    __slots__ = ("_abilities", "_model", "_version")

    def __init__(self, model: str, abilities: Abilities, version: str) -> None:
        self._model = model
        self._abilities = abilities
        self._version = version

    def fields(
        self, settings: Settings, tools: Sequence[Tool], turns: Sequence[Turn]
    ) -> dict[str, Any]:
        """The fields that the settings stand for, `max_tokens` always among them.

        Args:
            settings: how the model shall answer.
            tools: the tools on offer.
            turns: the conversation, which decides whether the model may think with a budget.

        Raises:
            ConfigError: the model does not take what is asked.
        """
        fields: dict[str, Any] = {"max_tokens": self._max_tokens(settings)}
        if settings.stop:
            fields["stop_sequences"] = _stops(settings.stop)
        for name in ("temperature", "top_p"):
            if (value := getattr(settings, name)) is not None:
                fields[name] = value
        choice = self._choice(settings, tools) if tools else {}
        if choice:
            fields["tool_choice"] = choice
        if settings.effort is not None:
            forced = choice.get("type") in ("any", "tool")
            fields |= self._effort(settings.effort, fields["max_tokens"], turns, forced=forced)
        if settings.extra:
            self._add(fields, settings.extra)
        self._check_sampling(fields)
        return fields

    # -- how long, and how deep -----------------------------------------------------------------

    def _max_tokens(self, settings: Settings) -> int:
        most = self._abilities.output
        if settings.max_tokens is not None:
            return settings.max_tokens
        effort = settings.effort or ("high" if self._abilities.thinks_unasked else "")
        usual = ANSWER + BUDGETS.get(effort, 0)
        return usual if most is None else min(usual, most)

    def _effort(
        self, effort: str, max_tokens: int, turns: Sequence[Turn], *, forced: bool
    ) -> dict[str, Any]:
        able = self._abilities
        fields: dict[str, Any] = {}
        if able.effort_field:
            fields["output_config"] = {"effort": effort}
        if forced:
            if not able.thinks_unasked:
                raise ConfigError(
                    f"{self._model} cannot think and be forced to call a tool in one request;"
                    f" leave out effort={effort!r} or the tool_choice."
                )
        elif able.thinks_by == "adaptive":
            fields["thinking"] = {"type": "adaptive"}
        elif may_think(turns):
            if effort not in BUDGETS:
                raise ConfigError(
                    f"{self._model} thinks with a budget, and effort={effort!r} names none; the"
                    f" words are {', '.join(BUDGETS)}."
                )
            budget = min(BUDGETS[effort], max_tokens - _LEAST)
            if budget < _LEAST:
                raise ConfigError(
                    f"max_tokens={max_tokens} leaves {self._model} no room to think; give at least"
                    f" {2 * _LEAST}, or leave effort={effort!r} out."
                )
            fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
        return fields

    # -- which tool -----------------------------------------------------------------------------

    def _choice(self, settings: Settings, tools: Sequence[Tool]) -> dict[str, Any]:
        choice = settings.tool_choice
        if choice == "none":
            return {"type": "none"}
        one_by_one = settings.parallel_tool_calls is False
        if choice is None and not one_by_one:
            return {}
        alone = {"disable_parallel_tool_use": True} if one_by_one else {}
        if choice in (None, "auto"):
            return {"type": "auto", **alone}
        if choice != "required":
            check_choice(choice, tools)
        if choice == "required":
            return {"type": "any", **alone}
        return {"type": "tool", "name": choice, **alone}

    # -- what the user adds ---------------------------------------------------------------------

    def _add(self, fields: dict[str, Any], extra: Mapping[str, Any]) -> None:
        check_extra(extra, _OWN)
        added: dict[str, Any] = dict(extra)
        for name in _MERGED:
            value = an_object(added.get(name))
            if value and "type" not in value:
                added[name] = {**fields.get(name, {}), **value}
        if thinking := an_object(added.get("thinking")):
            if self._abilities.thinks_by == "adaptive":
                thinking = added["thinking"] = {"type": "adaptive", **thinking}
            self._check_thinking(thinking.get("type"))
        fields.update(added)

    def _check_thinking(self, kind: Any) -> None:
        able = self._abilities
        if kind == "enabled" and not (able.thinks_by == "manual" or able.manual_too):
            way = "Settings(effort=...)" if able.thinking else "another model"
            raise ConfigError(f"{self._model} takes no budget of thinking; use {way}.")
        if kind == "adaptive" and able.thinks_by != "adaptive":
            raise ConfigError(f"{self._model} has no adaptive thinking; use another model.")

    def _check_sampling(self, fields: Mapping[str, Any]) -> None:
        asked = [name for name in _SAMPLING if name in fields]
        if not asked:
            return
        words = " and ".join(asked)
        if self._version >= NEWEST:
            raise ConfigError(
                f"Anthropic takes no {words} since version {NEWEST} of its API; leave it out, or"
                " make the model with version='2023-06-01'."
            )
        if self._abilities.sampling is False:
            raise ConfigError(f"{self._model} takes no {words}; leave it out.")
        if self._abilities is not UNKNOWN and {"temperature", "top_p"} <= set(asked):
            raise ConfigError(f"{self._model} takes temperature or top_p, not both.")
        temperature = fields.get("temperature", 1)
        if not 0 <= temperature <= 1:
            raise ConfigError(f"temperature must be from 0 to 1, not {temperature}.")
        thinks = fields.get("thinking", {}).get("type") in ("enabled", "adaptive")
        if thinks and (temperature != 1 or "top_k" in asked):
            raise ConfigError(
                f"{self._model} takes no {words} while it thinks; leave it or effort out."
            )


def may_think(turns: Sequence[Turn]) -> bool:
    """Whether the vendor lets a model think with a budget here.

    Within a loop of tools every step must then begin with a signed thought. Where the loop was
    begun by another vendor's model, or without thinking, it has to go on without.
    """
    first: Turn | None = None
    for turn in reversed(turns):
        if turn.role == "assistant":
            first = turn
        elif not turn.holds_results_alone:  # the loop began after it
            break
    return first is None or "thinking" in _type(first.content[0])


def _type(block: bytes) -> str:
    return msgspec.json.decode(block)["type"]


def _stops(stops: Sequence[str]) -> list[str]:
    for stop in stops:
        if not stop.strip():
            raise ConfigError(f"Anthropic takes no stop of white space alone, such as {stop!r}.")
    return list(stops)
