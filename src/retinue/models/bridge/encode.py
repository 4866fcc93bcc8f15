"""Requests for the bridge: a `ChatRequest` in, what pydantic-ai is called with out. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, cast, get_args

from msgspec import Struct

from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import Content, File, Image, Message, Text, Thinking, ToolCall, ToolResult
from retinue.models.bridge.kept import calls_kept, thought_kept
from retinue.models.capabilities import Capabilities, Limits, medium_of
from retinue.models.endpoint import check_headers
from retinue.models.openai.schemas import is_object, strict_form
from retinue.models.outgoing import check_choice, check_extra, form_in_words, left_out, tool_name
from retinue.models.transport import SILENCE
from retinue.tools.tool import ToolSpec

if TYPE_CHECKING:
    from pydantic_ai import messages as theirs
    from pydantic_ai.models import Model as Theirs
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

_OURS: Final = {"stop_sequences": "stop", "extra_headers": "headers", "extra_body": "extra"}
"""Settings that pydantic-ai knows by another name."""

_OWN: Final = ("messages", "model", "stream")  # what `Settings.extra` must not set


class Call(Struct, frozen=True):
    """What a model of pydantic-ai is asked with.

    Attributes:
        timeout: seconds without a byte, as in `settings`.
        media: the images and files in it, as errors name them.
    """

    messages: "list[theirs.ModelMessage]"
    settings: "ModelSettings"
    parameters: "ModelRequestParameters"
    timeout: float
    media: Sequence[str]


class Abilities(Struct, frozen=True):
    """What pydantic-ai says that it can do at one model.

    Attributes:
        thinks: whether it has a field for effort.
        holds_to_schema: whether it can hold the model to a schema.
        leaves_out: the settings that it drops without an error, by its names for them.
    """

    thinks: bool = False
    holds_to_schema: bool = False
    leaves_out: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: "Theirs") -> Self:
        """Those of a model of pydantic-ai."""
        profile: Mapping[str, Any] = model.profile
        return cls(
            profile.get("supports_thinking", False),
            profile.get("supports_json_schema_output", False),
            model.unsupported_settings.union(profile.get("openai_unsupported_model_settings", ())),
        )


class RequestEncoder:
    """Encodes requests to one model.

    Args:
        provider: whose thoughts go back, and whom errors name.
        model: the model's name.
        takes: what the model is declared to take.
        timeout: seconds without a byte, where the request does not say.
    """

    __slots__ = ("_limits", "_name", "_provider", "_takes", "_timeout")

    def __init__(
        self, provider: str, model: str, takes: Capabilities, timeout: float | None
    ) -> None:
        self._provider = provider
        self._name = f"{provider}:{model}"
        self._takes = takes
        self._limits = Limits(self._name, takes)
        self._timeout = SILENCE if timeout is None else timeout

    def encode(self, request: ChatRequest, able: Abilities) -> Call:
        """What to call the model with.

        Raises:
            ConfigError: the request asks for something that does not get through.
        """
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        self._limits.check(request)
        instructions = [text for text in request.instructions if text]
        parameters = ModelRequestParameters(
            function_tools=[_definition(tool.spec) for tool in request.tools]
        )
        output = request.output
        if output is not None:
            native = able.holds_to_schema and self._takes.schema is not False
            if native and is_object(output.schema):
                strict = strict_form(output.schema)
                parameters.output_mode = "native"
                parameters.output_object = OutputObjectDefinition(
                    dict(output.schema) if strict is None else strict,
                    name=output.name,
                    strict=strict is not None,
                )
            else:
                instructions.append(form_in_words(output))
        if instructions:
            parameters.instruction_parts = [InstructionPart(text) for text in instructions]
        timeout = self._timeout if request.settings.timeout is None else request.settings.timeout
        settings = self._settings(request, timeout, able)
        self._check_sent(request.settings, settings, able.leaves_out)
        messages = self._messages(request.messages)
        return Call(messages, settings, parameters, timeout, _media_in(request.messages))

    def _settings(self, request: ChatRequest, timeout: float, able: Abilities) -> "ModelSettings":
        from pydantic_ai.settings import ModelSettings

        asked = request.settings
        settings = ModelSettings(timeout=timeout, max_retries=0)  # whoever calls us tries again
        for name in ("temperature", "top_p", "max_tokens", "seed"):
            value = getattr(asked, name)
            if value is not None:
                settings[name] = value
        if asked.stop:
            settings["stop_sequences"] = list(asked.stop)
        if asked.effort is not None:
            settings["thinking"] = self._effort(asked.effort, thinks=able.thinks)
        if request.tools:
            self._choose(settings, request)
        if asked.headers:
            check_headers(asked.headers)
            settings["extra_headers"] = dict(asked.headers)
        if asked.extra:
            check_extra(asked.extra, _OWN)
            settings["extra_body"] = dict(asked.extra)
        return settings

    def _check_sent(
        self, asked: Settings, settings: "ModelSettings", leaves_out: frozenset[str]
    ) -> None:
        """Takes out what pydantic-ai would leave out, and refuses it where somebody asked for it.

        Several calls at once are what a model makes anyway: to leave `True` out changes nothing.
        """
        for name in leaves_out.intersection(settings):
            ours = _OURS.get(name, name)
            if getattr(asked, ours, None) not in (None, True):
                raise ConfigError(
                    f"pydantic-ai leaves {ours} out at {self._name}; leave it out too, or use"
                    " another model."
                )
            cast("dict[str, object]", settings).pop(name)

    def _effort(self, effort: str, *, thinks: bool) -> Any:
        from pydantic_ai.settings import ThinkingEffort

        known: Sequence[str] = get_args(ThinkingEffort)
        if effort not in known:
            raise ConfigError(
                f"The bridge knows no effort {effort!r}; it knows {', '.join(known)}."
            )
        if not thinks:  # it would be left out without a word
            raise ConfigError(
                f"The bridge has no field for effort={effort!r} at {self._name}; say it in the"
                " provider's own words with Settings(extra={...}), or leave it out."
            )
        return effort

    def _choose(self, settings: "ModelSettings", request: ChatRequest) -> None:
        asked: Settings = request.settings
        choice = asked.tool_choice
        if choice == "auto" or choice == "none" or choice == "required":
            settings["tool_choice"] = choice
        elif choice is not None:
            check_choice(choice, request.tools)
            settings["tool_choice"] = [choice]
        if asked.parallel_tool_calls is not None and self._takes.parallel_tools is not False:
            settings["parallel_tool_calls"] = asked.parallel_tool_calls

    # -- messages -------------------------------------------------------------------------------

    def _messages(self, messages: Iterable[Message]) -> "list[theirs.ModelMessage]":
        from pydantic_ai.messages import ModelRequest

        encoded: list[theirs.ModelMessage] = []
        asked: list[theirs.ModelRequestPart] = []
        for message in messages:
            if message.role == "assistant":
                if asked:
                    encoded.append(ModelRequest(asked))
                    asked = []
                encoded.append(self._answer(message))
            else:  # as one message, for vendors that want turns to alternate
                asked += self._asked(message)
        if asked:
            encoded.append(ModelRequest(asked))
        return encoded

    def _asked(self, message: Message) -> "list[theirs.ModelRequestPart]":
        from pydantic_ai.messages import SystemPromptPart, UserPromptPart

        if message.role == "tool":
            if len(message.tool_results) != len(message.parts):
                raise ConfigError("A message of the role 'tool' holds tool results and no more.")
            return [self._result(result) for result in message.tool_results]
        if message.role == "system":
            return [SystemPromptPart(message.text)]
        content = [self._content(part) for part in message.parts]
        if len(content) == 1 and isinstance(content[0], str):
            return [UserPromptPart(content[0])]
        return [UserPromptPart(content)]

    def _content(self, part: object) -> "theirs.UserContent":
        if isinstance(part, Text):
            return part.text
        if isinstance(part, Image | File):
            self._limits.check_part(part)
            return _medium(part)
        raise ConfigError(f"A message of the user cannot hold a part {type(part).__name__}.")

    def _result(self, result: ToolResult) -> "theirs.ToolReturnPart":
        from pydantic_ai.messages import ToolReturnPart

        said: list[Any] = []
        for part in result.parts:
            try:
                said.append(self._content(part))
            except ConfigError as why:
                left_out(part, result.name, why)
                said.append(f"[{_kind(part)}: this model cannot take it]")
        if all(isinstance(one, str) for one in said):
            said = ["".join(said)]
        return ToolReturnPart(
            tool_name(result.name),
            said[0] if len(said) == 1 else said,
            result.call_id,
            outcome="success" if result.ok else "failed",
        )

    def _answer(self, message: Message) -> "theirs.ModelResponse":
        from pydantic_ai import messages as theirs

        thoughts = [
            part
            for part in message.parts
            if type(part) is Thinking and part.provider == self._provider
        ]
        kept = calls_kept(thought.opaque for thought in thoughts)
        parts: list[theirs.ModelResponsePart] = []
        for part in message.parts:
            if type(part) is Text:
                parts.append(theirs.TextPart(part.text))
            elif type(part) is ToolCall:
                further = kept.get(part.id, {})
                call = theirs.ToolCallPart(tool_name(part.name), part.arguments, part.id, **further)
                parts.append(call)
            elif type(part) is not Thinking:
                raise ConfigError(
                    f"A message of the role 'assistant' cannot hold a part {type(part).__name__}."
                )
            elif part in thoughts and (part.text or part.signature):
                further = thought_kept(part.opaque)
                parts.append(theirs.ThinkingPart(part.text, signature=part.signature, **further))
        return theirs.ModelResponse(parts or [theirs.TextPart("")])


def _definition(spec: ToolSpec) -> "ToolDefinition":
    from pydantic_ai.tools import ToolDefinition

    schema: dict[str, Any] = {"type": "object", "properties": {}, **spec.parameters}
    # Without `strict` it would judge for itself, and change the schema.
    return ToolDefinition(
        name=spec.name,
        parameters_json_schema=schema,
        description=spec.description,
        strict=False,
    )


def _media_in(messages: Iterable[Message]) -> list[str]:
    parts = (part for message in messages for part in message.parts)
    return [f"{type(p).__name__} ({p.media_type})" for p in parts if isinstance(p, Image | File)]


def _kind(part: Content) -> str:
    return type(part).__name__.lower()


def _medium(part: Image | File) -> "theirs.UserContent":
    from pydantic_ai import messages as theirs

    if part.data is not None:
        return theirs.BinaryContent(part.data, media_type=part.media_type)
    if not part.url:
        kind = type(part).__name__
        raise ConfigError(f"This {kind} has neither data nor a URL; give it one.")
    kinds = {
        "images": theirs.ImageUrl,
        "audio": theirs.AudioUrl,
        "video": theirs.VideoUrl,
        "documents": theirs.DocumentUrl,
    }
    return kinds[medium_of(part)](part.url, media_type=part.media_type)
