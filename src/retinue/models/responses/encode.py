"""Requests of the Responses format: a `ChatRequest` in, JSON bytes out. No I/O.

Instructions have a field of their own; then come the items. Tools and messages are encoded once
and their bytes joined. Fields that nobody set are not sent, but for `store`, and for `strict` of
a tool: the provider's own defaults for both would change what was asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from retinue.chains.output import Output
from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.models.capabilities import Capabilities, Limits
from retinue.models.gateways import Gateway
from retinue.models.loose import a_list, an_object
from retinue.models.openai.schemas import in_words, response_format
from retinue.models.outgoing import EncodedTools, check_choice, check_extra, to_json
from retinue.models.responses.messages import MessageEncoder
from retinue.tools import Tool
from retinue.tools.tool import ToolSpec

ENCRYPTED: Final = "reasoning.encrypted_content"

_OWN: Final = ("input", "instructions", "model", "store", "stream")  # what extra must not set
_MERGED: Final = ("reasoning", "text")  # what extra adds to, field by field
_CHOICES: Final = ("auto", "none", "required")


class RequestEncoder:
    """Encodes requests to one model at one gateway.

    Args:
        model: the model's name.
        gateway: the row.
        takes: what the model takes there.
        stored: whether the provider is to store its answers.
        chained: whether later requests go on from the stored answers.
        reasons: whether the model reasons, so that its reasoning can be asked for.
        summary: what summary of the reasoning to ask for, or None.
    """

    __slots__ = (
        "_chained", "_encrypted", "_limits", "_messages", "_model", "_stored", "_summary", "_takes",
        "_tools",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        gateway: Gateway,
        takes: Capabilities,
        *,
        stored: bool = False,
        chained: bool = False,
        reasons: bool = True,
        summary: str | None = None,
    ) -> None:
        self._model = to_json(model)
        self._takes = takes
        self._limits = Limits(f"{gateway.name}-responses:{model}", takes)
        self._stored = stored
        self._chained = chained
        self._encrypted = reasons and not stored
        self._summary = summary
        self._messages = MessageEncoder(gateway, self._limits, stored=stored, chained=chained)
        self._tools = EncodedTools(_as_tool)

    def encode(self, request: ChatRequest) -> bytes:
        """The body to send.

        Raises:
            ConfigError: the request asks for something that the format or the gateway has not.
        """
        self._limits.check(request)
        sent = self._messages.encode(request.messages)
        fields = self._fields(request, sent.previous)
        further_tools = fields.pop("tools", ())
        body = [b'{"model":', self._model]
        instructions = self._instructions(request)
        if instructions:
            body += [b',"instructions":', to_json(instructions)]
        body += [b',"input":[', b",".join(sent.items)]
        tools = self._tools.of(request.tools)
        tools += [to_json(tool) for tool in further_tools]
        if tools:
            body += [b'],"tools":[', b",".join(tools)]
        body += [b"],", to_json(fields)[1:-1], b"}"]
        return b"".join(body)

    def _fields(self, request: ChatRequest, previous: str | None) -> dict[str, Any]:
        settings = request.settings
        fields: dict[str, Any] = {"store": self._stored}
        if request.stream:
            fields["stream"] = True
        for name, value in (
            ("previous_response_id", previous),
            ("include", [ENCRYPTED] if self._encrypted else None),
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
            ("max_output_tokens", settings.max_tokens),
            ("reasoning", self._reasoning(settings.effort)),
            ("text", self._form(request.output)),
        ):
            if value is not None:
                fields[name] = value
        if request.tools:
            fields |= _choice(settings, request.tools)
            if settings.parallel_tool_calls is not None and self._takes.parallel_tools is not False:
                fields["parallel_tool_calls"] = settings.parallel_tool_calls
        if settings.extra:
            own = (*_OWN, "previous_response_id") if self._chained else _OWN
            check_extra(settings.extra, own)
            _add_extra(fields, settings.extra)
        return fields

    def _reasoning(self, effort: str | None) -> dict[str, str] | None:
        asked = {"effort": effort, "summary": self._summary}
        return {name: value for name, value in asked.items() if value is not None} or None

    def _instructions(self, request: ChatRequest) -> str:
        texts = [text for text in request.instructions if text]
        if request.output is not None:
            texts += in_words(request.output, self._takes)
        return "\n\n".join(texts)

    def _form(self, output: Output | None) -> dict[str, Any] | None:
        form = None if output is None else response_format(output, self._takes)
        if form is None:
            return None
        return {"format": {"type": form["type"], **form.get("json_schema", {})}}


def _choice(settings: Settings, tools: Sequence[Tool]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    choice = settings.tool_choice
    if choice in _CHOICES:
        fields["tool_choice"] = choice
    elif choice is not None:
        check_choice(choice, tools)
        fields["tool_choice"] = {"type": "function", "name": choice}
    return fields


def _add_extra(fields: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Adds the user's fields; what both have is merged, so that neither is lost."""
    for name, value in extra.items():
        if name in _MERGED and isinstance(value, Mapping):
            given = cast("Mapping[str, Any]", value)
            fields[name] = {**an_object(fields.get(name)), **given}
        elif name == "include":
            own = a_list(fields.get(name))
            fields[name] = own + [each for each in value if each not in own]
        else:
            fields[name] = value


def _as_tool(spec: ToolSpec) -> bytes:
    return to_json(
        {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": {"type": "object", "properties": {}, **spec.parameters},
            "strict": False,
        }
    )
