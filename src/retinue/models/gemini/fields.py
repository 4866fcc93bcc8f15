"""The fields of a request beside its contents and tools, and what is refused before the call."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.models.gemini.abilities import BUDGETS, Abilities
from retinue.models.gemini.schemas import native_form
from retinue.models.loose import an_object
from retinue.models.outgoing import check_choice, check_extra
from retinue.tools import Tool

SCHEMA: Final = "responseJsonSchema"

_OWN: Final = ("contents", "model", "systemInstruction")  # what `Settings.extra` must not set
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_MOST_STOPS: Final = 5
_JSON: Final = "application/json"


class Wishes:
    """What is asked of one model beside an answer.

    Args:
        model: its name.
        abilities: what it takes.
        thoughts: whether it is to show a summary of its thoughts.
    """

    __slots__ = ("_abilities", "_model", "_thoughts")

    def __init__(self, model: str, abilities: Abilities, *, thoughts: bool) -> None:
        self._model = model
        self._abilities = abilities
        self._thoughts = thoughts

    def fields(
        self, settings: Settings, tools: Sequence[Tool], form: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The fields that the settings stand for; `tools` may be among them, from the user.

        Args:
            settings: how the model shall answer.
            tools: the tools on offer.
            form: what `form` gives for the form of the answer.

        Raises:
            ConfigError: the model does not take what is asked.
        """
        _check(settings)
        fields: dict[str, Any] = {}
        config = {**self._config(settings), **form}
        if config:
            fields["generationConfig"] = config
        if tools and settings.tool_choice is not None:
            fields["toolConfig"] = {"functionCallingConfig": _choice(settings.tool_choice, tools)}
        if settings.extra:
            _check_extra(settings.extra)
            fields = _merged(fields, settings.extra)
        return fields

    def form(self, output: Output, tools: Sequence[Tool]) -> dict[str, Any]:
        """The fields that ask for the form; without `SCHEMA` it must be asked for in words too."""
        able = self._abilities
        if tools and not able.form_with_tools:
            return {}
        schema = None if able.schema is False else native_form(output.schema)
        if schema is not None:
            return {"responseMimeType": _JSON, SCHEMA: schema}
        return {} if able.json_mode is False else {"responseMimeType": _JSON}

    def _config(self, settings: Settings) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for name, value in (
            ("temperature", settings.temperature),
            ("topP", settings.top_p),
            ("maxOutputTokens", settings.max_tokens),
            ("stopSequences", list(settings.stop) or None),
            ("seed", settings.seed),
        ):
            if value is not None:
                config[name] = value
        thinking = {} if settings.effort is None else self._effort(settings.effort)
        if self._thoughts:
            thinking["includeThoughts"] = True
        if thinking:
            config["thinkingConfig"] = thinking
        return config

    def _effort(self, effort: str) -> dict[str, Any]:
        if self._abilities.thinks_by == "level":
            return {"thinkingLevel": effort.upper()}
        if effort not in BUDGETS:
            raise ConfigError(
                f"{self._model} thinks with a budget, and effort={effort!r} names none; the words"
                f" are {', '.join(BUDGETS)}."
            )
        return {"thinkingBudget": BUDGETS[effort]}


def _check(settings: Settings) -> None:
    if settings.parallel_tool_calls is False:
        raise ConfigError(
            "Gemini cannot be told to ask for one call at a time; leave parallel_tool_calls=False"
            " out."
        )
    if settings.temperature is not None and not 0 <= settings.temperature <= 2:
        raise ConfigError(f"temperature must be from 0 to 2, not {settings.temperature}.")
    if len(settings.stop) > _MOST_STOPS:
        raise ConfigError(
            f"Gemini takes at most {_MOST_STOPS} stop sequences, not {len(settings.stop)}."
        )


def _choice(choice: str, tools: Sequence[Tool]) -> dict[str, Any]:
    mode = _MODES.get(choice)
    if mode is not None:
        return {"mode": mode}
    check_choice(choice, tools)
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _check_extra(extra: Mapping[str, Any]) -> None:
    check_extra(extra, _OWN)
    for name in extra:
        if "_" in name:  # the vendor takes both spellings, and one may hide the other
            head, *rest = name.split("_")
            meant = head + "".join(map(str.capitalize, rest))
            raise ConfigError(f"Settings(extra=...) has {name!r}; write {meant!r}.")


def _merged(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with the user's; objects that both have are merged, so that neither is lost."""
    merged = dict(fields)
    for name, value in extra.items():
        own = an_object(merged.get(name))
        if own and isinstance(value, Mapping):
            value = _merged(own, cast("Mapping[str, Any]", value))
        merged[name] = value
    return merged
