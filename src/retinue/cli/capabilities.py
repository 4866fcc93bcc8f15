"""`retinue models openai` and `retinue models openai:gpt-5`: what is declared of models."""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import structs

from retinue.cli.plain import print_json
from retinue.cli.rows import print_rows
from retinue.models.capabilities import Capabilities
from retinue.models.counting import context_window
from retinue.models.gateways import ALIASES, GATEWAYS
from retinue.models.resolve import ANTHROPIC, GEMINI, LOCAL, RESPONSES, capabilities_of

_ANY: Final = "*"
"""Stands for every model that has no row."""

_COLUMNS: Final = (
    "images", "audio", "video", "documents", "tools", "schema", "thinking", "context", "output",
)  # fmt: skip


def show_capabilities(which: str, *, as_json: bool) -> None:
    """Prints what one model takes, or what the models of a provider do.

    Args:
        which: "provider:model", or a provider.
        as_json: as JSON, one object a line; what is not known is null.

    Raises:
        UnknownModelError: there is no such provider.
    """
    which = which.strip()
    provider = ALIASES.get(which, which)
    if which == LOCAL or (names := _declared_names(provider)) is None:
        _show_one(which, as_json=as_json)
        return
    models = {name: capabilities_of(f"{provider}:{name}") for name in (*names, _ANY)}
    if as_json:
        for name, takes in models.items():
            print_json({"model": f"{provider}:{name}", **structs.asdict(takes)})
        return
    print_rows(
        ("model", *_COLUMNS),
        [
            (name, *(_cell(getattr(takes, column)) for column in _COLUMNS))
            for name, takes in models.items()
        ],
    )


def _show_one(model: str, *, as_json: bool) -> None:
    takes = structs.replace(capabilities_of(model), context=context_window(model))
    if as_json:
        print_json({"model": model, **structs.asdict(takes)})
        return
    said = structs.asdict(takes)
    rows = [(name.replace("_", " "), _cell(said[name])) for name in Capabilities.__struct_fields__]
    print_rows((model, ""), rows)


def _declared_names(provider: str) -> Mapping[str, Any] | None:
    """The rows of a provider, or None if there is none of that name."""
    if provider == ANTHROPIC:
        from retinue.models.anthropic.abilities import MODELS

        return MODELS
    if provider == GEMINI:
        from retinue.models.gemini.abilities import MODELS as GEMINI_MODELS

        return GEMINI_MODELS
    row = GATEWAYS.get(RESPONSES.get(provider, provider))
    return None if row is None else row.models


def _cell(value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(cast("tuple[str, ...]", value)) or "none"
