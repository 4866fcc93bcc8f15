"""Requests of the Chat Completions format: a `ChatRequest` in, JSON bytes out. No I/O.

Instructions come first, then the messages; tools and messages are encoded once and their bytes
joined. Fields that nobody set are not sent.
"""

from collections.abc import Sequence
from typing import Any, Final

from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.messages import Message
from retinue.models.capabilities import Capabilities, Limits
from retinue.models.gateways import Gateway
from retinue.models.openai.messages import MessageEncoder
from retinue.models.openai.schemas import in_words, response_format
from retinue.models.outgoing import EncodedTools, check_choice, check_extra, to_json
from retinue.tools import Tool
from retinue.tools.tool import ToolSpec

_OWN: Final = ("messages", "model", "stream")  # what `Settings.extra` must not set
_CHOICES: Final = ("auto", "none", "required")
_LONG: Final = 16  # messages; to join fewer costs less than to keep what was joined
_NOTHING_SENT: Final[tuple[tuple[Message, ...], bytes]] = ((), b"")


class RequestEncoder:
    """Encodes requests to one model at one gateway.

    Args:
        model: the model's name.
        gateway: the row.
        takes: what the model takes there.
    """

    __slots__ = ("_gateway", "_limits", "_messages", "_model", "_takes", "_tools")

    def __init__(self, model: str, gateway: Gateway, takes: Capabilities) -> None:
        self._model = to_json(model)
        self._gateway = gateway
        self._takes = takes
        self._limits = Limits(f"{gateway.name}:{model}", takes)
        self._messages = MessageEncoder(gateway, self._limits)
        self._tools = EncodedTools(_as_tool)

    def encode(self, request: ChatRequest) -> bytes:
        """The body to send.

        Raises:
            ConfigError: the request asks for something that the model does not take.
        """
        self._limits.check(request)
        fields = self._fields(request)
        further_tools = fields.pop("tools", ())
        body = [b'{"model":', self._model, b',"messages":[', self._all_messages(request)]
        tools = self._tools.of(request.tools)
        tools += [to_json(tool) for tool in further_tools]
        if tools:
            body += [b'],"tools":[', b",".join(tools)]
        body.append(b"]")
        if fields:
            body += [b",", to_json(fields)[1:-1]]
        body.append(b"}")
        return b"".join(body)

    def _all_messages(self, request: ChatRequest) -> bytes:
        instructions = [text for text in request.instructions if text]
        if request.output is not None:
            instructions += in_words(request.output, self._takes)
        said = self._said(request)
        if not instructions:
            return said
        system = to_json({"role": "system", "content": "\n\n".join(instructions)})
        return b"%b,%b" % (system, said) if said else system

    def _said(self, request: ChatRequest) -> bytes:
        """The messages. Of a long history, what the turn's last call has joined is not joined anew:
        to look at each message in each round is what would make a round of many rounds dear."""
        messages, key = request.messages, self._messages.key
        if len(messages) < _LONG:
            return b",".join(self._messages.encode(messages))
        scratch = request.local(self)
        sent, joined = scratch.get(key, _NOTHING_SENT)
        if messages[: len(sent)] != sent:
            sent, joined = _NOTHING_SENT
        new = messages[len(sent) :]
        pieces = self._messages.encode(new)
        said = b",".join([joined, *pieces] if joined else pieces)
        if len(pieces) == len(new):  # else the place of what is attached depends on what follows
            scratch[key] = (messages, said)
        return said

    # -- the other fields -----------------------------------------------------------------------

    def _fields(self, request: ChatRequest) -> dict[str, Any]:
        settings, gateway = request.settings, self._gateway
        fields: dict[str, Any] = dict(gateway.extra)
        if request.stream:
            fields["stream"] = True
            if gateway.counts_streams:
                fields["stream_options"] = {"include_usage": True}
        for name, value in (
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
            (gateway.max_tokens, settings.max_tokens),
            (gateway.seed, settings.seed),
            ("stop", list(settings.stop) or None),
        ):
            if value is not None:
                fields[name] = value
        if settings.effort is not None:
            fields |= self._effort(settings.effort)
        if request.tools:
            fields |= _choice(settings, request.tools)
            if settings.parallel_tool_calls is not None and self._takes.parallel_tools is not False:
                fields["parallel_tool_calls"] = settings.parallel_tool_calls
        if request.output is not None:
            form = response_format(request.output, self._takes)
            if form is not None:
                fields["response_format"] = form
        if settings.extra:
            check_extra(settings.extra, _OWN)
            fields.update(settings.extra)
        return fields

    def _effort(self, effort: str) -> dict[str, Any]:
        if self._gateway.effort == "reasoning":
            return {"reasoning": {"effort": effort}}
        return {"reasoning_effort": effort}


def _choice(settings: Settings, tools: Sequence[Tool]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    choice = settings.tool_choice
    if choice in _CHOICES:
        fields["tool_choice"] = choice
    elif choice is not None:
        check_choice(choice, tools)
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    return fields


def _as_tool(spec: ToolSpec) -> bytes:
    parameters: dict[str, Any] = {"type": "object", "properties": {}, **spec.parameters}
    function = {"name": spec.name, "description": spec.description, "parameters": parameters}
    return to_json({"type": "function", "function": function})
