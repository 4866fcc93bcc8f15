"""Requests with thoughts and signatures that go back, and with settings."""

from typing import Any

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.messages import Message, Part, Text, Thinking, ToolCall, user
from retinue.models.gemini.kept import call_mark, text_mark
from tests.wire.sends.gemini.matrix import SECOND, Case, clock, model, said, told
from tests.wire.sends.gemini.matrix_tools import CLOCK, HELLO, OSLO, called, came, offered, result

SEARCH = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}, "thoughtSignature": "c2ln"}
FOUND = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {"a": "b"}}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "Y29k"}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}


def kept(opaque: str, text: str = "") -> Thinking:
    return Thinking(text, None, opaque, "gemini")


def whole(part: str) -> Thinking:
    return kept(f'{{"part":{part}}}')


def answered(*parts: Part, partial: bool = False) -> list[Message]:
    """A question, what the model said to it, and another question."""
    return [user("a"), Message("assistant", parts, partial=partial), user("b")]


def between(*parts: dict[str, Any] | str) -> dict[str, Any]:
    """The same as it is sent."""
    turns = [said("a"), model(*parts), said("b")] if parts else [said("a", "b")]
    return {"contents": turns}


def signed(text: str, signature: str) -> dict[str, Any]:
    return {"text": text, "thoughtSignature": signature}


def thought(text: str, **rest: Any) -> dict[str, Any]:
    return {"text": text, "thought": True, **rest}


FIELDS = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
FORM = Output(FIELDS, "Count")
WORDS = (
    "Answer with JSON alone, without prose or a code fence. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
)


def configured(**config: Any) -> dict[str, Any]:
    return HELLO | {"generationConfig": config}


THOUGHTS = [
    Case(
        name="a thought goes back, with its signature if it has one",
        messages=answered(
            Thinking("Hm.", None, None, "gemini"),
            Thinking("So.", "c2ln", None, "gemini"),
            Text("Yes."),
        ),
        sent=between(thought("Hm."), thought("So.", thoughtSignature="c2ln"), "Yes."),
    ),
    Case(
        name="thoughts of others stay where they are",
        messages=answered(
            Thinking("Hm.", "c2ln", None, "anthropic"), Thinking("So."), Text("Yes.")
        ),
        sent=between("Yes."),
    ),
    Case(
        name="an empty text with a signature",
        messages=answered(Text("Yes."), kept(text_mark("c2ln", 0))),
        sent=between("Yes.", signed("", "c2ln")),
    ),
    Case(
        name="a text that is signed as a whole, and one at its end",
        messages=answered(
            Text("Yes."), kept(text_mark("c2lh", 4)), Text("Or no."), kept(text_mark("c2li", 3))
        ),
        sent=between(signed("Yes.", "c2lh"), "Or ", signed("no.", "c2li")),
    ),
    Case(
        name="a text that a layer has changed is signed as it is now",
        messages=answered(Text("No"), kept(text_mark("c2ln", 4))),
        sent=between(signed("No", "c2ln")),
    ),
    Case(
        name="a text that a layer has moved or taken out leaves its signature",
        messages=answered(kept(text_mark("c2ln", 4), "Hm."), Text("No")),
        sent=between(thought("Hm."), signed("", "c2ln"), "No"),
    ),
    Case(
        name="a signed call, after a thought",
        messages=[
            user("Weather?"),
            Message(
                "assistant", (kept(call_mark("c2ln"), "Hm."), ToolCall("a", "weather", OSLO))
            ),
            result("a", Text("sunny")),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(thought("Hm."), called("a", "c2ln", city="Oslo")),
                said(came("a", output="sunny")),
            ]
        },
    ),
    Case(
        name="of two calls at once the first is signed, or each",
        messages=[
            user("Weather?"),
            Message(
                "assistant",
                (
                    kept(call_mark("c2lh")),
                    ToolCall("a", "weather", OSLO),
                    ToolCall("b", "weather", OSLO),
                    kept(call_mark("c2lj")),
                    ToolCall("c", "weather", OSLO),
                ),
            ),
            *(result(each, Text("sunny")) for each in "abc"),
        ],
        sent={
            "contents": [
                said("Weather?"),
                model(
                    called("a", "c2lh", city="Oslo"),
                    called("b", city="Oslo"),
                    called("c", "c2lj", city="Oslo"),
                ),
                said(*(came(each, output="sunny") for each in "abc")),
            ]
        },
    ),
    Case(
        name="a signature whose call was cut off goes with it",
        messages=answered(Text("Let me see."), kept(call_mark("c2ln")), partial=True),
        sent=between("Let me see."),
    ),
    Case(
        name="what the vendor ran goes back as it came",
        messages=answered(
            whole('{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","id":"s1"},'
                  '"thoughtSignature":"c2ln"}'),
            whole('{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","id":"s1",'
                  '"response":{"a":"b"}}}'),
            whole('{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"Y29k"}'),
            whole('{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}'),
            Text("One."),
            kept(text_mark("c2lh", 4)),
        ),
        sent=between(SEARCH, FOUND, CODE, RAN, signed("One.", "c2lh")),
    ),
    Case(
        name="what the vendor ran and never finished does not",
        messages=answered(
            Text("Well."),
            whole('{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","id":"s1"}}'),
            whole('{"executableCode":{"language":"PYTHON","code":"1"}}'),
            partial=True,
        ),
        sent=between("Well."),
    ),
    Case(
        name="an answer of which nothing may go back is left out",
        messages=answered(Thinking("Hm.", "c2ln", None, "anthropic")),
        sent=between(),
    ),
    Case(
        name="what is kept in another form is left out",
        messages=answered(
            kept('[{"type":"reasoning.text"}]', "Hm."), kept("no JSON"), Text("Yes.")
        ),
        sent=between(thought("Hm."), "Yes."),
    ),
]  # fmt: skip

