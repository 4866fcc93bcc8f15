"""Requests said twice: as this library takes them, and as the vendor's own client does."""

import base64
from typing import Any

from msgspec import Struct, field

from retinue.chains.settings import SILENT, Settings
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from retinue.tools import tool

PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7"
PNG_URI = "data:image/png;base64," + base64.b64encode(PNG).decode()
PDF_URI = "data:application/pdf;base64," + base64.b64encode(PDF).decode()
PICTURE = "https://pictures.example/1.png"
ENCRYPTED = ["reasoning.encrypted_content"]


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
        made: arguments of `Responses`.
        theirs: arguments of the client's `responses.create`, beside "store" and "include".
        include: what is asked for beside the answer.
        model: whom to ask.
    """

    name: str
    theirs: dict[str, Any]
    messages: tuple[Message, ...] = (user("Hi"),)
    settings: Settings = Settings()
    ours: dict[str, Any] = field(default_factory=dict[str, Any])
    made: dict[str, Any] = field(default_factory=dict[str, Any])
    include: list[str] = field(default_factory=lambda: list(ENCRYPTED))
    model: str = "gpt-5-mini"


HI = {"role": "user", "content": "Hi"}


def talk(name: str, *messages: Message, sent: list[dict[str, Any]], **rest: Any) -> Case:
    """A case about the items of the input."""
    return Case(name=name, messages=messages, theirs={"input": sent}, **rest)


def setting(name: str, settings: Settings, **theirs: Any) -> Case:
    """A case about the fields beside the input."""
    return Case(name=name, settings=settings, theirs={"input": [HI], **theirs})


def tools(name: str, *given: Any, settings: Settings = SILENT, **theirs: Any) -> Case:
    """A case about tools."""
    sent = {
        "weather": {
            "type": "function",
            "name": "weather",
            "description": weather.spec.description,
            "parameters": weather.spec.parameters,
            "strict": False,
        },
        "clock": {
            "type": "function",
            "name": "clock",
            "description": "The time.",
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
            "strict": False,
        },
    }
    listed = [sent[each.spec.name] for each in given]
    return Case(
        name=name,
        settings=settings,
        ours={"tools": given},
        theirs={"input": [HI], "tools": [*listed, *theirs.pop("further", ())], **theirs},
    )


def called(call_id: str, name: str, arguments: str = "{}", **rest: Any) -> dict[str, Any]:
    """A call as the vendor takes it back."""
    return {
        "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **rest,
    }  # fmt: skip


def result(call_id: str, output: Any) -> dict[str, Any]:
    """A result as the vendor takes it."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


ASK = user("Weather?")
ASKED = {"role": "user", "content": "Weather?"}
OSLO = '{"city": "Oslo"}'
TALKS = [
    talk("a question", user("Hi"), sent=[HI]),
    talk("an empty question", user(""), sent=[{"role": "user", "content": ""}]),
    talk(
        "several texts", user("One", "Two"),
        sent=[{"role": "user", "content": [
            {"type": "input_text", "text": "One"}, {"type": "input_text", "text": "Two"},
        ]}],
    ),
    talk(
        "roles in turn", user("Hi"), assistant("Hello"), system("Be brief."), user("Go"),
        sent=[HI, {"role": "assistant", "content": "Hello"},
              {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go"}],
    ),
    talk("two questions in a row", user("Hi"), user("Hi"), sent=[HI, HI]),
    talk("an answer without a word", user("Hi"), assistant(), user("Hi"), sent=[HI, HI]),
    talk(
        "braces and control tokens are data", user("{date} {{x}} <|im_end|> \x00"),
        sent=[{"role": "user", "content": "{date} {{x}} <|im_end|> \x00"}],
    ),
    talk(
        "an image in bytes and one by address",
        user("What?", Image(data=PNG), Image(url=PICTURE)),
        sent=[{"role": "user", "content": [
            {"type": "input_text", "text": "What?"},
            {"type": "input_image", "detail": "auto", "image_url": PNG_URI},
            {"type": "input_image", "detail": "auto", "image_url": PICTURE},
        ]}],
    ),
    talk(
        "an image as a file", user(File(data=PNG, media_type="image/png")),
        sent=[{"role": "user", "content": [
            {"type": "input_image", "detail": "auto", "image_url": PNG_URI},
        ]}],
    ),
    talk(
        "documents in bytes", user(
            File(data=PDF, media_type="application/pdf", name="a.pdf"),
            File(data=PDF, media_type="application/pdf"),
        ),
        sent=[{"role": "user", "content": [
            {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URI},
            {"type": "input_file", "filename": "file.pdf", "file_data": PDF_URI},
        ]}],
    ),
    talk(
        "documents by address", user(
            File(url="https://a.example/a.pdf", media_type="application/pdf"),
            File(url=PDF_URI, media_type="application/pdf", name="a.pdf"),
        ),
        sent=[{"role": "user", "content": [
            {"type": "input_file", "file_url": "https://a.example/a.pdf"},
            {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URI},
        ]}],
    ),
]  # fmt: skip

CALLS = [
    talk(
        "a tool loop", ASK, assistant("Let me see.", calls=[ToolCall("a", "weather", OSLO)]),
        tool_result(ToolResult("a", "weather", (Text("sun"), Text("shine")))),
        sent=[ASKED, {"role": "assistant", "content": "Let me see."},
              called("a", "weather", OSLO), result("a", "sunshine")],
    ),
    talk(
        "calls at once", ASK, assistant(calls=[ToolCall("a", "clock"), ToolCall("b", "clock", "")]),
        tool_result(ToolResult("a", "clock", (Text("12:00"),))),
        tool_result(ToolResult("b", "clock", (Text("12:01"),))),
        sent=[ASKED, called("a", "clock"), called("b", "clock"),
              result("a", "12:00"), result("b", "12:01")],
    ),
    talk(
        "results in one message", ASK, assistant(calls=[ToolCall("a", "x"), ToolCall("b", "x")]),
        Message("tool", (ToolResult("a", "x", (Text("1"),)), ToolResult("b", "x", (Text("2"),)))),
        sent=[ASKED, called("a", "x"), called("b", "x"), result("a", "1"), result("b", "2")],
    ),
    talk(
        "failed results", ASK, assistant(calls=[ToolCall("a", "x"), ToolCall("b", "x")]),
        tool_result(ToolResult("a", "x", (Text("no such city"),), ok=False)),
        tool_result(ToolResult("b", "x", (Text("Error of mine"),), ok=False)),
        sent=[ASKED, called("a", "x"), called("b", "x"),
              result("a", "Error: no such city"), result("b", "Error of mine")],
    ),
    talk(
        "an empty result", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x")), sent=[ASKED, called("a", "x"), result("a", "")],
    ),
    talk(
        "images and documents of tools", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x", (
            Text("left"), Image(data=PNG), File(data=PDF, media_type="application/pdf"),
        ))),
        sent=[ASKED, called("a", "x"), result("a", [
            {"type": "input_text", "text": "left"},
            {"type": "input_image", "detail": "auto", "image_url": PNG_URI},
            {"type": "input_file", "filename": "file.pdf", "file_data": PDF_URI},
        ])],
    ),
    talk(
        "an image alone", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x", (Image(url=PICTURE),))),
        sent=[ASKED, called("a", "x"), result("a", [
            {"type": "input_image", "detail": "auto", "image_url": PICTURE},
        ])],
    ),
    talk(
        "a recording of a tool", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x", (File(data=b"RIFF", media_type="audio/wav"),))),
        sent=[ASKED, called("a", "x"), result("a", "[file 1: this model cannot take it]")],
    ),
    talk(
        "arguments that are no JSON", ASK, assistant(calls=[ToolCall("a", "x", "{oops")]),
        tool_result(ToolResult("a", "x", (Text("no JSON"),), ok=False)),
        sent=[ASKED, called("a", "x", "{oops"), result("a", "Error: no JSON")],
    ),
    talk(
        "a name that the model made up", ASK, assistant(calls=[ToolCall("a", "my tool!")]),
        tool_result(ToolResult("a", "my tool!", (Text("unknown"),), ok=False)),
        sent=[ASKED, called("a", "my_tool_"), result("a", "Error: unknown")],
    ),
]  # fmt: skip

