"""All names that OpenTelemetry's GenAI conventions give to what happens in a turn.

The conventions are still in development: names change from release to release. They are those of
semantic conventions 1.41, the last release before they moved to a repository of their own, and
the one that tracing backends know. Nothing else in retinue writes such a name. What the
conventions have no word for stands under `retinue.`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from retinue.chains import (
    ChatRequest,
    ChatResponse,
    RoundRequest,
    Spent,
    ToolRequest,
    TurnRequest,
)
from retinue.errors import http_status
from retinue.messages import Usage
from retinue.models.resolve import BRIDGE, named
from retinue.tools.results import clean

Attributes = dict[str, Any]
"""Names and values: text, whole numbers, fractions, truth values, or a sequence of one kind.

Text is valid Unicode: an exporter would drop whatever it stands beside otherwise."""

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"

OPERATION: Final = "gen_ai.operation.name"
AGENT: Final = "gen_ai.agent.name"
PROVIDER: Final = "gen_ai.provider.name"
MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
CONVERSATION: Final = "gen_ai.conversation.id"
TOOL: Final = "gen_ai.tool.name"
TOKEN_TYPE: Final = "gen_ai.token.type"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
ERROR: Final = "error.type"
HTTP_STATUS: Final = "http.response.status_code"

INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"

STATUS: Final = "retinue.status"
REASON: Final = "retinue.reason"
BLOCKED_BY: Final = "retinue.blocked_by"
FAILURE: Final = "retinue.failure"
RETRY: Final = "retinue.model_retry"
WAIT: Final = "retinue.wait"

OTHER: Final = "_OTHER"
"""The kind of an error that is not known."""

TOKENS: Final = ("gen_ai.client.token.usage", "{token}", "Tokens of model calls.")
DURATION: Final = ("gen_ai.client.operation.duration", "s", "How long operations took.")
TO_FIRST_CHUNK: Final = (
    "gen_ai.client.operation.time_to_first_chunk",
    "s",
    "From the request to the first chunk of a stream.",
)
"""Name, unit and description of each metric; all are histograms."""

TOKEN_BOUNDS: Final = tuple(float(4**n) for n in range(14))
DURATION_BOUNDS: Final = tuple(round(0.01 * 2**n, 2) for n in range(14))
FIRST_CHUNK_BOUNDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
"""The bounds that the conventions recommend. For the first chunk they name none; these are those
of the metric that servers report for it."""

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable by which an operator asks for content on spans."""

CAPTURES: Final = frozenset({"true", "1", "span_only", "span_and_event"})
"""What it says to get it; "event_only" gives none, for there are no such events here."""

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "gemini-openai": "gcp.gemini",
    "google": "gcp.gemini",
    "google-cloud": "gcp.vertex_ai",
    "google-vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise; all others keep their name."""


def provider_name(provider: str) -> str:
    """What the conventions call a provider of ours."""
    provider = provider.removesuffix("-responses")
    return _PROVIDERS.get(provider, provider)


def asked(request: ChatRequest | TurnRequest) -> tuple[str, str]:
    """The provider, in our word, and the model that a request goes to, as far as is known."""
    model: Any = getattr(request, "model", None)
    model = request.own_model if model is None else model
    if isinstance(model, str):
        provider, name = named(model)
        if provider == BRIDGE:
            provider, _, name = name.partition(":")
        return provider, name or provider
    return str(getattr(model, "provider", OTHER)), str(getattr(model, "name", OTHER))


def of_turn(request: TurnRequest) -> tuple[Attributes, Attributes]:
    """The attributes of a turn's span when it begins, and those of its duration."""
    provider, model = asked(request)
    measured: Attributes = {
        OPERATION: "invoke_agent",
        AGENT: request.agent,
        PROVIDER: provider_name(provider),
        MODEL: model,
    }
    told = {**measured, "retinue.turn.id": request.turn_id}
    if request.conversation is not None:
        told[CONVERSATION] = clean(request.conversation)
    if request.reentry:
        told["retinue.reentry"] = request.reentry
    if request.resumed:
        told["retinue.resumed"] = True
    return told, measured


def of_round(request: RoundRequest) -> Attributes:
    """The attributes of a round's span."""
    return {"retinue.round": request.round}


def of_chat(request: ChatRequest, provider: str, model: str) -> tuple[Attributes, Attributes]:
    """The attributes of a model call's span when it begins, and those of its metrics."""
    measured: Attributes = {
        OPERATION: "chat",
        PROVIDER: provider_name(provider),
        MODEL: model,
    }
    told, settings = measured.copy(), request.settings
    if request.conversation is not None:
        told[CONVERSATION] = clean(request.conversation)
    said = {
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.max_tokens": settings.max_tokens,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.request.stop_sequences": tuple(settings.stop) or None,
        "gen_ai.request.stream": request.stream or None,
        "gen_ai.output.type": None if request.output is None else "json",
    }
    told.update((name, value) for name, value in said.items() if value is not None)
    return told, measured


def of_tool(request: ToolRequest) -> tuple[str, Attributes, Attributes]:
    """The name of a tool run's span, its attributes when it begins, and those of its duration.

    A name that no tool has is the model's invention. It stands in an attribute of the span only:
    in metrics every new one would be a new series.
    """
    measured: Attributes = {OPERATION: "execute_tool"}
    told: Attributes = {
        OPERATION: "execute_tool",
        TOOL: clean(request.call.name),
        "gen_ai.tool.call.id": clean(request.call.id),
        "gen_ai.tool.type": "function",
    }
    if request.attempt > 1:
        told["retinue.attempt"] = request.attempt
    if request.tool is None:
        return "execute_tool", told, measured
    measured[TOOL] = request.tool.name
    return f"execute_tool {request.tool.name}", told, measured


def of_usage(usage: Usage) -> Attributes:
    """Tokens; what is unknown is left out."""
    counted = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    return {name: count for name, count in counted.items() if count is not None}


def of_answer(response: ChatResponse) -> Attributes:
    """What an answer says of itself: why it ended, its id, and the model that wrote it."""
    told: Attributes = {}
    if response.message.finish is not None:
        told["gen_ai.response.finish_reasons"] = (response.message.finish,)
    model = response.meta.get("model", response.message.model)
    if isinstance(model, str):
        told[RESPONSE_MODEL] = model
    if isinstance(response.meta.get("id"), str):
        told["gen_ai.response.id"] = response.meta["id"]
    return told


def error_type(error: BaseException) -> str:
    """The name of an error's class, with its module unless it is Python's own."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def http_status_of(error: BaseException) -> Attributes:
    """The HTTP status behind an error, where there is one."""
    status = http_status(error)
    return {} if status is None else {HTTP_STATUS: status}


def total(spent: Iterable[Spent]) -> Usage:
    """The tokens of several model calls."""
    return sum((one.usage for one in spent), Usage())


def counts(usage: Usage) -> Iterator[tuple[str, int]]:
    """Tokens by what the token metric calls their type; what is unknown is left out."""
    for kind, count in (("input", usage.input), ("output", usage.output)):
        if count is not None:
            yield kind, count