SETTINGS = [
    Case(
        name="how to sample and where to stop",
        settings=Settings(temperature=0.5, top_p=0.9, max_tokens=100, stop=("END", "\n"), seed=7),
        sent=configured(
            temperature=0.5, topP=0.9, maxOutputTokens=100, stopSequences=["END", "\n"], seed=7
        ),
    ),
    Case(
        name="effort by level",
        settings=Settings(effort="low"),
        sent=configured(thinkingConfig={"thinkingLevel": "LOW"}),
    ),
    Case(
        name="effort by budget",
        settings=Settings(effort="medium"),
        sent=configured(thinkingConfig={"thinkingBudget": 8192}),
        model="gemini-2.5-pro",
    ),
    Case(
        name="no thinking",
        settings=Settings(effort="none"),
        sent=configured(thinkingConfig={"thinkingBudget": 0}),
        model="gemini-2.5-flash-lite-preview-09-2025",
    ),
    Case(
        name="thoughts to be shown",
        options={"thoughts": True},
        settings=Settings(effort="high"),
        sent=configured(thinkingConfig={"thinkingLevel": "HIGH", "includeThoughts": True}),
    ),
    Case(
        name="a budget of one's own beside ours",
        options={"thoughts": True},
        settings=Settings(
            top_p=0.5,
            extra={"generationConfig": {"topK": 5, "thinkingConfig": {"thinkingBudget": 99}}},
        ),
        sent=configured(
            topP=0.5, topK=5, thinkingConfig={"includeThoughts": True, "thinkingBudget": 99}
        ),
        model=SECOND,
    ),
    Case(
        name="safety settings and what else the vendor takes",
        settings=Settings(
            extra={
                "safetySettings": [
                    {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
                ],
                "cachedContent": "cachedContents/abc",
                "serviceTier": "flex",
            }
        ),
        sent=HELLO
        | {
            "safetySettings": [
                {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
            ],
            "cachedContent": "cachedContents/abc",
            "serviceTier": "flex",
        },
    ),
    Case(
        name="the form of the answer",
        ours={"output": FORM},
        sent=configured(responseMimeType="application/json", responseJsonSchema=FIELDS),
    ),
    Case(
        name="a form that is a list",
        ours={"output": Output({"type": "array", "items": {"type": "string", "enum": ["a"]}})},
        sent=configured(
            responseMimeType="application/json",
            responseJsonSchema={"type": "array", "items": {"type": "string", "enum": ["a"]}},
        ),
    ),
    Case(
        name="a form beside tools",
        ours={"output": FORM, "tools": (clock,)},
        sent=configured(responseMimeType="application/json", responseJsonSchema=FIELDS)
        | offered(CLOCK),
    ),
    Case(
        name="a form beside tools, for an earlier generation, is asked for in words",
        ours={"output": FORM, "tools": (clock,), "instructions": ("Be brief.",)},
        sent=HELLO | offered(CLOCK) | told("Be brief.", WORDS),
        model=SECOND,
    ),
]  # fmt: skip
