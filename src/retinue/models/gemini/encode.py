"""Requests of the Gemini format: a `ChatRequest` in, JSON bytes out. No I/O.

What changes least stands first: instructions, tools, then the contents, in turns of user and model.
Tools and messages are encoded once and their bytes joined. Fields that nobody set are not sent.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.models.capabilities import Limits
from retinue.models.gemini.abilities import Abilities
from retinue.models.gemini.fields import SCHEMA, Wishes
from retinue.models.gemini.messages import PROVIDER, Encoded, MessageEncoder
from retinue.models.gemini.schemas import parameters
from retinue.models.outgoing import EncodedTools, form_in_words, system_text, to_json
from retinue.tools.tool import ToolSpec

_FIRST: Final = re.compile(r"[a-zA-Z_]")
_OPENING: Final = Encoded("user", parts=(to_json({"text": "[The conversation begins here.]"}),))
_START: Final = {"user": b'{"role":"user","parts":[', "model": b'{"role":"model","parts":['}


class RequestEncoder:
    """Encodes requests to one model.

    Args:
        model: its name.
        abilities: what it takes.
        thoughts: whether it is to show a summary of its thoughts.
    """

    __slots__ = ("_limits", "_messages", "_tools", "_wishes")

    def __init__(self, model: str, abilities: Abilities, *, thoughts: bool = False) -> None:
        self._limits = Limits(model, abilities)
        self._messages = MessageEncoder(abilities, self._limits)
        self._tools = EncodedTools(_as_tool)
        self._wishes = Wishes(model, abilities, thoughts=thoughts)

    def encode(self, request: ChatRequest) -> bytes:
        """The body to send.

        Raises:
            ConfigError: the request asks for something that the model does not take.
        """
        self._limits.check(request)
        output = request.output
        form = {} if output is None else self._wishes.form(output, request.tools)
        fields = self._wishes.fields(request.settings, request.tools, form)
        further_tools = fields.pop("tools", ())
        start = _first_said(request.messages)
        words = [text for text in request.instructions if text.strip()]
        said = (system_text(message, PROVIDER) for message in request.messages[:start])
        words += filter(None, said)
        if output is not None and SCHEMA not in form:
            words.append(form_in_words(output))
        body: list[bytes] = []
        if words:
            parts = [to_json({"text": text}) for text in words]
            body += [b'"systemInstruction":{"parts":[', b",".join(parts), b"]},"]
        tools = self._tools.of(request.tools)
        sent_tools = [*map(to_json, further_tools)]
        if tools:  # last, so that a tool that joins them is only appended
            sent_tools.append(b'{"functionDeclarations":[' + b",".join(tools) + b"]}")
        if sent_tools:
            body += [b'"tools":[', b",".join(sent_tools), b"],"]
        if fields:
            body += [to_json(fields)[1:-1], b","]
        body += [b'"contents":[', b",".join(self._contents(request.messages[start:])), b"]"]
        return b"{" + b"".join(body) + b"}"

    def _contents(self, messages: Sequence[Message]) -> list[bytes]:
        """The messages as turns; those of one side in a row are one, tool results first."""
        turns: list[list[Encoded]] = []
        for message in messages:
            said = self._messages.encode(message)
            if not (said.results or said.parts):
                continue  # an empty message says nothing, and the vendor refuses it
            if turns and turns[-1][0].role == said.role:
                turns[-1].append(said)
            else:
                turns.append([said])
        if not turns:
            raise ConfigError(
                "The request has no message with anything in it; give it a text, an image, a file"
                " or a tool's result."
            )
        if turns[0][0].role == "model":
            turns.insert(0, [_OPENING])
        return [_written(turn) for turn in turns]


def _first_said(messages: Sequence[Message]) -> int:
    """How many system messages stand before all others: they are instructions."""
    said = (at for at, message in enumerate(messages) if message.role != "system")
    return next(said, len(messages))


def _written(turn: Sequence[Encoded]) -> bytes:
    parts = [part for said in turn for part in said.results]
    parts += [part for said in turn for part in said.parts]
    return _START[turn[0].role] + b",".join(parts) + b"]}"


def _as_tool(spec: ToolSpec) -> bytes:
    if not _FIRST.match(spec.name):
        raise ConfigError(
            f"The tool {spec.name!r} has a name that Gemini does not take: it must begin with a"
            " letter or '_'."
        )
    declared: dict[str, Any] = {"name": spec.name}
    if spec.description:
        declared["description"] = spec.description
    declared["parametersJsonSchema"] = parameters(spec.parameters)
    return to_json(declared)
