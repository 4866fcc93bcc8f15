"""Images and documents as content blocks of the Messages format."""

import base64
from typing import Any, Final

from retinue.errors import ConfigError
from retinue.messages import File, Image
from retinue.models.outgoing import image_type

_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_TEXTS: Final = ("application/json", "application/xml", "application/yaml", "application/x-yaml")
_UPLOADED: Final = "file_"  # how the ids of the vendor's store of files begin


def image_block(image: Image | File) -> dict[str, Any]:
    """The block for an image.

    The first bytes of the data say what it is, whatever its media type claims: the vendor refuses
    the wrong claim, and the default of `Image` is one.

    Raises:
        ConfigError: it has no content, or is of a type that no Claude model takes.
    """
    if image.data is None:
        return {"type": "image", "source": _by_url(image)}
    media_type = image_type(image.data) or image.media_type
    if media_type not in _IMAGES:
        raise ConfigError(
            f"Claude takes no images of the type {media_type!r}; it takes {', '.join(_IMAGES)}."
        )
    return {"type": "image", "source": _base64(media_type, image.data)}


def document_block(file: File) -> dict[str, Any]:
    """The block for a file: a PDF or a text, or an image if it is one.

    Raises:
        ConfigError: it has no content, or is of a type that no Claude model takes.
    """
    kind = file.media_type
    if kind.startswith("image/"):
        return image_block(file)
    if file.data is None and _is_uploaded(file.url):
        return _document(_by_url(file), file)
    if kind == "application/pdf":
        source = _by_url(file) if file.data is None else _base64(kind, file.data)
        return _document(source, file)
    if not (kind.startswith("text/") or kind in _TEXTS):
        raise ConfigError(
            f"Claude takes no files of the type {kind!r}; it takes PDF, text and images."
        )
    if file.data is None:
        raise ConfigError(f"Claude takes no text ({kind}) by URL; give the File its data.")
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"The file of the type {kind!r} is no text in UTF-8.") from None
    return _document({"type": "text", "media_type": "text/plain", "data": text}, file)


def _document(source: dict[str, Any], file: File) -> dict[str, Any]:
    titled = {"title": file.name} if file.name else {}
    return {"type": "document", "source": source, **titled}


def _by_url(part: Image | File) -> dict[str, Any]:
    url = part.url
    if not url:
        raise ConfigError(f"This {type(part).__name__} has neither data nor a URL; give it one.")
    if _is_uploaded(url):
        return {"type": "file", "file_id": url}
    if url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        if head.endswith(";base64"):
            return {"type": "base64", "media_type": head.removesuffix(";base64"), "data": data}
        raise ConfigError(f"This {type(part).__name__} has a data URL without base64.")
    return {"type": "url", "url": url}


def _is_uploaded(url: str | None) -> bool:
    return url is not None and url.startswith(_UPLOADED)


def _base64(media_type: str, data: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"type": "base64", "media_type": media_type, "data": encoded}
