"""Images and files as parts of the Gemini format: their data, or where they are."""

import base64
import mimetypes
from typing import Any, Final

from retinue.errors import ConfigError
from retinue.messages import File, Image
from retinue.models.outgoing import image_type

_UNTOLD: Final = "application/octet-stream"
_TEXTS: Final = ("application/json", "application/xml", "application/yaml", "application/x-yaml")
_IN_RESULTS: Final = (
    "application/pdf", "image/jpeg", "image/png", "image/webp", "text/plain",
)  # fmt: skip


def media_part(part: Image | File) -> dict[str, Any]:
    """The part for an image, a document, a recording or a film.

    The first bytes of an image say what it is, whatever its media type claims: the default of
    `Image` is a claim that may be wrong.

    Raises:
        ConfigError: it has no content, or nobody says of what type it is.
    """
    kind = type(part).__name__
    if part.data is not None:
        media_type = image_type(part.data) or part.media_type
        if media_type == _UNTOLD:
            raise ConfigError(
                f"Gemini takes no {kind} of the type {_UNTOLD!r}; say with media_type=... what the"
                " data is."
            )
        return _inline(media_type, base64.b64encode(part.data).decode())
    if not part.url:
        raise ConfigError(f"This {kind} has neither data nor a URL; give it one.")
    if part.url.startswith("data:"):
        head, _, data = part.url[5:].partition(",")
        if not head.endswith(";base64"):
            raise ConfigError(f"This {kind} has a data URL without base64.")
        return _inline(head.removesuffix(";base64"), data)
    media_type = _type_of(part, part.url)
    typed = {} if media_type is None else {"mimeType": media_type}
    return {"fileData": {**typed, "fileUri": part.url}}


def fits_result(part: dict[str, Any]) -> bool:
    """Whether a tool's result may hold the part: data of some types."""
    return part.get("inlineData", {}).get("mimeType") in _IN_RESULTS


def _inline(media_type: str, data: str) -> dict[str, Any]:
    # The vendor reads such texts only under the name of all texts.
    media_type = "text/plain" if media_type in _TEXTS else media_type
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _type_of(part: Image | File, url: str) -> str | None:
    """The type of what is at the URL; None where the vendor knows it better."""
    if isinstance(part, File) and part.media_type != _UNTOLD:
        return part.media_type
    place, _, name = url.partition("?")[0].rpartition("/")
    guessed = mimetypes.guess_type(name)[0]
    if guessed is not None:
        return guessed
    # Files that were uploaded have their type there; of films on YouTube it is known.
    if isinstance(part, File) or place.endswith("/files"):
        return None
    return part.media_type
