"""Requests said twice: as this library takes them, and as the vendor documents them."""

import base64
from typing import Any

from msgspec import Struct, field

from retinue.chains.settings import Settings
from retinue.messages import (
    File,
    Image,
    Message,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from retinue.tools import tool

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0"
PDF = b"%PDF-1.7"
PNG_64, JPEG_64, PDF_64 = (base64.b64encode(data).decode() for data in (PNG, JPEG, PDF))
THIRD = "gemini-3.8-flash"
SECOND = "gemini-2.5-flash"


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather to come.

    Args:
        city: where.
        days: how many days.
    """
    return f"sunny in {city} for {days}"


@tool
def clock() -> str:
    """The time."""
    return "12:00"


class Case(Struct, kw_only=True):
    """One request.

    Attributes:
        name: what it shows.
        messages: the conversation, as this library takes it.
        settings: how the model shall answer.
        ours: further fields of a `ChatRequest`.
        options: further arguments of the model.
        sent: the body that the vendor's documentation wants for it.
        model: whom to ask.
    """

    name: str
    messages: list[Message] = field(default_factory=lambda: [user("Hello")])
    settings: Settings = Settings()
    ours: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    sent: dict[str, Any]
    model: str = THIRD


def said(*parts: dict[str, Any] | str, role: str = "user") -> dict[str, Any]:
    """A turn."""
    return {"role": role, "parts": [text(p) if isinstance(p, str) else p for p in parts]}


def model(*parts: dict[str, Any] | str) -> dict[str, Any]:
    """A turn of the model."""
    return said(*parts, role="model")


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def inline(data: str, kind: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": data}}


def at(uri: str, kind: str | None = None) -> dict[str, Any]:
    return {"fileData": {"fileUri": uri} | ({"mimeType": kind} if kind else {})}


def result(call_id: str, *parts: Any, ok: bool = True, name: str = "weather") -> Message:
    return tool_result(ToolResult(call_id, name, parts, ok=ok))


def told(*texts: str) -> dict[str, Any]:
    """The field for instructions."""
    return {"systemInstruction": {"parts": [text(words) for words in texts]}}


HELLO = {"contents": [said("Hello")]}
UPLOADED = "https://generativelanguage.googleapis.com/v1beta/files/abc"
FILM = "https://www.youtube.com/watch?v=abc"

TALKS = [
    Case(name="a question", sent=HELLO),
    Case(name="a question, streamed", ours={"stream": True}, sent=HELLO),
    Case(
        name="several turns",
        messages=[user("Hello"), assistant("Hi!"), user("How are you?")],
        sent={"contents": [said("Hello"), model("Hi!"), said("How are you?")]},
    ),
    Case(
        name="two questions in a row are one turn",
        messages=[user("a"), user("b")],
        sent={"contents": [said("a", "b")]},
    ),
    Case(
        name="two answers in a row are one turn",
        messages=[user("a"), assistant("b"), assistant("c"), user("d")],
        sent={"contents": [said("a"), model("b", "c"), said("d")]},
    ),
    Case(
        name="instructions in pieces",
        ours={"instructions": ("Be brief.", "", "Today is {date}.")},
        sent=HELLO | told("Be brief.", "Today is {date}."),
    ),
    Case(
        name="a system message at the start is an instruction",
        messages=[system("Aside."), system(" "), user("Hello")],
        ours={"instructions": ("Be brief.",)},
        sent=HELLO | told("Be brief.", "Aside."),
    ),
    Case(
        name="a system message inside is said by the user",
        messages=[user("a"), assistant("b"), system("Aside."), system(""), user("c")],
        sent={"contents": [said("a"), model("b"), said("<system>\nAside.\n</system>", "c")]},
    ),
    Case(
        name="empty texts are not sent",
        messages=[user("a", ""), assistant(""), user("b")],
        sent={"contents": [said("a", "b")]},
    ),
    Case(
        name="an answer that stands first gets an opening before it",
        messages=[assistant("Welcome!"), user("Hello")],
        sent={
            "contents": [
                said("[The conversation begins here.]"), model("Welcome!"), said("Hello"),
            ]
        },
    ),
    Case(
        name="any characters",
        messages=[user('{"a": "{{b}}"} <|im_end|> Grüße 東京 🌍\u2028')],
        sent={"contents": [said('{"a": "{{b}}"} <|im_end|> Grüße 東京 🌍\u2028')]},
    ),
]  # fmt: skip

MEDIA = [
    Case(
        name="images as data, by URL, and in a data URL",
        messages=[
            user(
                "What?",
                Image(data=PNG),
                Image(url="https://pictures.example/1.jpg?size=2"),
                Image(url=f"data:image/png;base64,{PNG_64}"),
            )
        ],
        sent={
            "contents": [
                said(
                    "What?",
                    inline(PNG_64, "image/png"),
                    at("https://pictures.example/1.jpg?size=2", "image/jpeg"),
                    inline(PNG_64, "image/png"),
                )
            ]
        },
    ),
    Case(
        name="an image is what its bytes say",
        messages=[
            user(
                Image(data=JPEG),
                Image(data=b"RIFF\0\0\0\0WEBP"),
                Image(data=b"heic", media_type="image/heic"),
                File(data=PNG),
            )
        ],
        sent={
            "contents": [
                said(
                    inline(JPEG_64, "image/jpeg"),
                    inline("UklGRgAAAABXRUJQ", "image/webp"),
                    inline("aGVpYw==", "image/heic"),
                    inline(PNG_64, "image/png"),
                )
            ]
        },
    ),
    Case(
        name="an image at an address that says nothing has the type it claims",
        messages=[user(Image(url="gs://bucket/picture", media_type="image/webp"))],
        sent={"contents": [said(at("gs://bucket/picture", "image/webp"))]},
    ),
    Case(
        name="documents, recordings and films",
        messages=[
            user(
                File(data=PDF, media_type="application/pdf", name="a.pdf"),
                File(data=b"RIFF", media_type="audio/wav"),
                File(url="gs://bucket/film.mp4"),
                "Sum up.",
            )
        ],
        sent={
            "contents": [
                said(
                    inline(PDF_64, "application/pdf"),
                    inline("UklGRg==", "audio/wav"),
                    at("gs://bucket/film.mp4", "video/mp4"),
                    "Sum up.",
                )
            ]
        },
    ),
    Case(
        name="JSON is sent as the text that it is",
        messages=[
            user(
                File(data=b"{}", media_type="application/json"),
                File(data=b"a,b", media_type="text/csv"),
            )
        ],
        sent={"contents": [said(inline("e30=", "text/plain"), inline("YSxi", "text/csv"))]},
    ),
    Case(
        name="files whose type the vendor knows",
        messages=[user(File(url=UPLOADED), Image(url=UPLOADED), File(url=FILM))],
        sent={"contents": [said(at(UPLOADED), at(UPLOADED), at(FILM))]},
    ),
    Case(
        name="a file by URL has the type it is given",
        messages=[user(File(url="https://x.example/a", media_type="application/pdf"))],
        sent={"contents": [said(at("https://x.example/a", "application/pdf"))]},
    ),
]
