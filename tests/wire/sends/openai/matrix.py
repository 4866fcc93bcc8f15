"""Requests said twice: as this library takes them, and as the vendor's own client does."""

import base64
from typing import Any

from msgspec import Struct, field

from retinue.chains.output import Output
from retinue.chains.settings import SILENT, Settings
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from tests.wire.sends.openai.encoding import PNG, PNG_URI, clock, weather

PDF = b"%PDF-1.7"
PDF_URI = "data:application/pdf;base64," + base64.b64encode(PDF).decode()
SOUND = b"RIFF"
SOUND_TEXT = base64.b64encode(SOUND).decode()
PICTURE = "https://pictures.example/1.png"


class Case(Struct, kw_only=True):
    """One request.

    Attributes:
        name: what it shows.
        theirs: arguments of the client's `chat.completions.create`.
        messages: the conversation, as this library takes it.
        settings: how the model shall answer.
        ours: further fields of a `ChatRequest`.
        model: whom to ask.
    """

    name: str
    theirs: dict[str, Any]
    messages: tuple[Message, ...] = (user("Hi"),)
    settings: Settings = SILENT
    ours: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = "gpt-4.1"


HI = {"role": "user", "content": "Hi"}


def talk(name: str, *messages: Message, sent: list[dict[str, Any]], **rest: Any) -> Case:
    """A case about the messages."""
    return Case(name=name, messages=messages, theirs={"messages": sent}, **rest)


def setting(name: str, settings: Settings, model: str = "gpt-4.1", **theirs: Any) -> Case:
    """A case about the fields beside the messages."""
    return Case(name=name, settings=settings, theirs={"messages": [HI], **theirs}, model=model)


def function(name: str, description: str, parameters: Any) -> dict[str, Any]:
    """A tool as the vendor takes it."""
    told = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": told}


WEATHER = function("weather", weather.spec.description, weather.spec.parameters)
CLOCK = function(
    "clock", "The time.", {"type": "object", "properties": {}, "additionalProperties": False}
)


def tools(name: str, *given: Any, settings: Settings = SILENT, **theirs: Any) -> Case:
    """A case about tools."""
    sent = {"weather": WEATHER, "clock": CLOCK}
    listed = [sent[each.spec.name] for each in given]
    return Case(
        name=name,
        settings=settings,
        ours={"tools": given},
        theirs={"messages": [HI], "tools": [*listed, *theirs.pop("further", ())], **theirs},
    )


def formed(name: str, given: Any, schema: Any, *, strict: bool, **rest: Any) -> Case:
    """A case about the form of the answer."""
    form = {"name": "answer", "schema": schema, "strict": strict}
    return Case(
        name=name,
        ours={"output": Output(given)} | rest,
        theirs={
            "messages": [HI], "response_format": {"type": "json_schema", "json_schema": form},
        } | rest,
    )  # fmt: skip


