"""The matrix goes on: tools, their calls and their results."""

from retinue.chains.settings import Settings
from retinue.messages import (
    File,
    Image,
    Text,
    ToolCall,
    assistant,
    user,
)
from tests.wire.sends.anthropic.matrix import (
    ASKED,
    ASKED_THERE,
    BOTH,
    CLOCK,
    HELLO,
    OSLO,
    PDF,
    PDF_64,
    PNG,
    WEATHER,
    Case,
    came,
    image,
    result,
    said,
    text,
    use,
    weather,
)

TOOLS = {"tools": [WEATHER, CLOCK]}
ONE = {"tools": (weather,)}
ONE_THERE = {"tools": [WEATHER]}

LOST = "[file: this model cannot take it]"


def choice(what: str, settings: Settings, **theirs: object) -> Case:
    return Case(
        name=what, settings=settings, ours=BOTH, theirs=HELLO | TOOLS | {"tool_choice": theirs}
    )


CALLS = [
    Case(name="tools in their order", ours=BOTH, theirs=HELLO | TOOLS),
    choice("tools as it likes", Settings(tool_choice="auto"), type="auto"),
    choice("no tools now", Settings(tool_choice="none"), type="none"),
    choice("some tool", Settings(tool_choice="required"), type="any"),
    choice("one tool", Settings(tool_choice="clock"), type="tool", name="clock"),
    choice(
        "one call at a time",
        Settings(parallel_tool_calls=False),
        type="auto",
        disable_parallel_tool_use=True,
    ),
    choice(
        "some one tool",
        Settings(tool_choice="required", parallel_tool_calls=False),
        type="any",
        disable_parallel_tool_use=True,
    ),
    Case(
        name="several calls at once are no wish",
        settings=Settings(parallel_tool_calls=True),
        ours=BOTH,
        theirs=HELLO | TOOLS,
    ),
    Case(
        name="a call and its result",
        messages=[*ASKED, result("a", Text("sun"), Text("shine"))],
        ours=ONE,
        theirs=ONE_THERE | {"messages": [*ASKED_THERE, said([came("a", "sunshine")])]},
    ),
    Case(
        name="calls at once, their results together, and what the user says after them",
        messages=[
            user("Weather?"),
            assistant(
                "Let me see.", calls=[ToolCall("a", "weather", OSLO), ToolCall("b", "clock")]
            ),
            result("a", Text("sun")),
            result("b", Text("12:00"), name="clock"),
            user("And?"),
        ],
        ours=BOTH,
        theirs=TOOLS
        | {
            "messages": [
                said("Weather?"),
                said([text("Let me see."), use("a", city="Oslo"), use("b", "clock")], "assistant"),
                said([came("a", "sun"), came("b", "12:00"), text("And?")]),
            ]
        },
    ),
    Case(
        name="results stand first whatever was said before them",
        messages=[*ASKED, user("Hurry!"), result("a", Text("sun"))],
        ours=ONE,
        theirs=ONE_THERE
        | {"messages": [*ASKED_THERE, said([came("a", "sun"), text("Hurry!")])]},
    ),
    Case(
        name="a result that failed",
        messages=[*ASKED, result("a", Text("no such city"), ok=False)],
        ours=ONE,
        theirs=ONE_THERE
        | {"messages": [*ASKED_THERE, said([came("a", "no such city", is_error=True)])]},
    ),
    Case(
        name="results of nothing",
        messages=[*ASKED, result("a")],
        ours=ONE,
        theirs=ONE_THERE | {"messages": [*ASKED_THERE, said([came("a")])]},
    ),
    Case(
        name="a result that failed without a word",
        messages=[*ASKED, result("a", Text(" "), ok=False)],
        ours=ONE,
        theirs=ONE_THERE
        | {
            "messages": [
                *ASKED_THERE, said([came("a", "It failed without a word.", is_error=True)]),
            ]
        },
    ),
    Case(
        name="images and documents in results",
        messages=[
            *ASKED,
            result(
                "a", Text("left"), Image(data=PNG), File(data=PDF, media_type="application/pdf")
            ),
        ],
        ours=ONE,
        theirs=ONE_THERE
        | {
            "messages": [
                *ASKED_THERE,
                said(
                    [
                        came(
                            "a",
                            [
                                text("left"),
                                image(),
                                {
                                    "type": "document",
                                    "source": {
                                        "type": "base64",
                                        "media_type": "application/pdf",
                                        "data": PDF_64,
                                    },
                                },
                            ],
                        )
                    ]
                ),
            ]
        },
    ),
    Case(
        name="an image of a result that failed follows it",
        messages=[*ASKED, result("a", Text("blurred"), Image(data=PNG), ok=False)],
        ours=ONE,
        theirs=ONE_THERE
        | {
            "messages": [
                *ASKED_THERE,
                said(
                    [
                        came("a", "blurred", is_error=True),
                        text("From the result of weather (a), which failed:"),
                        image(),
                    ]
                ),
            ]
        },
    ),
    Case(
        name="what the tool gave that no model takes is named",
        messages=[*ASKED, result("a", File(data=b"RIFF", media_type="audio/wav"), Text("hum"))],
        ours=ONE,
        theirs=ONE_THERE
        | {"messages": [*ASKED_THERE, said([came("a", [text(LOST), text("hum")])])]},
    ),
    Case(
        name="arguments that are no object, and names and ids of other vendors",
        messages=[
            user("?"),
            assistant(calls=[ToolCall("call|1", "no such.tool!", "{not json")]),
            result("call|1", Text("there is none"), ok=False),
        ],
        ours=ONE,
        theirs=ONE_THERE
        | {
            "messages": [
                said("?"),
                said([use("c26e9779d73a23c7a5729c9b79c60160", "no_such_tool_")], "assistant"),
                said(
                    [came("c26e9779d73a23c7a5729c9b79c60160", "there is none", is_error=True)]
                ),
            ]
        },
    ),
    Case(
        name="an id that comes again in a later round",
        messages=[
            *ASKED,
            result("a", Text("sun")),
            assistant(calls=[ToolCall("a", "clock")]),
            result("a", Text("12:00"), name="clock"),
        ],
        ours=BOTH,
        theirs=TOOLS
        | {
            "messages": [
                *ASKED_THERE,
                said([came("a", "sun")]),
                said([use("a_2", "clock")], "assistant"),
                said([came("a_2", "12:00")]),
            ]
        },
    ),
    Case(
        name="tools that are gone stand in for themselves",
        messages=[*ASKED, result("a", Text("sun")), assistant("Sunny."), user("Thanks")],
        theirs={
            "tools": [
                {
                    "name": "weather",
                    "description": "A tool of earlier in the conversation. It is no longer on"
                    " offer.",
                    "input_schema": {"type": "object", "properties": {}},
                }
            ],
            "tool_choice": {"type": "none"},
            "messages": [
                *ASKED_THERE,
                said([came("a", "sun")]),
                said("Sunny.", "assistant"),
                said("Thanks"),
            ],
        },
    ),
    Case(
        name="tools that the vendor runs are offered beside the others",
        settings=Settings(extra={"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        ours=ONE,
        theirs=HELLO
        | {"tools": [WEATHER, {"type": "web_search_20250305", "name": "web_search"}]},
    ),
]  # fmt: skip
