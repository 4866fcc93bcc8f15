"""Where models are served in the Chat Completions format, and some in Responses: a row each.

A row says what is documented and differs: the address, the key's variable, the names of fields,
what no model takes there, and what single models take. What a server answers is read without
regard to the row.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from retinue.models import known
from retinue.models.capabilities import UNKNOWN, Capabilities, find_row

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Gateway(Struct, frozen=True, kw_only=True):
    """One place that serves models.

    Attributes:
        name: the provider's name; reasoning goes back only to the provider of this name.
        base_url: what `/chat/completions` is appended to; None if the user must say it.
        url_var: the environment variable that may hold another base URL.
        url_path: what is appended to the address in that variable.
        key_vars: environment variables that may hold the key, the first that is set counts.
        needs_key: whether there is no calling it without a key.
        key_header: the header for the key; any but "authorization" gets the key alone.
        max_tokens: the field that limits the answer.
        seed: the field for the seed.
        counts_streams: whether it takes `stream_options`, without which many count no stream.
        effort: the field for how much the model may think, where `takes` does not say that there
            is none.
        thinking: the field in which reasoning goes back; "parts" is typed content; None: it does
            not go back.
        no_thinking: what is sent in that field for a message that has calls and no reasoning, where
            its absence is an error.
        file_urls: whether it takes the URL of a document where others take its data.
        json_arguments: whether it refuses a call whose arguments are no JSON object.
        short_ids: whether ids of calls must be nine letters and digits.
        takes: what holds for all its models; what is False here, none takes there.
        models: what single models take, by name; see `capabilities.find_row`.
        responses: what holds instead of `takes` in the Responses format, under the same base URL;
            None if it does not speak it.
        encrypts: whether it gives the reasoning encrypted in that format, if asked.
        extra: fields sent with every request.
    """

    name: str
    base_url: str | None = None
    url_var: str | None = None
    url_path: str = ""
    key_vars: tuple[str, ...] = ()
    needs_key: bool = True
    key_header: str = "authorization"
    max_tokens: str = "max_tokens"
    seed: str = "seed"
    counts_streams: bool = True
    effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    thinking: Literal["reasoning_content", "reasoning", "reasoning_details", "parts"] | None = None
    no_thinking: str | None = None
    file_urls: bool = False
    json_arguments: bool = True
    short_ids: bool = False
    takes: Capabilities = UNKNOWN
    models: Mapping[str, Capabilities] = _NOTHING
    responses: Capabilities | None = None
    encrypts: bool = False
    extra: Mapping[str, Any] = _NOTHING

    def capabilities(self, model: str) -> Capabilities:
        """What the model takes in Chat Completions, as far as it is declared."""
        row = find_row(model, self.models) or UNKNOWN
        return row.within(self.takes).within(CHAT_COMPLETIONS)

    def capabilities_in_responses(self, model: str) -> Capabilities:
        """What the model takes in the Responses format, as far as it is declared."""
        row = find_row(model, self.models) or UNKNOWN
        return row.within(self.responses or UNKNOWN).within(RESPONSES)


CHAT_COMPLETIONS: Final = Capabilities(video=False)
"""What cannot be said in the Chat Completions format."""

RESPONSES: Final = Capabilities(audio=False, video=False, seed=False, stop=False)
"""What cannot be said in the Responses format."""

_NO_FILES: Final = Capabilities(documents=False)
_NO_MEDIA: Final = Capabilities(audio=False, documents=False)
_NO_IMAGES: Final = Capabilities(images=False, audio=False, documents=False)

_ROWS: Final = (
    Gateway(
        name="openai",
        base_url="https://api.openai.com/v1",
        url_var="OPENAI_BASE_URL",
        key_vars=("OPENAI_API_KEY",),
        max_tokens="max_completion_tokens",
        json_arguments=False,
        responses=UNKNOWN,
        encrypts=True,
        takes=Capabilities(shows_thinking=False),
        models=known.OPENAI,
    ),
    Gateway(
        name="azure",
        url_var="AZURE_OPENAI_ENDPOINT",
        url_path="/openai/v1",
        key_vars=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
        max_tokens="max_completion_tokens",
        json_arguments=False,
        responses=UNKNOWN,
        encrypts=True,
        takes=Capabilities(documents=False, shows_thinking=False),
        models=known.OPENAI,
    ),
    Gateway(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_vars=("OPENROUTER_API_KEY",),
        effort="reasoning",
        thinking="reasoning_details",
        file_urls=True,
        responses=UNKNOWN,
        encrypts=True,
    ),
    Gateway(
        name="deepseek",
        base_url="https://api.deepseek.com",
        key_vars=("DEEPSEEK_API_KEY",),
        thinking="reasoning_content",
        no_thinking="",
        responses=_NO_FILES,
        takes=Capabilities(audio=False, documents=False, schema=False, json_mode=True),
        models=known.DEEPSEEK,
    ),
    Gateway(
        name="qwen",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_vars=("DASHSCOPE_API_KEY",),
        takes=Capabilities(documents=False, schema=False, json_mode=True, efforts=()),
    ),
    Gateway(
        name="glm",
        base_url="https://api.z.ai/api/paas/v4",
        key_vars=("ZAI_API_KEY", "ZHIPUAI_API_KEY"),
        thinking="reasoning_content",
        takes=Capabilities(audio=False, documents=False, schema=False, json_mode=True),
    ),
    Gateway(
        name="minimax",
        base_url="https://api.minimax.io/v1",
        key_vars=("MINIMAX_API_KEY",),
        max_tokens="max_completion_tokens",
        thinking="reasoning_details",
        extra={"reasoning_split": True},
        takes=Capabilities(audio=False, documents=False, schema=False, json_mode=False, efforts=()),
    ),
    Gateway(
        name="moonshot",
        base_url="https://api.moonshot.ai/v1",
        key_vars=("MOONSHOT_API_KEY",),
        thinking="reasoning_content",
        no_thinking=" ",  # an empty text counts as missing there
        takes=Capabilities(audio=False, documents=False, efforts=()),
        models=known.MOONSHOT,
    ),
    Gateway(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key_vars=("MISTRAL_API_KEY",),
        seed="random_seed",
        counts_streams=False,
        thinking="parts",
        short_ids=True,
        takes=_NO_FILES,
    ),
    Gateway(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        key_vars=("GROQ_API_KEY",),
        max_tokens="max_completion_tokens",
        responses=_NO_FILES,
        takes=_NO_MEDIA,
    ),
    Gateway(
        name="xai",
        base_url="https://api.x.ai/v1",
        key_vars=("XAI_API_KEY",),
        responses=_NO_FILES,
        encrypts=True,
        takes=_NO_MEDIA,
        models=known.XAI,
    ),
    Gateway(
        name="together",
        base_url="https://api.together.xyz/v1",
        key_vars=("TOGETHER_API_KEY",),
        takes=_NO_MEDIA,
    ),
    Gateway(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        key_vars=("FIREWORKS_API_KEY",),
        responses=_NO_FILES,
        takes=_NO_MEDIA,
    ),
    Gateway(
        name="cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_vars=("CEREBRAS_API_KEY",),
        max_tokens="max_completion_tokens",
        thinking="reasoning",
        takes=_NO_IMAGES,
    ),
    Gateway(
        name="siliconflow",
        base_url="https://api.siliconflow.com/v1",
        key_vars=("SILICONFLOW_API_KEY",),
        thinking="reasoning_content",
        takes=_NO_MEDIA,
    ),
    Gateway(
        name="gemini-openai",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_vars=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        takes=_NO_FILES,
    ),
    Gateway(
        name="ollama",
        base_url="http://localhost:11434/v1",
        needs_key=False,
        key_vars=("OLLAMA_API_KEY",),
        thinking="reasoning",
        responses=_NO_FILES,
        takes=_NO_MEDIA,
    ),
    Gateway(
        name="vllm",
        base_url="http://localhost:8000/v1",
        needs_key=False,
        key_vars=("VLLM_API_KEY",),
        thinking="reasoning",
        responses=_NO_FILES,
        takes=_NO_FILES,
    ),
    Gateway(
        name="llamacpp",
        base_url="http://localhost:8080/v1",
        needs_key=False,
        key_vars=("LLAMA_API_KEY",),
        thinking="reasoning_content",
        takes=_NO_FILES,
    ),
    Gateway(
        name="lmstudio",
        base_url="http://localhost:1234/v1",
        needs_key=False,
        responses=_NO_FILES,
        takes=_NO_MEDIA,
    ),
)

COMPATIBLE: Final = Gateway(
    name="compatible", needs_key=False, file_urls=True, responses=UNKNOWN, encrypts=True
)
"""Any other server of the formats, reached by its base URL."""

GATEWAYS: Final[Mapping[str, Gateway]] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows by name."""

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"zai": "glm", "zhipu": "glm", "dashscope": "qwen", "kimi": "moonshot", "lm-studio": "lmstudio"}
)
"""Other names that people know a gateway by."""