def called(call_id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    """A call as the vendor takes it back."""
    told = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": told}


def asked(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    """An answer with calls as the vendor takes it back."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(call_id: str, content: str) -> dict[str, Any]:
    """A result as the vendor takes it."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def shown(*parts: dict[str, Any]) -> dict[str, Any]:
    """What the user says in parts."""
    return {"role": "user", "content": list(parts)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def document(name: str) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": name, "file_data": PDF_URI}}


def sound(kind: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": SOUND_TEXT, "format": kind}}


BRACES = "{date} {{x}} <|im_end|> \x00"
TALKS = [
    talk("a question", user("Hi"), sent=[HI]),
    talk("an empty question", user(""), sent=[{"role": "user", "content": ""}]),
    talk("several texts", user("One", "Two"), sent=[shown(text("One"), text("Two"))]),
    talk(
        "roles in turn", user("Hi"), assistant("Hello"), system("Be brief."), user("Go"),
        sent=[HI, {"role": "assistant", "content": "Hello"},
              {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go"}],
    ),
    talk("two questions in a row", user("Hi"), user("Hi"), sent=[HI, HI]),
    talk("an answer without a word", user("Hi"), assistant(), user("Hi"),
         sent=[HI, {"role": "assistant", "content": ""}, HI]),
    talk("a thought of the model", user("Hi"),
         Message("assistant", (Thinking("Hm.", provider="openai"), Text("Yes"))), user("Hi"),
         sent=[HI, {"role": "assistant", "content": "Yes"}, HI]),
    talk("braces and control tokens are data", user(BRACES),
         sent=[{"role": "user", "content": BRACES}]),
    talk("letters of many scripts", user("Grüße aus 東京 🌍 \u2028 \\ \" /"),
         sent=[{"role": "user", "content": "Grüße aus 東京 🌍 \u2028 \\ \" /"}]),
    Case(name="instructions", ours={"instructions": ("Be brief.", "", "Today is {date}.")},
         theirs={"messages": [
             {"role": "system", "content": "Be brief.\n\nToday is {date}."}, HI]}),
]  # fmt: skip

MEDIA = [
    talk("an image in bytes", user("What?", Image(data=PNG)),
         sent=[shown(text("What?"), image(PNG_URI))]),
    talk("an image by address", user("What?", Image(url=PICTURE)),
         sent=[shown(text("What?"), image(PICTURE))]),
    talk("an image alone", user(Image(url=PNG_URI)), sent=[shown(image(PNG_URI))]),
    talk("an image as a file", user(File(data=PNG, media_type="image/png")),
         sent=[shown(image(PNG_URI))]),
    talk(
        "documents", user(
            "Read", File(data=PDF, media_type="application/pdf", name="a.pdf"),
            File(data=PDF, media_type="application/pdf"),
            File(url=PDF_URI, media_type="application/pdf", name="b.pdf"),
        ),
        sent=[shown(text("Read"), document("a.pdf"), document("file.pdf"), document("b.pdf"))],
    ),
    talk(
        "recordings", user(
            "Listen", File(data=SOUND, media_type="audio/wav"),
            File(data=SOUND, media_type="audio/mpeg"),
        ),
        sent=[shown(text("Listen"), sound("wav"), sound("mp3"))], model="gpt-audio",
    ),
]  # fmt: skip

ASK = user("Weather?")
ASKED = {"role": "user", "content": "Weather?"}
OSLO = '{"city": "Oslo"}'
CALLS = [
    talk(
        "a tool loop", ASK, assistant("Let me see.", calls=[ToolCall("a", "weather", OSLO)]),
        tool_result(ToolResult("a", "weather", (Text("sun"), Text("shine")))),
        sent=[ASKED, asked(called("a", "weather", OSLO), content="Let me see."),
              result("a", "sunshine")],
    ),
    talk(
        "calls at once", ASK, assistant(calls=[ToolCall("a", "clock"), ToolCall("b", "clock", "")]),
        tool_result(ToolResult("a", "clock", (Text("12:00"),))),
        tool_result(ToolResult("b", "clock", (Text("12:01"),))),
        sent=[ASKED, asked(called("a", "clock"), called("b", "clock")),
              result("a", "12:00"), result("b", "12:01")],
    ),
    talk(
        "results in one message", ASK, assistant(calls=[ToolCall("a", "x"), ToolCall("b", "x")]),
        Message("tool", (ToolResult("a", "x", (Text("1"),)), ToolResult("b", "x", (Text("2"),)))),
        sent=[ASKED, asked(called("a", "x"), called("b", "x")), result("a", "1"), result("b", "2")],
    ),
    talk(
        "two rounds and an answer", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x", (Text("1"),))), assistant(calls=[ToolCall("b", "x")]),
        tool_result(ToolResult("b", "x", (Text("2"),))), assistant("Done."), ASK,
        sent=[ASKED, asked(called("a", "x")), result("a", "1"), asked(called("b", "x")),
              result("b", "2"), {"role": "assistant", "content": "Done."}, ASKED],
    ),
    talk(
        "failed results", ASK, assistant(calls=[ToolCall("a", "x"), ToolCall("b", "x")]),
        tool_result(ToolResult("a", "x", (Text("no such city"),), ok=False)),
        tool_result(ToolResult("b", "x", (Text("Error of mine"),), ok=False)),
        sent=[ASKED, asked(called("a", "x"), called("b", "x")),
              result("a", "Error: no such city"), result("b", "Error of mine")],
    ),
    talk("an empty result", ASK, assistant(calls=[ToolCall("a", "x")]),
         tool_result(ToolResult("a", "x")), sent=[ASKED, asked(called("a", "x")), result("a", "")]),
    talk(
        "images and documents of tools", ASK, assistant(calls=[ToolCall("a", "x")]),
        tool_result(ToolResult("a", "x", (
            Text("left"), Image(data=PNG), File(data=PDF, media_type="application/pdf"),
        ))),
        sent=[ASKED, asked(called("a", "x")),
              result("a", "left\n[image 1: in the next message]\n[file 2: in the next message]"),
              shown(text("image 1 of the result of x (a):"), image(PNG_URI),
                    text("file 2 of the result of x (a):"), document("file.pdf"))],
    ),
    talk("arguments that are no JSON", ASK, assistant(calls=[ToolCall("a", "x", "{oops")]),
         tool_result(ToolResult("a", "x", (Text("no JSON"),), ok=False)),
         sent=[ASKED, asked(called("a", "x", "{oops")), result("a", "Error: no JSON")]),
    talk("a name that the model made up", ASK, assistant(calls=[ToolCall("a", "my tool!")]),
         tool_result(ToolResult("a", "my tool!", (Text("unknown"),), ok=False)),
         sent=[ASKED, asked(called("a", "my_tool_")), result("a", "Error: unknown")]),
    tools("one tool on offer", weather),
    tools("tools", weather, clock),
    tools("a free choice", weather, settings=Settings(tool_choice="auto"), tool_choice="auto"),
    tools("no choice", weather, settings=Settings(tool_choice="none"), tool_choice="none"),
    tools("any tool", weather, settings=Settings(tool_choice="required"), tool_choice="required"),
    tools("one tool", weather, clock, settings=Settings(tool_choice="clock"),
          tool_choice={"type": "function", "function": {"name": "clock"}}),
    tools("one at a time", weather, settings=Settings(parallel_tool_calls=False),
          parallel_tool_calls=False),
    tools("many at once", weather, settings=Settings(parallel_tool_calls=True),
          parallel_tool_calls=True),
    tools("a tool that is no function", weather, settings=Settings(extra={"tools": [
        {"type": "custom", "custom": {"name": "shell"}}]}),
        further=[{"type": "custom", "custom": {"name": "shell"}}]),
]  # fmt: skip

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LOOSE = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
         "required": ["n"]}  # fmt: skip
CLOSED = {**NUMBER, "additionalProperties": False}
FORMS = [
    formed("a form", NUMBER, CLOSED, strict=True),
    formed("a form that is a wish", LOOSE, LOOSE, strict=False),
    formed("a form in a stream", NUMBER, CLOSED, strict=True, stream=True),
]

SETTINGS = [
    setting("temperature and top_p", Settings(temperature=0.5, top_p=0.9),
            temperature=0.5, top_p=0.9),
    setting("a temperature of nought", Settings(temperature=0.0), temperature=0.0),
    setting("a limit", Settings(max_tokens=100), max_completion_tokens=100),
    setting("words to stop at", Settings(stop=("END", "\n")), stop=["END", "\n"]),
    setting("a seed", Settings(seed=7), seed=7),
    setting("low effort", Settings(effort="low"), model="gpt-5-mini", reasoning_effort="low"),
    setting("high effort and a limit", Settings(effort="high", max_tokens=900), model="o4-mini",
            reasoning_effort="high", max_completion_tokens=900),
    setting(
        "fields that only the vendor has", Settings(extra={
            "metadata": {"a": "b"}, "prompt_cache_key": "k", "service_tier": "flex",
            "logit_bias": {"50256": -100}, "verbosity": "low", "store": True,
        }),
        metadata={"a": "b"}, prompt_cache_key="k", service_tier="flex",
        logit_bias={"50256": -100}, verbosity="low", store=True,
    ),
    setting("another model", SILENT, model="gpt-4o-mini-2024-07-18"),
    Case(name="a stream", ours={"stream": True}, theirs={"messages": [HI], "stream": True}),
    Case(
        name="all at once in a stream", messages=(user("What?", Image(url=PICTURE)),),
        settings=Settings(temperature=0.1, max_tokens=9, seed=1, stop=("x",),
                          tool_choice="weather", parallel_tool_calls=False),
        ours={"stream": True, "tools": (weather,), "instructions": ("Be brief.",)},
        theirs={
            "messages": [{"role": "system", "content": "Be brief."},
                         shown(text("What?"), image(PICTURE))],
            "stream": True, "temperature": 0.1, "max_completion_tokens": 9, "seed": 1,
            "stop": ["x"], "parallel_tool_calls": False, "tools": [WEATHER],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        },
    ),
]  # fmt: skip

CASES = [*TALKS, *MEDIA, *CALLS, *FORMS, *SETTINGS]
