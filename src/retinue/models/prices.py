"""What model calls cost, by the price table of genai-prices, which also knows what models hold.

It works offline.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Final

from retinue.chains.responses import Spent
from retinue.errors import MissingExtraError
from retinue.messages import Usage

_NAMES: Final = {
    "gemini": "google", "gemini-openai": "google", "glm": "zai", "moonshot": "moonshotai",
    "xai": "x-ai",
}  # fmt: skip
"""Providers that the table knows by another name."""

_FREE: Final = ("ollama", "vllm", "llamacpp", "lmstudio", "local", "compatible")
"""Providers that the table cannot price: who runs the machine pays for it."""


def has_prices() -> bool:
    """Whether the price table is installed; it is not loaded yet."""
    return find_spec("genai_prices") is not None


def check_prices() -> None:
    """Refuses to go on without the price table, which is not loaded yet.

    Raises:
        MissingExtraError: genai-prices is not installed.
    """
    if not has_prices():
        raise MissingExtraError(
            "Prices need the package genai-prices; install it with: pip install 'retinue[prices]'"
        )


def cost(spent: Iterable[Spent]) -> float | None:
    """What the calls cost together, in US dollars, or None if the price of one is not known.

    Cached prompt tokens cost what the provider asks for reading and writing them. No calls cost 0.

    Raises:
        MissingExtraError: genai-prices is not installed.
    """
    total = 0.0
    for one in spent:
        price = _price(one.provider, one.model, one.usage)
        if price is None:
            return None
        total += price
    return total


def listed_context(provider: str, model: str) -> int | None:
    """How many tokens the model holds by the price table; None if either is not there."""
    if provider in _FREE or not has_prices():
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    try:
        listed = calc_price(Tokens(), model, provider_id=_listed(provider)).model
    except (LookupError, ValueError):
        return None
    return listed.context_window


def _listed(provider: str) -> str:
    provider = provider.removesuffix("-responses")
    return _NAMES.get(provider, provider)


def _price(provider: str, model: str, usage: Usage) -> float | None:
    check_prices()
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    if provider in _FREE or usage.input is None or usage.output is None:
        return None
    tokens = Tokens(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        price = calc_price(tokens, model, provider_id=_listed(provider))
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
