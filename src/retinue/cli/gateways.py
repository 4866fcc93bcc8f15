"""`retinue models`: where models can be had, and whether their keys are set."""

import os
from typing import Literal

from msgspec import Struct

from retinue.cli.plain import print_json
from retinue.cli.rows import print_rows
from retinue.errors import ConfigError
from retinue.models.gateways import ALIASES, GATEWAYS, Gateway
from retinue.models.resolve import LOCAL, RESPONSES


class Place(Struct, frozen=True):
    """One way to a model.

    Attributes:
        provider: what stands before the colon in `provider:model`.
        address: the base URL, or the file of the embedded model; empty if it must be given.
        variable: the variable that holds the key, or those that may. The key itself is nowhere.
        key: whether it is set.
        note: what is missing besides, or other names of the provider.
    """

    provider: str
    address: str
    variable: str
    key: Literal["set", "not set", "not needed"]
    note: str


def list_places(*, as_json: bool) -> None:
    """Prints all ways to a model."""
    places = [*map(_gateway, GATEWAYS.values()), _anthropic(), _gemini(), _local()]
    if as_json:
        for place in places:
            print_json(place)
        return
    print_rows(
        ("provider", "address", "variable", "key", ""),
        [(each.provider, each.address, each.variable, each.key, each.note) for each in places],
    )


def _gateway(row: Gateway) -> Place:
    held = next((name for name in row.key_vars if os.environ.get(name, "").strip()), None)
    # An address in a variable may hold a password, so the variable is named instead.
    moved = row.url_var is not None and bool(os.environ.get(row.url_var))
    names = {**ALIASES, **RESPONSES}
    others = [other for other, name in names.items() if name == row.name]
    notes = [f"also {', '.join(others)}"] if others else []
    if row.base_url is None and not moved:
        notes.append(f"{row.url_var} must hold the address")
    return Place(
        provider=row.name,
        address=f"${row.url_var}" if moved else row.base_url or "",
        variable=held or " or ".join(row.key_vars),
        key="set" if held else "not set" if row.needs_key else "not needed",
        note="; ".join(notes),
    )


def _anthropic() -> Place:
    from retinue.models.anthropic.model import PLACE

    return _gateway(PLACE)


def _gemini() -> Place:
    from retinue.models.gemini.model import PLACE

    return _gateway(PLACE)


def _local() -> Place:
    from retinue.models.llamacpp import Local

    try:
        return Place(LOCAL, str(Local().path), "", "not needed", "runs on this machine")
    except ConfigError as error:
        return Place(LOCAL, "", "", "not needed", str(error))
