"""Tools for a model that has none of its own: they are described in the prompt.

`PromptedTools(model)` is a model round a model. It asks the inner one for JSON, held to a schema,
and turns that into a call: first the name of a tool, or "answer", then the arguments of that tool.
What needs no asking is not asked. One round makes one call at most.

The inner model sees no tools, calls or results. Those of the history are put into words, so that
any chat model can read them. It is no parser of calls that a model writes into its text.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from retinue.chains.output import Output
from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError, ModelBroken
from retinue.messages import (
    Accumulator,
    Delta,
    FinishDelta,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
    UsageDelta,
    new_id,
)
from retinue.models.base import Model, Send
from retinue.models.capabilities import Capabilities, Limits, declared_by
from retinue.tools import ToolSpec

ANSWER: Final = "answer"
"""What a model picks to call no tool."""

CHOICE_TOKENS: Final = 256
"""Enough for any tool's name. An endpoint that ignores the schema is stopped here, unless its model
thinks first, or the settings give the answer more."""

_WAY_OUT: Final = "Use a model that keeps to a schema, or one that has tools of its own."


def with_prompted_tools(takes: Capabilities) -> Capabilities:
    """What a model of these capabilities takes where its tools go by way of the prompt."""
    return structs.replace(takes, tools=True, parallel_tools=False, forced_tools=True)


class PromptedTools:
    """Gives a model tools by asking it for JSON.

    The JSON calls are made without a stream, at temperature 0 unless the settings say otherwise or
    the model takes none.
    Reasoning that comes with them is dropped. Their usage adds up in the usage of the round. A
    call that repeats one that has succeeded since the user's last message, with the same
    arguments, is not made again: the model answers from what it has.

    Args:
        model: the model to ask.
        brief: name the fields of a tool only, and leave its JSON Schema out of the prompt. Very
            small models read a text better so; the schema still binds what they write.

    Raises:
        ConfigError: what is given is no model object.
    """

    def __init__(self, model: Model, *, brief: bool = False) -> None:
        if isinstance(model, type) or not hasattr(model, "generate"):
            raise ConfigError(
                f"PromptedTools({model!r}) cannot be used; give a model object, such as"
                " PromptedTools(OpenAI(...))."
            )
        self._model = model
        self._brief = brief
        self._capabilities = with_prompted_tools(declared_by(model))
        self._limits = Limits(f"PromptedTools({model.name})", self._capabilities)

    def __repr__(self) -> str:
        return f"PromptedTools({self._model!r})"

    @property
    def name(self) -> str:
        """The name of the inner model."""
        return self._model.name

    @property
    def provider(self) -> str:
        """Whose the inner model is."""
        return self._model.provider

    @property
    def capabilities(self) -> Capabilities:
        """What the inner model takes, and tools, one call at a time."""
        return self._capabilities

    async def close(self) -> None:
        """Closes the inner model."""
        await self._model.close()

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers in text, or with one call (see `Model.generate`).

        Raises:
            ConfigError: `tool_choice` names a tool that is not on offer, or the settings ask for
                what the inner model is declared not to take.
            ModelBroken: the model was asked for JSON and wrote something else.
            ModelError: an inner call failed.
        """
        self._limits.check(request)
        specs = {tool.spec.name: tool.spec for tool in request.tools}
        choice = request.settings.tool_choice or "auto"
        inner = _Inner(self._model, send)
        if specs and choice != "none":
            name = await self._choose(inner, request, specs, choice)
            if name is not None:
                arguments = await self._fill(inner, request, specs[name])
                if choice != "auto" or not _repeats(request.messages, name, arguments):
                    await send(ToolCallDelta(0, f"call_{new_id()}", name, arguments))
                    await send(FinishDelta("tool_calls"))
                    return inner.meta
        await inner.answer(_without_tools(request, _in_words(request.messages)))
        return inner.meta

    async def _choose(
        self, inner: "_Inner", request: ChatRequest, specs: Mapping[str, ToolSpec], choice: str
    ) -> str | None:
        """The name of the tool to call, or None for an answer in words."""
        if choice not in ("auto", "required"):
            if choice in specs:
                return choice
            raise ConfigError(
                f"tool_choice names {choice!r}, which is not on offer; the tools are"
                f" {', '.join(specs)}."
            )
        if choice == "required" and len(specs) == 1:
            return next(iter(specs))
        answer = _unused(ANSWER, specs)
        options = {name: spec.description for name, spec in specs.items()}
        if choice == "auto":
            options = {answer: "Answer the user in words.", **options}
        listed = "\n".join(f"- {name}: {text}" for name, text in options.items())
        schema = {
            "type": "object",
            "properties": {"action": {"type": "string", "enum": list(options)}},
            "required": ["action"],
            "additionalProperties": False,
        }
        asked = _for_json(
            request,
            _in_words(request.messages),
            f'You choose what to do next, as JSON {{"action": ...}}:\n{listed}',
            Output(schema, "choice"),
        )
        settings = structs.replace(asked.settings, max_tokens=self._most(asked.settings.max_tokens))
        found = await inner.json(asked.with_(settings=settings), "the next action")
        picked = found.get("action")
        if not isinstance(picked, str) or picked not in options:
            raise ModelBroken(
                f"The model {self.name} was asked to pick one of {', '.join(options)} and picked"
                f" {picked!r}. {_WAY_OUT}"
            )
        return None if picked == answer and choice == "auto" else picked

    def _most(self, given: int | None) -> int | None:
        """How many tokens a choice may take: thoughts count, and come before it."""
        if given is None and self._capabilities.thinking:
            return None
        return max(CHOICE_TOKENS, given or 0)

    async def _fill(self, inner: "_Inner", request: ChatRequest, spec: ToolSpec) -> str:
        """The arguments of a call, as JSON text."""
        schema = spec.parameters
        fields: Mapping[str, Any] = schema.get("properties") or {}
        if not fields and not schema.get("additionalProperties"):
            return "{}"
        about = "" if self._brief else _describe(spec)
        before, question = _question(request.messages)
        named = f"the fields {', '.join(fields)}" if fields else f"the arguments of {spec.name}"
        asked = Text(f"Write JSON with {named} taken from this text:\n\n")
        messages = (*before, Message("user", (asked, *question)))
        output = Output(schema, spec.name)
        found = await inner.json(
            _for_json(request, messages, about, output), f"the arguments of {spec.name}"
        )
        return msgspec.json.encode(found).decode()


