"""What single models take, as their vendors document it: a row each, by the model's name.

Facts that differ from what their gateway says of all its models. A date or a tag behind the name
does not count (`capabilities.find_row`). What no document says is left out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import structs

from retinue.models.capabilities import Capabilities

_LOW_TO_HIGH: Final = ("low", "medium", "high")
_NONE_TO_XHIGH: Final = ("none", *_LOW_TO_HIGH, "xhigh")

# -- OpenAI: models that do not reason -----------------------------------------------------------

_PLAIN: Final = Capabilities(
    audio=False, tools=True, forced_tools=True, thinking=False, efforts=(), sampling=True,
    seed=True, stop=True,
)  # fmt: skip
_GPT_3_5: Final = structs.replace(
    _PLAIN, images=False, documents=False, parallel_tools=True, schema=False, json_mode=True,
    context=16_385, output=4096,
)  # fmt: skip
_GPT_4: Final = structs.replace(
    _PLAIN, images=False, documents=False, schema=False, json_mode=False, context=8192, output=8192
)
_GPT_4_TURBO: Final = structs.replace(
    _PLAIN, images=True, documents=False, parallel_tools=True, schema=False, json_mode=True,
    context=128_000, output=4096,
)  # fmt: skip
_GPT_4O: Final = structs.replace(
    _PLAIN, images=True, documents=True, parallel_tools=True, schema=True, json_mode=True,
    context=128_000, output=16_384,
)  # fmt: skip
_GPT_4_1: Final = structs.replace(_GPT_4O, context=1_047_576, output=32_768)
_AUDIO: Final = Capabilities(
    images=False, audio=True, documents=False, tools=True, schema=False, thinking=False,
    efforts=(), context=128_000, output=16_384,
)  # fmt: skip

# -- OpenAI: models that reason ------------------------------------------------------------------

_O: Final = Capabilities(
    images=True, audio=False, documents=True, tools=True, parallel_tools=False, schema=True,
    json_mode=True, thinking=True, efforts=_LOW_TO_HIGH, sampling=False, context=200_000,
    output=100_000,
)  # fmt: skip
_GPT_5: Final = Capabilities(
    images=True, audio=False, documents=True, tools=True, parallel_tools=True, schema=True,
    json_mode=True, thinking=True, efforts=("minimal", *_LOW_TO_HIGH), sampling=False,
    context=400_000, output=128_000,
)  # fmt: skip
# From 5.1 on, sampling depends on the effort, so that only the vendor can judge it.
_GPT_5_1: Final = structs.replace(_GPT_5, efforts=("none", *_LOW_TO_HIGH), sampling=None)
_GPT_5_2: Final = structs.replace(_GPT_5_1, efforts=_NONE_TO_XHIGH)
_GPT_5_4: Final = structs.replace(_GPT_5_2, context=1_050_000)
# Newer ones ask for tools by way of Responses in some efforts only, and know other words in each
# format: what is asked is sent.
_GPT_6: Final = Capabilities(
    images=True, audio=False, video=False, thinking=True, context=1_050_000, output=128_000
)

OPENAI: Final[Mapping[str, Capabilities]] = MappingProxyType({
    "gpt-3.5-turbo": _GPT_3_5,
    "gpt-4": _GPT_4,
    "gpt-4-0125": structs.replace(_GPT_4_TURBO, images=False),
    "gpt-4-1106": structs.replace(_GPT_4_TURBO, images=False),
    "gpt-4-turbo": _GPT_4_TURBO,
    "gpt-4o": _GPT_4O,
    "gpt-4o-2024-05-13": structs.replace(_GPT_4O, schema=False, output=4096),
    "gpt-4o-mini": _GPT_4O,
    "gpt-4.1": _GPT_4_1,
    "gpt-4.1-mini": _GPT_4_1,
    "gpt-4.1-nano": _GPT_4_1,
    "chatgpt-4o": Capabilities(images=True, thinking=False, efforts=(), output=16_384),
    "gpt-4o-audio": _AUDIO,
    "gpt-4o-mini-audio": _AUDIO,
    "gpt-audio": _AUDIO,
    "gpt-audio-mini": _AUDIO,
    "o1": _O,
    "o3": structs.replace(_O, stop=False),
    "o3-mini": structs.replace(_O, images=False),
    "o4-mini": structs.replace(_O, stop=False),
    "gpt-5": _GPT_5,
    "gpt-5-mini": _GPT_5,
    "gpt-5-nano": _GPT_5,
    "gpt-5-chat": Capabilities(images=True, audio=False, thinking=False, efforts=()),
    "gpt-5.1": _GPT_5_1,
    "gpt-5.2": _GPT_5_2,
    "gpt-5.4": _GPT_5_4,
    "gpt-5.4-mini": _GPT_5_2,
    "gpt-5.4-nano": _GPT_5_2,
    "gpt-5.5": _GPT_5_4,
    "gpt-5.6-luna": _GPT_6,
    "gpt-5.6-sol": _GPT_6,
    "gpt-5.6-terra": _GPT_6,
    "gpt-6-astra": _GPT_6,
    "gpt-6-luna": _GPT_6,
    "gpt-6-sol": _GPT_6,
    "gpt-6.1-sol": _GPT_6,
    "gpt-6.1-terra": _GPT_6,
    "gpt-6.2-sol": _GPT_6,
})  # fmt: skip
"""OpenAI's models, wherever they are served under its own names."""

# -- others --------------------------------------------------------------------------------------

XAI: Final[Mapping[str, Capabilities]] = MappingProxyType({
    "grok-3": Capabilities(images=False, thinking=False, efforts=(), context=131_072),
    "grok-3-mini": Capabilities(
        images=False, thinking=True, efforts=("low", "high"), stop=False, context=131_072
    ),
    "grok-4": Capabilities(images=True, thinking=True, efforts=(), stop=False, context=256_000),
    "grok-4.3": Capabilities(thinking=True, efforts=("none", *_LOW_TO_HIGH), context=1_000_000),
    "grok-4.5": Capabilities(thinking=True, efforts=_LOW_TO_HIGH, context=500_000),
    "grok-code-fast-1": Capabilities(images=False, thinking=True, efforts=(), context=256_000),
})  # fmt: skip
"""xAI's models."""

DEEPSEEK: Final[Mapping[str, Capabilities]] = MappingProxyType({
    "deepseek-flash": Capabilities(images=True, tools=True, thinking=True, context=1_000_000),
    "deepseek-v4-flash": Capabilities(tools=True, thinking=True, context=1_000_000),
    "deepseek-v4-pro": Capabilities(tools=True, thinking=True, context=1_000_000),
})  # fmt: skip
"""DeepSeek's models."""

MOONSHOT: Final[Mapping[str, Capabilities]] = MappingProxyType({
    "kimi-k2": Capabilities(images=False, thinking=False, tools=True),
    "kimi-k2-thinking": Capabilities(images=False, thinking=True, tools=True, context=262_144),
    "kimi-k2.5": Capabilities(images=True, tools=True, context=262_144),
    "moonshot-v1-8k": Capabilities(images=False, thinking=False, context=8192),
    "moonshot-v1-32k": Capabilities(images=False, thinking=False, context=32_768),
    "moonshot-v1-128k": Capabilities(images=False, thinking=False, context=131_072),
})  # fmt: skip
"""Moonshot's models."""
