"""What a model takes and gives back: declared in data, and checked before the call.

A field is None where nobody says; what is asked of it is then sent as it is, and the provider
judges. Nothing is guessed from a name that has no row. The rows stand elsewhere: of gateways in
`gateways`, of their models in `known`, of a vendor with a format of its own beside that format.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeVar

from msgspec import Struct, structs

from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import File, Image
from retinue.tools import Tool

Medium = Literal["images", "audio", "video", "documents"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What one model takes, through one format of one provider.

    True and False are declared, None is not known.

    Attributes:
        images: whether it takes images.
        audio: whether it takes recordings.
        video: whether it takes videos.
        documents: whether it takes other files, such as PDF.
        tools: whether it takes tools.
        parallel_tools: whether it may ask for several calls in one answer, and can be told to.
        forced_tools: whether `tool_choice` may demand a call.
        schema: whether it can be held to a JSON Schema. Where it is False, the form of an answer
            is asked for in words.
        json_mode: whether it can be held to JSON of any form, where it takes no schema.
        thinking: whether it reasons before it answers.
        shows_thinking: whether its reasoning comes back as text that can be read.
        efforts: the words for `effort` that it knows; empty if there is no saying it.
        sampling: whether it takes temperature and top_p.
        seed: whether it takes a seed.
        stop: whether it takes stop sequences.
        context: tokens of prompt and answer together.
        output: tokens of the longest answer, reasoning included.
    """

    images: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    documents: bool | None = None
    tools: bool | None = None
    parallel_tools: bool | None = None
    forced_tools: bool | None = None
    schema: bool | None = None
    json_mode: bool | None = None
    thinking: bool | None = None
    shows_thinking: bool | None = None
    efforts: tuple[str, ...] | None = None
    sampling: bool | None = None
    seed: bool | None = None
    stop: bool | None = None
    context: int | None = None
    output: int | None = None

    def over(self, base: "Declared") -> "Declared":
        """`base` with all that is known here in place of what it says."""
        return structs.replace(
            base, **{name: held for name, held in _fields_of(self) if held is not None}
        )

    def within(self, place: "Capabilities") -> "Capabilities":
        """What is left of this where `place` serves it: what no model takes there is refused."""
        named = {
            name: held
            for name, held in _fields_of(place)
            if held is not None and (held in (False, ()) or getattr(self, name) is None)
        }
        return structs.replace(self, **named)


Declared = TypeVar("Declared", bound=Capabilities)

UNKNOWN: Final = Capabilities()
"""Of which nothing is known."""

_FIELDS: Final = Capabilities.__struct_fields__


def _fields_of(one: Capabilities) -> list[tuple[str, object]]:
    return [(name, getattr(one, name)) for name in _FIELDS]


def declared_by(model: object) -> Capabilities:
    """What the model itself says that it takes; nothing is known of one that says nothing."""
    said = getattr(model, "capabilities", UNKNOWN)
    return said if isinstance(said, Capabilities) else UNKNOWN


_VERSION: Final = re.compile(
    r"(?:[-@](?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d{8}|\d{6}|\d{3,4}|latest|preview))*(?::.*)?"
)
"""What may follow a model's name and leave it the same model: a date, a number, a tag."""


def find_row(model: str, rows: Mapping[str, Declared]) -> Declared | None:
    """The row whose name the model's begins with, the longest one; or None.

    Only a date, "-latest", "-preview" or what comes after a colon may follow that name: a model
    that has a word more is another one, of which nothing is known.
    """
    model = model.lower()
    fitting = [
        name for name in rows if model.startswith(name) and _VERSION.fullmatch(model, len(name))
    ]
    return rows[max(fitting, key=len)] if fitting else None


_MEDIA: Final[Mapping[str, Medium]] = {"image": "images", "audio": "audio", "video": "video"}