class _Inner:
    """The calls of the inner model that one round makes; what they use is reported at once."""

    __slots__ = ("_model", "_send", "meta")

    def __init__(self, model: Model, send: Send) -> None:
        self._model = model
        self._send = send
        self.meta: Mapping[str, Any] | None = None

    async def json(self, request: ChatRequest, wanted: str) -> dict[str, Any]:
        """Asks for a JSON object; nothing of it but the usage reaches the reader."""
        settings = request.settings
        if settings.temperature is None and declared_by(self._model).sampling is not False:
            request = request.with_(settings=structs.replace(settings, temperature=0.0))
        said = Accumulator()

        async def collect(delta: Delta) -> None:
            if type(delta) is UsageDelta:
                await self._report(said, delta)
            else:
                said.add(delta)

        self.meta = await self._model.generate(request, collect)
        return _read(said, wanted, self._model.name)

    async def answer(self, request: ChatRequest) -> None:
        """Asks for the answer, and passes it on as it comes."""
        used = Accumulator()

        async def forward(delta: Delta) -> None:
            if type(delta) is UsageDelta:
                await self._report(used, delta)
            else:
                await self._send(delta)

        self.meta = await self._model.generate(request, forward)

    async def _report(self, call: Accumulator, delta: UsageDelta) -> None:
        # Reports of one inner call may be cumulative; to add them to those of the others, what
        # each adds is passed on. So nothing is lost when the round is cut off.
        before = call.usage or Usage()
        call.add(delta)
        await self._send(UsageDelta(_grown(before, call.usage or Usage()), additive=True))


def _grown(before: Usage, now: Usage) -> Usage:
    counts = {
        name: count - (getattr(before, name) or 0)
        for name, count in structs.asdict(now).items()
        if count is not None
    }
    return Usage(**counts)