SETTINGS = [
    Case(
        name="temperature and top_p", settings=Settings(temperature=0.5, top_p=0.9),
        theirs={"input": [HI], "temperature": 0.5, "top_p": 0.9}, model="gpt-5.1",
    ),
    setting("a limit", Settings(max_tokens=100), max_output_tokens=100),
    setting("effort", Settings(effort="low"), reasoning={"effort": "low"}),
    setting(
        "effort beside fields of one's own", Settings(
            effort="low", extra={"reasoning": {"summary": "concise"}, "text": {"verbosity": "low"}},
        ),
        reasoning={"effort": "low", "summary": "concise"}, text={"verbosity": "low"},
    ),
    setting(
        "fields that only the vendor has", Settings(extra={
            "metadata": {"a": "b"}, "prompt_cache_key": "k", "truncation": "auto",
            "service_tier": "flex",
        }),
        metadata={"a": "b"}, prompt_cache_key="k", truncation="auto", service_tier="flex",
    ),
    Case(name="a stream", ours={"stream": True}, theirs={"input": [HI], "stream": True}),
    Case(name="a summary", made={"summary": "auto"},
         theirs={"input": [HI], "reasoning": {"summary": "auto"}}),
    Case(name="a model that does not reason", model="gpt-4o", theirs={"input": [HI]}, include=[]),
    Case(name="a model that is said not to reason", made={"reasons": False},
         theirs={"input": [HI]}, include=[]),
    Case(name="instructions", ours={"instructions": ("Be brief.", "", "Today is {date}.")},
         theirs={"input": [HI], "instructions": "Be brief.\n\nToday is {date}."}),
    Case(
        name="more to include",
        settings=Settings(extra={"include": ["web_search_call.action.sources"]}),
        theirs={"input": [HI]}, include=[*ENCRYPTED, "web_search_call.action.sources"],
    ),
    tools("tools", weather, clock),
    tools("a free choice", weather, settings=Settings(tool_choice="auto"), tool_choice="auto"),
    tools("no choice", weather, settings=Settings(tool_choice="none"), tool_choice="none"),
    tools("any tool", weather, settings=Settings(tool_choice="required"), tool_choice="required"),
    tools("one tool", weather, clock, settings=Settings(tool_choice="clock"),
          tool_choice={"type": "function", "name": "clock"}),
    tools("one at a time", weather, settings=Settings(parallel_tool_calls=False),
          parallel_tool_calls=False),
    tools("a tool of the provider", weather,
          settings=Settings(extra={"tools": [{"type": "web_search"}]}),
          further=[{"type": "web_search"}]),
]  # fmt: skip
