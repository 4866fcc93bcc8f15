"""A model from the text that names it, "provider:model", and what is declared of it."""

import difflib
from typing import Final

from retinue.errors import ConfigError, UnknownModelError
from retinue.models.base import Model
from retinue.models.capabilities import UNKNOWN, Capabilities, declared_by
from retinue.models.gateways import ALIASES, GATEWAYS

ANTHROPIC: Final = "anthropic"
"""The provider of Claude, which has a format of its own."""

GEMINI: Final = "gemini"
"""Google, in the format of its own; "gemini-openai" is its compatible endpoint."""

LOCAL: Final = "local"
"""The provider that runs a model on this machine."""

BRIDGE: Final = "bridge"
"""What stands before the provider of a model that is asked through pydantic-ai."""

RESPONSES: Final = {f"{row.name}-responses": row.name for row in GATEWAYS.values() if row.responses}
"""The gateways that speak the Responses format, by what stands before the colon to ask for it."""

_KNOWN: Final = (*GATEWAYS, *ALIASES, *RESPONSES, ANTHROPIC, GEMINI, LOCAL, BRIDGE)

_FAMILIES: Final = (
    ("gpt", "openai"), ("o1", "openai"), ("o3", "openai"), ("o4", "openai"),
    ("deepseek", "deepseek"), ("qwen", "qwen"), ("glm", "glm"), ("kimi", "moonshot"),
    ("minimax", "minimax"), ("mistral", "mistral"), ("magistral", "mistral"), ("grok", "xai"),
    ("gemini", "gemini"), ("llama", "ollama"), ("claude", "anthropic"),
)  # fmt: skip
"""Whose a model probably is, by how its name begins; for advice, never for a choice."""


def resolve(model: str | Model) -> Model:
    """The model that the text names; a model object is given back as it is.

    The text is "provider:model", such as "openai:gpt-5-mini" or "ollama:qwen3:8b"; or
    "provider-responses:model" for the Responses format, such as "openai-responses:gpt-5-mini"; or
    "local", a small model that runs on this machine, or "local:path/to/weights.gguf"; or
    "bridge:provider:model" for a vendor outside the adapters, through pydantic-ai. Nobody is called
    yet, and nothing is loaded but, for the bridge, that library.

    Raises:
        UnknownModelError: there is no such provider, or none is named.
        MissingKeyError: the provider needs a key and none is set.
        MissingExtraError: a bridge is asked for and its library is not installed.
    """
    if not isinstance(model, str):
        if hasattr(model, "generate") and not isinstance(model, type):
            return model
        what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ConfigError(
            f"A model is a text such as 'openai:gpt-5-mini' or a model object, not {what}."
        )
    provider, name = named(model)
    if provider == LOCAL:
        return _local(name or None)
    if provider == ANTHROPIC:
        return _anthropic(name)
    if provider == GEMINI:
        return _gemini(name)
    if provider == BRIDGE:
        return _bridge(name)
    if provider in RESPONSES:
        return _responses(name, RESPONSES[provider])
    from retinue.models.openai.model import OpenAI

    return OpenAI(name, gateway=provider)


def named(model: str) -> tuple[str, str]:
    """The provider and the name that the text holds; the name is empty for "local" alone.

    Raises:
        UnknownModelError: there is no such provider, or none is named.
    """
    provider, colon, name = model.strip().partition(":")
    if provider == LOCAL:
        return provider, name
    if not colon or not name:
        raise UnknownModelError(_no_provider(model))
    if provider not in _KNOWN:
        raise UnknownModelError(_no_such_provider(model, provider))
    return ALIASES.get(provider, provider), name


def capabilities_of(model: str | Model) -> Capabilities:
    """What is declared of a model, by its name or by itself. No key is needed for it.

    Raises:
        UnknownModelError: there is no such provider, or none is named.
    """
    if not isinstance(model, str):
        return declared_by(model)
    provider, name = named(model)
    if provider == LOCAL:
        from retinue.models.llamacpp.model import TAKES

        return TAKES
    if provider == ANTHROPIC:
        from retinue.models.anthropic.abilities import NEWEST, abilities_of

        return abilities_of(name).at(NEWEST)
    if provider == BRIDGE:
        return UNKNOWN
    if provider == GEMINI:
        from retinue.models.gemini.abilities import abilities_of as of_gemini

        return of_gemini(name)
    if provider in RESPONSES:
        return GATEWAYS[RESPONSES[provider]].capabilities_in_responses(name)
    return GATEWAYS[provider].capabilities(name)


def _anthropic(name: str) -> Model:
    from retinue.models.anthropic.model import Anthropic

    return Anthropic(name)


def _bridge(name: str) -> Model:
    from retinue.models.bridge.model import Bridge

    return Bridge(name)


def _gemini(name: str) -> Model:
    from retinue.models.gemini.model import Gemini

    return Gemini(name)


def _responses(name: str, gateway: str) -> Model:
    from retinue.models.responses.model import Responses

    return Responses(name, gateway=gateway)


def _local(path: str | None) -> Model:
    from retinue.models.llamacpp import Local

    return Local(path)


def _no_provider(model: str) -> str:
    word = model.strip().partition(":")[0]
    if word in _KNOWN:
        return f"{model!r} names a provider and no model; write '{word}:' and the model's name."
    for start, provider in _FAMILIES:
        if word.lower().startswith(start):
            return f"{model!r} names no provider; write '{provider}:{word}'."
    return f"{model!r} names no provider; write 'provider:model', with one of {', '.join(_KNOWN)}."


def _no_such_provider(model: str, provider: str) -> str:
    near = difflib.get_close_matches(provider.lower(), _KNOWN, n=2, cutoff=0.6)
    if near:
        rest = model.strip().partition(":")[2]
        meant = " or ".join(f"'{name}:{rest}'" for name in near)
        return f"There is no provider {provider!r}; did you mean {meant}?"
    return (
        f"There is no provider {provider!r}; there are {', '.join(_KNOWN)}. For any other"
        " compatible server use OpenAI(name, base_url=...)."
    )