def _read(said: Accumulator, wanted: str, model: str) -> dict[str, Any]:
    """The JSON object in an answer. Reasoning, fences and words round it do no harm."""
    text = said.text
    body = text.rpartition("</think>")[2]
    body = body[body.find("{") : body.rfind("}") + 1]
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        why = "it was cut off: raise max_tokens" if said.finish == "length" else str(error)
        raise ModelBroken(
            f"The model {model} was asked for {wanted} as JSON and wrote {text[:80]!r} ({why})."
            f" {_WAY_OUT}"
        ) from error


def _for_json(
    request: ChatRequest, messages: Sequence[Message], instruction: str, output: Output
) -> ChatRequest:
    """The request that asks for JSON on the side."""
    settings = request.settings
    return _without_tools(request, messages).with_(
        instructions=(*request.instructions, instruction) if instruction else request.instructions,
        settings=structs.replace(
            settings,
            tool_choice=None,
            parallel_tool_calls=None,
            stop=(),  # a stop sequence is meant for text, and would cut the JSON
        ),
        output=output,
        stream=False,
    )


def _without_tools(request: ChatRequest, messages: Sequence[Message]) -> ChatRequest:
    settings = request.settings
    if settings.tool_choice is not None or settings.parallel_tool_calls is not None:
        settings = structs.replace(settings, tool_choice=None, parallel_tool_calls=None)
    return request.with_(messages=tuple(messages), tools=(), settings=settings)


def _describe(spec: ToolSpec) -> str:
    schema = msgspec.json.encode(spec.parameters).decode()
    return f"{spec.name}: {spec.description}\nIts arguments follow this JSON Schema: {schema}"


def _unused(word: str, taken: Mapping[str, Any]) -> str:
    while word in taken:
        word = f"{word}_"
    return word


# -- the history in words -----------------------------------------------------------------------


def _in_words(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with calls and results as text.

    Results speak as the user. Some chat templates refuse two messages of one role in a row, so
    they are joined with what the user says next.
    """
    if not any(m.role == "tool" or m.tool_calls for m in messages):
        return tuple(messages)
    told: list[Message] = []
    after_result = False
    for message in messages:
        worded = _worded(message)
        if after_result and worded.role == "user":
            before = told[-1]
            told[-1] = before.with_(parts=(*before.parts, Text("\n\n"), *worded.parts))
        else:
            told.append(worded)
        after_result = message.role == "tool"
    return tuple(told)


def _worded(message: Message) -> Message:
    if message.role == "tool":
        return Message("user", _result_parts(message.tool_results), id=message.id)
    if not message.tool_calls:
        return message
    said = [part for part in message.parts if type(part) is not ToolCall]
    if message.text:
        said.append(Text("\n"))
    return message.with_(parts=(*said, Text("\n".join(map(_call_text, message.tool_calls)))))


def _call_text(call: ToolCall) -> str:
    return f"I call {call.name} with {call.arguments}."


def _result_parts(results: Sequence[ToolResult]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for result in results:
        if parts:
            parts.append(Text("\n"))
        parts += (Text(f"{result.name} {'says' if result.ok else 'failed'}: "), *result.parts)
    return tuple(parts)


def _question(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Part, ...]]:
    """The history before the user's last message, and all since then as one text."""
    at = _last_user(messages)
    parts: list[Part] = []
    for message in messages[at:]:
        if parts:
            parts.append(Text("\n\n"))
        parts += (part for part in _worded(message).parts if type(part) is not Thinking)
    return _in_words(messages[:at]), tuple(parts)


def _last_user(messages: Sequence[Message]) -> int:
    return max((at for at, m in enumerate(messages) if m.role == "user"), default=0)


def _repeats(messages: Sequence[Message], name: str, arguments: str) -> bool:
    """Whether this very call has succeeded since the user's last message."""
    since = messages[_last_user(messages) :]
    done = {result.call_id for m in since for result in m.tool_results if result.ok}
    return any(
        call.id in done and call.name == name and _same(call.arguments, arguments)
        for message in since
        for call in message.tool_calls
    )


def _same(one: str, other: str) -> bool:
    try:
        return msgspec.json.decode(one) == msgspec.json.decode(other)
    except msgspec.DecodeError:
        return False
