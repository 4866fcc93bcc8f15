"""Messages in the Responses format, each as JSON bytes of one or more items.

A message is encoded once: the bytes are kept with it, and a changed copy starts without them. So
a long loop sends its history again without encoding it again.
"""

from collections.abc import Iterable, Set
from typing import Any

from msgspec import Struct

from retinue.errors import ConfigError
from retinue.messages import Content, File, Image, Message, Text, ToolResult
from retinue.models.capabilities import Limits, medium_of
from retinue.models.gateways import Gateway
from retinue.models.outgoing import data_uri, file_name, left_out, misplaced, results_of, to_json
from retinue.models.responses.answers import AnswerEncoder, Said, fitting_id
from retinue.models.responses.kept import CUSTOM


class Input(Struct, frozen=True):
    """What is sent of the messages.

    Attributes:
        items: JSON objects, or several of them joined by commas.
        previous: the id of the stored answer that they come after, or None.
    """

    items: list[bytes]
    previous: str | None = None


class MessageEncoder:
    """Encodes messages for one model at one gateway.

    Args:
        gateway: the row.
        limits: refuses what the model does not take there.
        stored: whether the provider stores its answers.
        chained: whether only what comes after the last stored answer is sent.
    """

    __slots__ = ("_chained", "_gateway", "_key", "_limits", "_stored")

    def __init__(self, gateway: Gateway, limits: Limits, *, stored: bool, chained: bool) -> None:
        self._gateway = gateway
        self._limits = limits
        self._stored = stored
        self._chained = chained
        # All that the bytes depend on beside the message: two gateways may share a name.
        self._key = f"responses:{stored}:{gateway!r}:{limits.media}"

    def encode(self, messages: Iterable[Message]) -> Input:
        """The messages in order.

        Raises:
            ConfigError: a message holds a part that the model does not take.
        """
        key = self._key
        pieces: list[bytes] = []
        custom: set[str] = set()
        previous, after = "", 0
        for message in messages:
            kept: bytes | Said | None = vars(message).get(key)
            if kept is None:
                kept = vars(message)[key] = self._encode(message, custom)
            if isinstance(kept, Said):
                custom |= kept.custom
                if kept.items:
                    pieces.append(kept.items)
                if kept.response:
                    previous, after = kept.response, len(pieces)
            else:
                pieces.append(kept)
        if self._chained and previous and after < len(pieces):
            return Input(pieces[after:], previous)
        return Input(pieces)

    def _encode(self, message: Message, custom: Set[str]) -> bytes | Said:
        if message.role == "tool":
            return self._results(message, custom)
        if message.role == "assistant":
            return AnswerEncoder(self._gateway, stored=self._stored).encode(message)
        return to_json({"role": message.role, "content": self._content(message)})

    # -- what the user says ---------------------------------------------------------------------

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        parts = message.parts
        if all(type(part) is Text for part in parts) and len(parts) < 2:
            return message.text
        return [self._part(part, message.role) for part in parts]

    def _part(self, part: Any, role: str) -> dict[str, Any]:
        if type(part) is Text:
            return {"type": "input_text", "text": part.text}
        if type(part) is Image and role == "user":
            return self._image(part)
        if type(part) is File and role == "user":
            return self._file(part)
        raise misplaced(part, role, self._gateway.name)

    def _image(self, image: Image | File) -> dict[str, Any]:
        self._limits.check_part(image)
        return {"type": "input_image", "detail": "auto", "image_url": image.url or data_uri(image)}

    def _file(self, file: File) -> dict[str, Any]:
        if medium_of(file) == "images":
            return self._image(file)
        self._limits.check_part(file)
        if file.url and not file.url.startswith("data:"):
            return {"type": "input_file", "file_url": file.url}
        data = file.url or data_uri(file)
        return {"type": "input_file", "filename": file_name(file), "file_data": data}

    # -- what the tools said --------------------------------------------------------------------

    def _results(self, message: Message, custom: Set[str]) -> bytes:
        return b",".join(to_json(self._result(result, custom)) for result in results_of(message))

    def _result(self, result: ToolResult, custom: Set[str]) -> dict[str, Any]:
        kind = CUSTOM if result.call_id in custom else "function_call"
        return {
            "type": f"{kind}_output",
            "call_id": fitting_id(result.call_id),
            "output": self._output(result),
        }

    def _output(self, result: ToolResult) -> str | list[dict[str, Any]]:
        """A text, or parts where there are images or files that the gateway takes."""
        text = result.text
        shown: list[dict[str, Any]] = []
        others = [part for part in result.parts if type(part) is not Text]
        for number, part in enumerate(others, start=1):
            attached = self._attachment(part, result.name)
            if attached is None:
                text += f"\n[{type(part).__name__.lower()} {number}: this model cannot take it]"
            else:
                shown.append(attached)
        text = text.strip("\n") if others else text
        if not result.ok and text[:5].lower() != "error":
            text = f"Error: {text}"  # the format has no flag for it
        if not shown:
            return text
        return [{"type": "input_text", "text": text}, *shown] if text else shown

    def _attachment(self, part: Content, tool: str) -> dict[str, Any] | None:
        try:
            return self._part(part, "user")
        except ConfigError as why:
            left_out(part, tool, why)
            return None
