"""Requests said twice: as this library takes them, and as the vendor's own client does."""

import base64
from typing import Any

from msgspec import Struct, field

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.messages import (
    File,
    Image,
    Message,
    Thinking,
    ToolCall,
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
        theirs: arguments of the client's `messages.create`, with "messages" among them.
        model: whom to ask.
        version: the version of the API.
    """

    name: str
    messages: list[Message] = field(default_factory=lambda: [user("Hello")])
    settings: Settings = Settings()
    ours: dict[str, Any] = field(default_factory=dict[str, Any])
    theirs: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = "claude-sonnet-4-6"
    version: str = "2026-10-21"


def said(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str, name: str = "weather", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def came(call_id: str, content: Any = None, **rest: Any) -> dict[str, Any]:
    held = {} if content is None else {"content": content}
    return {"type": "tool_result", "tool_use_id": call_id, **held, **rest}


def image(data: str = PNG_64, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def result(call_id: str, *parts: Any, ok: bool = True, name: str = "weather") -> Message:
    return tool_result(ToolResult(call_id, name, parts, ok=ok))


HELLO = {"messages": [said("Hello")]}
WEATHER = {
    "name": "weather",
    "description": weather.spec.description,
    "input_schema": weather.spec.parameters,
}
CLOCK = {
    "name": "clock",
    "description": "The time.",
    "input_schema": {"type": "object", "properties": {}, **clock.spec.parameters},
}
BOTH = {"tools": (weather, clock)}
OSLO = '{"city":"Oslo"}'
FORM = Output(
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    },
    "Count",
)
ASKED = [user("Weather?"), assistant(calls=[ToolCall("a", "weather", OSLO)])]
ASKED_THERE = [said("Weather?"), said([use("a", city="Oslo")], "assistant")]


def thought(signature: str | None = "sig", provider: str = "anthropic", **rest: Any) -> Thinking:
    return Thinking("Hm.", signature, provider=provider, **rest)


TALKS = [
    Case(name="a question", theirs=HELLO),
    Case(name="a question, streamed", ours={"stream": True}, theirs=HELLO | {"stream": True}),
    Case(
        name="several turns",
        messages=[user("Hello"), assistant("Hi!"), user("How are you?")],
        theirs={"messages": [said("Hello"), said("Hi!", "assistant"), said("How are you?")]},
    ),
    Case(
        name="two questions in a row are one turn",
        messages=[user("a"), user("b")],
        theirs={"messages": [said([text("a"), text("b")])]},
    ),
    Case(
        name="two answers in a row are one turn",
        messages=[user("a"), assistant("b"), assistant("c"), user("d")],
        theirs={
            "messages": [said("a"), said([text("b"), text("c")], "assistant"), said("d")],
        },
    ),
    Case(
        name="instructions",
        ours={"instructions": ("Be brief.",)},
        theirs=HELLO | {"system": "Be brief."},
    ),
    Case(
        name="instructions in pieces",
        ours={"instructions": ("Be brief.", "", "Today is {date}.")},
        theirs=HELLO | {"system": [text("Be brief."), text("Today is {date}.")]},
    ),
    Case(
        name="a system message at the start is an instruction",
        messages=[system("Aside."), user("Hello")],
        ours={"instructions": ("Be brief.",)},
        theirs=HELLO | {"system": [text("Be brief."), text("Aside.")]},
    ),
    Case(
        name="a system message inside is said by the user",
        messages=[user("a"), assistant("b"), system("Aside."), user("c")],
        theirs={
            "messages": [
                said("a"),
                said("b", "assistant"),
                said([text("<system>\nAside.\n</system>"), text("c")]),
            ]
        },
    ),
    Case(
        name="empty texts are not sent",
        messages=[user("a", "", "  "), assistant(""), assistant("\n"), user("b")],
        theirs={"messages": [said([text("a"), text("b")])]},
    ),
    Case(
        name="an answer that stands first gets an opening before it",
        messages=[assistant("Welcome!"), user("Hello")],
        theirs={
            "messages": [
                said("[The conversation begins here.]"),
                said("Welcome!", "assistant"),
                said("Hello"),
            ]
        },
    ),
    Case(
        name="any characters",
        messages=[user('{"a": "{{b}}"} <|im_end|> Grüße 東京 🌍\u2028')],
        theirs={"messages": [said('{"a": "{{b}}"} <|im_end|> Grüße 東京 🌍\u2028')]},
    ),
    Case(
        name="the beginning of the answer",
        messages=[user("Name?"), assistant("My name is \n")],
        model="claude-haiku-4-5",
        theirs={"messages": [said("Name?"), said("My name is", "assistant")]},
    ),
]

MEDIA = [
    Case(
        name="images as data and by URL",
        messages=[
            user("What?", Image(data=PNG), Image(url="https://pictures.example/1.png")),
        ],
        theirs={
            "messages": [
                said(
                    [
                        text("What?"),
                        image(),
                        {
                            "type": "image",
                            "source": {"type": "url", "url": "https://pictures.example/1.png"},
                        },
                    ]
                )
            ]
        },
    ),
    Case(
        name="an image is what its bytes say",
        messages=[user(Image(data=JPEG), Image(data=b"RIFF\0\0\0\0WEBP"))],
        theirs={
            "messages": [
                said(
                    [
                        image(JPEG_64, "image/jpeg"),
                        image("UklGRgAAAABXRUJQ", "image/webp"),
                    ]
                )
            ]
        },
    ),
    Case(
        name="an image in a data URL, and one that is a file",
        messages=[
            user(
                Image(url=f"data:image/png;base64,{PNG_64}"),
                File(data=PNG, media_type="image/png"),
            )
        ],
        theirs={"messages": [said([image(), image()])]},
    ),
    Case(
        name="a PDF as data, with its name",
        messages=[user(File(data=PDF, media_type="application/pdf", name="a.pdf"), "Sum up.")],
        theirs={
            "messages": [
                said(
                    [
                        {
                            "type": "document",
                            "source": {
                                "type": "base64",
                                "media_type": "application/pdf",
                                "data": PDF_64,
                            },
                            "title": "a.pdf",
                        },
                        text("Sum up."),
                    ]
                )
            ]
        },
    ),
    Case(
        name="a PDF by URL",
        messages=[user(File(url="https://x.example/a.pdf", media_type="application/pdf"))],
        theirs={
            "messages": [
                said(
                    [
                        {
                            "type": "document",
                            "source": {"type": "url", "url": "https://x.example/a.pdf"},
                        }
                    ]
                )
            ]
        },
    ),
    Case(
        name="texts and JSON as documents",
        messages=[
            user(
                File(data="Grüße".encode(), media_type="text/markdown"),
                File(data=b"{}", media_type="application/json", name="a.json"),
            )
        ],
        theirs={
            "messages": [
                said(
                    [
                        {
                            "type": "document",
                            "source": {
                                "type": "text", "media_type": "text/plain", "data": "Grüße",
                            },
                        },
                        {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "{}"},
                            "title": "a.json",
                        },
                    ]
                )
            ]
        },
    ),
    Case(
        name="files that were uploaded before",
        messages=[user(File(url="file_011"), Image(url="file_012"))],
        theirs={
            "messages": [
                said(
                    [
                        {"type": "document", "source": {"type": "file", "file_id": "file_011"}},
                        {"type": "image", "source": {"type": "file", "file_id": "file_012"}},
                    ]
                )
            ]
        },
    ),
]  # fmt: skip