def medium_of(part: Image | File) -> Medium:
    """What the part is to a model."""
    if isinstance(part, Image):
        return "images"
    return _MEDIA.get(part.media_type.partition("/")[0], "documents")


_NAMES: Final[Mapping[Medium, str]] = {
    "images": "images", "audio": "recordings", "video": "videos", "documents": "documents",
}  # fmt: skip


class Limits:
    """Refuses what a model is declared not to take.

    Args:
        model: how errors name it, its format included, such as "openai-responses:gpt-5-mini".
        takes: what it takes.
    """

    __slots__ = ("_barred", "_model", "_takes")

    def __init__(self, model: str, takes: Capabilities) -> None:
        self._model = model
        self._takes = takes
        self._barred = [
            name
            for name, taken in (
                ("temperature", takes.sampling), ("top_p", takes.sampling), ("seed", takes.seed),
                ("stop", takes.stop),
            )
            if taken is False
        ]  # fmt: skip

    @property
    def media(self) -> str:
        """All that decides over parts, as a key for what was encoded under it."""
        takes = self._takes
        return f"{takes.images}:{takes.audio}:{takes.video}:{takes.documents}"

    def check(self, request: ChatRequest) -> None:
        """Refuses settings and tools. What is said with `Settings.extra` is not looked at.

        Raises:
            ConfigError: names the model, the setting and the way out.
        """
        settings = request.settings
        for name in self._barred:
            value = getattr(settings, name)
            if value not in (None, ()):
                raise self._refused(name, f"leave {name}={value!r} out")
        if settings.max_tokens is not None:
            self._check_length(settings.max_tokens)
        if settings.effort is not None:
            self._check_effort(settings.effort)
        if request.tools:
            self._check_tools(settings, request.tools)

    def check_part(self, part: Image | File) -> None:
        """Refuses a part of a message.

        Raises:
            ConfigError: names the model, the part and the way out.
        """
        medium = medium_of(part)
        if getattr(self._takes, medium) is False:
            which = "Image" if isinstance(part, Image) else f"File ({part.media_type})"
            out = (
                f"give what is in the {which} as text"
                if medium == "documents"
                else f"leave the {which} out"
            )
            raise self._refused(_NAMES[medium], out)

    def _check_length(self, wanted: int) -> None:
        most = self._takes.output
        if most is not None and wanted > most:
            raise ConfigError(
                f"max_tokens={wanted} is more than {self._model} can write; it can write {most}."
            )

    def _check_effort(self, effort: str) -> None:
        known = self._takes.efforts
        if self._takes.thinking is False:
            raise ConfigError(f"{self._model} cannot think; leave effort={effort!r} out.")
        if known == ():
            raise ConfigError(
                f"{self._model} has no field for effort={effort!r}; say it in its own words with"
                " Settings(extra={...}), or leave it out."
            )
        if known is not None and effort not in known:
            raise ConfigError(
                f"{self._model} knows no effort {effort!r}; it knows {', '.join(known)}."
            )

    def _check_tools(self, settings: Settings, tools: Sequence[Tool]) -> None:
        takes, choice = self._takes, settings.tool_choice
        if takes.tools is False:
            names = ", ".join(tool.spec.name for tool in tools[:3])
            more = ", ..." if len(tools) > 3 else ""
            raise self._refused(
                "tools", f"leave {names}{more} out, put PromptedTools(model) in its place"
            )
        if takes.parallel_tools is False and settings.parallel_tool_calls:
            raise ConfigError(
                f"{self._model} asks for one call at a time; leave parallel_tool_calls=True out."
            )
        if takes.forced_tools is False and choice not in (None, "auto", "none"):
            raise ConfigError(
                f"{self._model} cannot be forced to call a tool; leave tool_choice={choice!r} out,"
                " and say in the instructions when to call it."
            )

    def _refused(self, what: str, out: str) -> ConfigError:
        return ConfigError(f"{self._model} takes no {what}; {out}, or use another model.")
