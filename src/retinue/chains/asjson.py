"""Documents as JSON: what turns are kept as, and whether a value fits into one.

Besides what JSON knows, models of pydantic and mappings of any kind fit. Reading them back gives
plain values.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec


def encode(document: Any) -> bytes:
    """A document as JSON. TypeError, ValueError, RecursionError: it holds what JSON cannot."""
    return _encoder.encode(document)


def fits(value: Any) -> bool:
    """Whether JSON can hold a value."""
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return False
    return True


def fitting(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that JSON can hold."""
    return {name: value for name, value in values.items() if fits(value)}


def _plain(value: Any) -> Any:
    dumped = getattr(value, "model_dump", None)  # pydantic
    if callable(dumped):
        return dumped(mode="json")
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise TypeError(f"JSON cannot hold {type(value).__name__}")


_encoder: Final = msgspec.json.Encoder(enc_hook=_plain)
