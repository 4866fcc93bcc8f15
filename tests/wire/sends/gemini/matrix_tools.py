"""Requests with tools, their calls and their results."""

from typing import Any

from retinue.chains.settings import Settings
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from retinue.models.gemini.messages import UNSIGNED
from retinue.tools import tool
from tests.wire.sends.gemini.matrix import (
    JPEG,
    JPEG_64,
    PDF,
    PDF_64,
    PNG,
    PNG_64,
    SECOND,
    Case,
    clock,
    inline,
    model,
    result,
    said,
    weather,
)

OSLO = '{"city":"Oslo"}'
BOTH = {"tools": (weather, clock)}
WEATHER = {
    "name": "weather",
    "description": weather.spec.description,
    "parametersJsonSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where."},
            "days": {
                "type": "integer",
                "description": "how many days.\n\n{default: 1}",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    },
}
CLOCK = {
    "name": "clock",
    "description": "The time.",
    "parametersJsonSchema": {"type": "object", "properties": {}, "additionalProperties": False},
}


def offered(*functions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The field for tools."""
    return {"tools": [{"functionDeclarations": list(functions)}], **more}


def called(call_id: str, signature: str | None = None, name: str = "weather", **arguments: Any):
    """A call of the model, as it is sent."""
    call = {"functionCall": {"id": call_id, "name": name, "args": arguments}}
    return call | ({"thoughtSignature": signature} if signature else {})


def came(call_id: str, *media: Any, name: str = "weather", **response: Any) -> dict[str, Any]:
    """What a tool gave, as it is sent."""
    parts = {"parts": list(media)} if media else {}
    return {"functionResponse": {"id": call_id, "name": name, "response": response, **parts}}


def asked(*calls: ToolCall) -> list[Message]:
    """A question, and the calls that it led to."""
    return [user("Weather?"), assistant(calls=calls or [ToolCall("a", "weather", OSLO)])]


def choosing(mode: str, *names: str) -> dict[str, Any]:
    chosen = {"mode": mode} | ({"allowedFunctionNames": list(names)} if names else {})
    return {"toolConfig": {"functionCallingConfig": chosen}}


HELLO = {"contents": [said("Hello")]}
ASKED = [said("Weather?"), model(called("a", UNSIGNED, city="Oslo"))]
PLAIN = [said("Weather?"), model(called("a", city="Oslo"))]
GIVEN = {
    "type": "object",
    "properties": {
        "how": {"const": "fast"},
        "sure": {"const": True},
        "n": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
        "place": {"$ref": "#/definitions/place", "description": "Where."},
        "when": {"type": ["string", "null"], "format": "date"},
        "many": {"type": "array", "items": {"type": "string", "pattern": "a+"}, "minItems": 1},
    },
    "definitions": {"place": {"allOf": [{"type": "string", "format": "slug"}]}},
    "patternProperties": {"^x": {}},
    "additionalProperties": False,
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}
FITTED = {
    "type": "object",
    "properties": {
        "how": {"enum": ["fast"]},
        "sure": {"description": "{const: true}"},
        "n": {"type": "integer", "description": "{exclusiveMinimum: 0}", "maximum": 9},
        "place": {"anyOf": [{"$ref": "#/$defs/place"}], "description": "Where."},
        "when": {"type": ["string", "null"], "format": "date"},
        "many": {
            "type": "array",
            "items": {"type": "string", "description": '{pattern: "a+"}'},
            "minItems": 1,
        },
    },
    "$defs": {"place": {"type": "string", "description": '{format: "slug"}'}},
    "additionalProperties": False,
    "description": '{patternProperties: {"^x":{}}}',
}


@tool(name="given", description="", parameters=GIVEN)
def given(**_: Any) -> None:
    pass


OFFERS = [
    Case(name="tools", ours=BOTH, sent=HELLO | offered(WEATHER, CLOCK)),
    Case(
        name="a tool whose schema comes as data, in the words that the vendor knows",
        ours={"tools": (given,)},
        sent=HELLO | offered({"name": "given", "parametersJsonSchema": FITTED}),
    ),
    *(
        Case(
            name=f"tool_choice={choice}",
            ours=BOTH,
            settings=Settings(tool_choice=choice, parallel_tool_calls=True),
            sent=HELLO | offered(WEATHER, CLOCK, **choosing(*chosen)),
        )
        for choice, chosen in (
            ("auto", ("AUTO",)),
            ("none", ("NONE",)),
            ("required", ("ANY",)),
            ("clock", ("ANY", "clock")),
        )
    ),
    Case(name="a choice without tools is none", settings=Settings(tool_choice="auto"), sent=HELLO),
    Case(
        name="tools that the vendor runs, beside ours",
        ours={"tools": (clock,)},
        settings=Settings(
            tool_choice="auto",
            extra={
                "tools": [{"googleSearch": {}}, {"codeExecution": {}}],
                "toolConfig": {"includeServerSideToolInvocations": True},
            },
        ),
        sent=HELLO
        | {
            "tools": [
                {"googleSearch": {}},
                {"codeExecution": {}},
                {"functionDeclarations": [CLOCK]},
            ],
            "toolConfig": {
                "functionCallingConfig": {"mode": "AUTO"},
                "includeServerSideToolInvocations": True,
            },
        },
    ),
    Case(
        name="tools that the vendor runs alone",
        settings=Settings(extra={"tools": [{"urlContext": {}}]}),
        sent=HELLO | {"tools": [{"urlContext": {}}]},
    ),
]

CALLS = [
    Case(
        name="a call and its result",
        messages=[*asked(), result("a", Text("sunny"))],
        ours={"tools": (clock,)},
        sent={"contents": [*ASKED, said(came("a", output="sunny"))]} | offered(CLOCK),
    ),
    Case(
        name="an earlier generation wants no signature",
        messages=[*asked(), result("a", Text("sunny"))],
        sent={"contents": [*PLAIN, said(came("a", output="sunny"))]},
        model=SECOND,
    ),
    Case(
        name="two calls of one name, their results in one turn, and a question behind them",
        messages=[
            *asked(ToolCall("a", "weather", OSLO), ToolCall("b", "weather", '{"city":"Rome"}')),
            result("a", Text("sunny")),
            result("b", Text("rainy")),
            user("And now?"),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(called("a", UNSIGNED, city="Oslo"), called("b", city="Rome")),
                said(came("a", output="sunny"), came("b", output="rainy"), "And now?"),
            ]
        },
    ),
    Case(
        name="text before a call",
        messages=[
            user("Weather?"),
            assistant("Let me see.", calls=[ToolCall("a", "weather", OSLO)]),
            result("a", Text("sunny")),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model("Let me see.", called("a", UNSIGNED, city="Oslo")),
                said(came("a", output="sunny")),
            ]
        },
    ),
    Case(
        name="a failure, with and without words, and nothing at all",
        messages=[
            *asked(*(ToolCall(each, "weather", OSLO) for each in "abc")),
            result("a", Text("no such city"), ok=False),
            result("b", ok=False),
            result("c"),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(
                    called("a", UNSIGNED, city="Oslo"),
                    called("b", city="Oslo"),
                    called("c", city="Oslo"),
                ),
                said(
                    came("a", error="no such city"),
                    came("b", error="It failed without a word."),
                    came("c", output=""),
                ),
            ]
        },
    ),
    Case(
        name="arguments and names that the model made up",
        messages=[
            *asked(ToolCall("a", "weather", "oh no"), ToolCall("b", "2 fast!", "[1]")),
            result("a", Text("no JSON"), ok=False),
            result("b", Text("no such tool"), ok=False, name="2 fast!"),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(called("a", UNSIGNED), called("b", name="_2_fast_")),
                said(came("a", error="no JSON"), came("b", name="_2_fast_", error="no such tool")),
            ]
        },
    ),
    Case(
        name="images and documents in a result",
        messages=[
            *asked(),
            result(
                "a", Text("Here."), Image(data=JPEG), File(data=PDF, media_type="application/pdf")
            ),
        ],
        sent={
            "contents": [
                *ASKED,
                said(
                    came(
                        "a",
                        inline(JPEG_64, "image/jpeg"),
                        inline(PDF_64, "application/pdf"),
                        output="Here.",
                    )
                ),
            ]
        },
    ),
    Case(
        name="what a result cannot hold comes after the results",
        messages=[
            *asked(ToolCall("a", "weather", OSLO), ToolCall("b", "weather", OSLO)),
            result("a", File(data=b"RIFF", media_type="audio/wav"), File(data=b"?")),
            result("b", Text("dry")),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(called("a", UNSIGNED, city="Oslo"), called("b", city="Oslo")),
                said(
                    came(
                        "a",
                        output="[file 1: after the results]\n[file 2: this model cannot take it]",
                    ),
                    came("b", output="dry"),
                    "file 1 of the result of weather (a):",
                    inline("UklGRg==", "audio/wav"),
                ),
            ]
        },
    ),
    Case(
        name="a result of an earlier generation holds no images",
        messages=[*asked(), result("a", Text("Here."), Image(data=PNG))],
        sent={
            "contents": [
                *PLAIN,
                said(
                    came("a", output="Here.\n[image 1: after the results]"),
                    "image 1 of the result of weather (a):",
                    inline(PNG_64, "image/png"),
                ),
            ]
        },
        model=SECOND,
    ),
    Case(
        name="several results in one message",
        messages=[
            *asked(ToolCall("a", "weather", OSLO), ToolCall("b", "clock")),
            Message(
                "tool",
                (
                    ToolResult("a", "weather", (Text("sunny"),)),
                    ToolResult("b", "clock", (Text("1"), Text("2"))),
                ),
            ),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(called("a", UNSIGNED, city="Oslo"), called("b", name="clock")),
                said(came("a", output="sunny"), came("b", name="clock", output="12")),
            ]
        },
    ),
    Case(
        name="calls of another vendor's model, with its thoughts",
        messages=[
            user("Weather?"),
            Message(
                "assistant",
                (
                    Thinking("Hm.", "sig", provider="anthropic"),
                    Thinking("", None, '{"call":"not-ours"}', "gemini-openai"),
                    ToolCall("toolu_1", "weather", OSLO),
                ),
            ),
            result("toolu_1", Text("sunny")),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(called("toolu_1", UNSIGNED, city="Oslo")),
                said(came("toolu_1", output="sunny")),
            ]
        },
    ),
]
