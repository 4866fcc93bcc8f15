"""Requests of the Messages format: a `ChatRequest` in, JSON bytes out. No I/O.

What changes least stands first: fields, tools, instructions, then the conversation, so that the
vendor's cache finds the start of the prompt again. Tools and messages are encoded once and their
bytes joined. Fields that nobody set are not sent, but for `max_tokens`, which must be there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.models.anthropic.abilities import Abilities
from retinue.models.anthropic.cache import Cache, is_marked, place_marks
from retinue.models.anthropic.fields import Wishes
from retinue.models.anthropic.messages import PAUSED, MessageEncoder
from retinue.models.anthropic.schemas import native_form
from retinue.models.anthropic.turns import Turn, conversation
from retinue.models.capabilities import Limits
from retinue.models.loose import an_object
from retinue.models.outgoing import EncodedTools, form_in_words, to_json
from retinue.tools.tool import ToolSpec

UNSTREAMED: Final = 21_333
"""Tokens. A longer answer is asked for as a stream, also where nobody reads along: it may take more
than ten minutes, and connections that are silent for so long break."""

_PROPERTY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_COMBINED: Final = ("oneOf", "allOf", "anyOf")
_GONE: Final = "A tool of earlier in the conversation. It is no longer on offer."


class Body(Struct, frozen=True):
    """A request to send, and whether it asks for a stream."""

    content: bytes
    stream: bool


class RequestEncoder:
    """Encodes requests to one model.

    Args:
        model: its name.
        abilities: what it takes.
        version: the version of the API that is spoken.
        cache: what is marked for the vendor's cache.
    """

    __slots__ = (
        "_abilities",
        "_cache",
        "_limits",
        "_messages",
        "_model",
        "_name",
        "_tools",
        "_wishes",
    )

    def __init__(self, model: str, abilities: Abilities, version: str, cache: Cache) -> None:
        self._name = model
        self._model = to_json(model)
        self._abilities = abilities
        self._limits = Limits(model, abilities)
        self._messages = MessageEncoder(self._limits)
        self._cache: Cache = cache
        self._wishes = Wishes(model, abilities, version)
        self._tools = EncodedTools(_as_tool)

    def encode(self, request: ChatRequest) -> Body:
        """The body to send.

        Raises:
            ConfigError: the request asks for something that the model does not take.
        """
        self._limits.check(request)
        said = conversation(request.messages, self._messages)
        self._check_ending(request.messages, said.turns)
        fields = self._wishes.fields(request.settings, request.tools, said.turns)
        tools = self._tools.of(request.tools)
        tools += [to_json(tool) for tool in fields.pop("tools", ())]
        if not tools and (gone := said.tools()):
            tools = [_stand_in(name) for name in gone]
            fields["tool_choice"] = {"type": "none"}
        words = [text for text in request.instructions if text.strip()] + said.system
        if request.output is not None:
            form = (
                native_form(request.output.schema) if self._abilities.schema is not False else None
            )
            if form is None:
                words.append(form_in_words(request.output))
            else:
                fields["output_config"] = {
                    **fields.get("output_config", {}),
                    "format": {"type": "json_schema", "schema": form},
                }
        system = [to_json({"type": "text", "text": text}) for text in words]
        place_marks(self._cache, tools, system, said.turns, _marks_of_the_user(fields, tools))
        stream = request.stream or fields["max_tokens"] > UNSTREAMED
        if stream:
            fields["stream"] = True
        return Body(self._joined(fields, tools, system, said.turns), stream)

    def _joined(
        self,
        fields: Mapping[str, Any],
        tools: Sequence[bytes],
        system: Sequence[bytes],
        turns: Sequence[Turn],
    ) -> bytes:
        pieces = [b'{"model":', self._model, b",", to_json(fields)[1:-1]]
        if tools:
            pieces += [b',"tools":[', b",".join(tools), b"]"]
        if system:
            pieces += [b',"system":[', b",".join(system), b"]"]
        pieces.append(b',"messages":[')
        for turn in turns:
            pieces += turn.written()
            pieces.append(b",")
        pieces[-1] = b"]}"
        return b"".join(pieces)

    def _check_ending(self, messages: Sequence[Message], turns: list[Turn]) -> None:
        if not turns:
            raise ConfigError(
                "The request has no message with anything in it; give it a text, an image, a file"
                " or a tool's result."
            )
        if turns[-1].role == "user":
            return
        if not self._abilities.prefill and messages[-1].finish != PAUSED:
            raise ConfigError(
                f"{self._name} does not go on from the beginning of an answer; the last message"
                " must be the user's or a tool's result."
            )
        blocks = turns[-1].change()
        last = msgspec.json.decode(blocks[-1])
        if last["type"] == "text":  # the vendor refuses white space at the end of it
            blocks[-1] = to_json({**last, "text": last["text"].rstrip()})


def _as_tool(spec: ToolSpec) -> bytes:
    schema: dict[str, Any] = {"type": "object", "properties": {}, **spec.parameters}
    for name in _COMBINED:
        if name in schema:
            raise ConfigError(
                f"The tool {spec.name!r} has {name!r} at the top of its parameters, which Anthropic"
                " does not take; put it into a property."
            )
    for name in an_object(schema["properties"]):
        if not _PROPERTY.fullmatch(name):
            raise ConfigError(
                f"The tool {spec.name!r} has a parameter {name!r}; Anthropic takes names of up to"
                " 64 letters, digits, '_', '.' and '-'."
            )
    described = {"description": spec.description} if spec.description else {}
    return to_json({"name": spec.name, **described, "input_schema": schema})


def _stand_in(name: str) -> bytes:
    """A tool that was called and is gone: where calls are, the vendor wants tools."""
    return to_json(
        {"name": name, "description": _GONE, "input_schema": {"type": "object", "properties": {}}}
    )


def _marks_of_the_user(fields: Mapping[str, Any], tools: Sequence[bytes]) -> int:
    """Cache marks that came with `Settings.extra`."""
    return bool(fields.get("cache_control")) + sum(map(is_marked, tools))
