"""Messages as parts of the Gemini format, each part as JSON bytes.

A message is encoded once: its parts are kept with it, and a changed copy starts without them. So a
long loop sends its history again without encoding it again. Whose turn a message belongs to is the
business of `encode`.
"""

import re
from typing import Any, Final, Literal, TypeGuard

from msgspec import Raw, Struct

from retinue.errors import ConfigError
from retinue.messages import File, Image, Message, Text, Thinking, ToolCall, ToolResult
from retinue.models.capabilities import Limits
from retinue.models.gemini.abilities import Abilities
from retinue.models.gemini.kept import Kept, read_kept
from retinue.models.gemini.media import fits_result, media_part
from retinue.models.loose import a_value, an_object
from retinue.models.outgoing import (
    as_object,
    left_out,
    misplaced,
    results_of,
    system_text,
    to_json,
)

PROVIDER: Final = "gemini"
"""Whose reasoning goes back; that of others is left out."""

UNSIGNED: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The signature for a call that the model never made, such as one of another vendor's model: the
words that Google documents for it, as base64."""

_ODD: Final = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_NAME: Final = 128
_CODE: Final = ("executableCode", "codeExecutionResult")

Piece = dict[str, Any] | Raw


class Encoded(Struct, frozen=True):
    """One message in parts.

    Attributes:
        role: whose turn it belongs to.
        results: what tools gave, which stands first in its turn.
        parts: the other parts, in order.
    """

    role: Literal["user", "model"]
    results: tuple[bytes, ...] = ()
    parts: tuple[bytes, ...] = ()


class MessageEncoder:
    """Encodes messages for one kind of model.

    Args:
        abilities: what it takes.
        limits: refuses what it does not take.
    """

    __slots__ = ("_abilities", "_key", "_limits")

    def __init__(self, abilities: Abilities, limits: Limits) -> None:
        self._abilities = abilities
        self._limits = limits
        # All that the bytes depend on beside the message.
        generation = f"{abilities.signed_calls:d}{abilities.media_in_results:d}"
        self._key = f"gemini:{generation}:{limits.media}"

    def encode(self, message: Message) -> Encoded:
        """The message in parts; encoded once, then taken from where it is kept.

        Raises:
            ConfigError: the message holds a part that the format does not take there.
        """
        kept: Encoded | None = vars(message).get(self._key)
        if kept is None:
            kept = vars(message)[self._key] = self._encode(message)
        return kept

    def _encode(self, message: Message) -> Encoded:
        if message.role == "tool":
            return self._results(message)
        if message.role == "assistant":
            return Encoded("model", parts=tuple(map(to_json, self._answer(message))))
        if message.role == "system":
            text = system_text(message, PROVIDER)
            # Where a system message stands inside a conversation, only the user can say it.
            parts = (to_json({"text": f"<system>\n{text}\n</system>"}),) if text else ()
            return Encoded("user", parts=parts)
        return Encoded("user", parts=tuple(map(to_json, self._said(message))))

    # -- what the user says ---------------------------------------------------------------------

    def _said(self, message: Message) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for part in message.parts:
            if type(part) is Text:
                if part.text:  # the vendor refuses empty texts
                    parts.append({"text": part.text})
            elif isinstance(part, (Image, File)):
                parts.append(self._media(part))
            else:
                raise misplaced(part, message.role, PROVIDER)
        return parts

    def _media(self, part: Image | File) -> dict[str, Any]:
        self._limits.check_part(part)
        return media_part(part)

    # -- what the model said --------------------------------------------------------------------

    def _answer(self, message: Message) -> list[Piece]:
        pieces: list[Piece] = []
        signature: str | None = None  # of the call that comes next
        for part in message.parts:
            if type(part) is Text:
                if part.text:
                    pieces.append({"text": part.text})
            elif type(part) is ToolCall:
                pieces.append(_call(part) | _signed(signature))
                signature = None
            elif type(part) is Thinking:
                if part.provider == PROVIDER:
                    pieces += _thought(part)
                    kept = read_kept(part.opaque) or Kept()
                    signature = kept.call or signature
                    _put_back(kept, pieces)
            else:
                raise misplaced(part, message.role, PROVIDER)
        if message.partial:
            pieces = _without_unfinished(pieces)
        if self._abilities.signed_calls:
            _sign_first_call(pieces)
        return pieces

    # -- what the tools gave --------------------------------------------------------------------

    def _results(self, message: Message) -> Encoded:
        attached: list[dict[str, Any]] = []
        results = tuple(to_json(self._result(result, attached)) for result in results_of(message))
        return Encoded("user", results=results, parts=tuple(map(to_json, attached)))

    def _result(self, result: ToolResult, attached: list[dict[str, Any]]) -> dict[str, Any]:
        text = result.text
        inside: list[dict[str, Any]] = []
        others = [part for part in result.parts if not isinstance(part, Text)]
        for number, part in enumerate(others, start=1):
            name = f"{type(part).__name__.lower()} {number}"
            try:
                shown = self._media(part)
            except ConfigError as why:
                left_out(part, result.name, why)
                text += f"\n[{name}: this model cannot take it]"
                continue
            if self._abilities.media_in_results and fits_result(shown):
                inside.append(shown)
                continue
            text += f"\n[{name}: after the results]"
            label = f"{name} of the result of {result.name} ({result.call_id}):"
            attached += [{"text": label}, shown]
        text = text.lstrip("\n") if others else text
        outcome = {"output": text} if result.ok else {"error": text or "It failed without a word."}
        response = {"id": result.call_id, "name": sent_name(result.name), "response": outcome}
        return {"functionResponse": response | ({"parts": inside} if inside else {})}


def sent_name(name: str) -> str:
    """The name of a called tool as the vendor takes it: it begins with a letter or "_".

    A name that the model made up may hold anything; the vendor refuses the whole history for it.
    """
    fitting = _ODD.sub("_", name) or "unnamed"
    fitting = fitting if fitting[0].isalpha() or fitting[0] == "_" else f"_{fitting}"
    return fitting[:_LONGEST_NAME]


def _call(call: ToolCall) -> dict[str, Any]:
    # Arguments that are no object were answered with an error that says so.
    arguments = as_object(call.arguments or "{}") or {}
    called = {"id": call.id, "name": sent_name(call.name), "args": arguments}
    return {"functionCall": called}


# -- signatures ---------------------------------------------------------------------------------


def _signed(signature: str | None) -> dict[str, str]:
    return {} if signature is None else {"thoughtSignature": signature}


def _thought(thought: Thinking) -> list[Piece]:
    if not thought.text and thought.signature is None:
        return []
    return [{"text": thought.text, "thought": True} | _signed(thought.signature)]


def _put_back(kept: Kept, pieces: list[Piece]) -> None:
    """Puts back what is kept: a whole part, or the signature of the text before."""
    if bytes(kept.part):
        pieces.append(kept.part)
    if kept.text is None:
        return
    before = pieces[-1] if pieces else None
    if kept.length and _is_text(before):
        text: str = before["text"]
        if kept.length < len(text):
            pieces[-1:] = [{"text": text[: -kept.length]}, {"text": text[-kept.length :]}]
        pieces[-1] = an_object(pieces[-1]) | _signed(kept.text)
    else:
        pieces.append({"text": ""} | _signed(kept.text))


def _is_text(piece: Piece | None) -> TypeGuard[dict[str, Any]]:
    return isinstance(piece, dict) and piece.keys() == {"text"}


def _read(part: Raw) -> dict[str, Any]:
    return an_object(a_value(bytes(part)))


def _sign_first_call(pieces: list[Piece]) -> None:
    """The vendor wants the first call of each answer signed, whoever made it."""
    for at, piece in enumerate(pieces):
        if isinstance(piece, dict) and "functionCall" in piece:
            pieces[at] = _signed(UNSIGNED) | piece
            return


def _without_unfinished(pieces: list[Piece]) -> list[Piece]:
    """Leaves out what the vendor ran and never came to a result: the answer was cut off there."""
    heads = [piece if isinstance(piece, dict) else _read(piece) for piece in pieces]
    answered = {an_object(head.get("toolResponse")).get("id") for head in heads}
    kept: list[Piece] = []
    for piece, head, after in zip(pieces, heads, [*heads[1:], {}], strict=True):
        unanswered = "toolCall" in head and an_object(head["toolCall"]).get("id") not in answered
        unrun = _CODE[0] in head and _CODE[1] not in after
        if not (unanswered or unrun):
            kept.append(piece)
    return kept
