"""The JSON in an answer: what stands round it is taken off, and what it says is left as it is.

Text in, text out; no I/O. Taken off are reasoning in `<think>` tags, code fences, and prose before
and after. Inside the JSON two slips are mended that can mean one thing only: a comma before a
closing bracket, and a raw line break in a string. Nothing is guessed: a value that is cut short,
single quotes or a missing quote make it no JSON, and the model had better be asked again.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

_THOUGHT: Final = re.compile(
    r"\s*<(think|thinking|thought|reasoning)>(?:.*?</\1>|.*\Z)", re.DOTALL | re.IGNORECASE
)
_THOUGHT_ENDS: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE: Final = "```"
_LANGUAGE: Final = re.compile(r"json\w*\b|[\w-]*(?=[ \t]*\n)", re.IGNORECASE)
_IN_FENCE: Final = re.compile(r"```[\w-]*\s*\Z")
_FENCE_HEAD: Final = 24  # characters before a value among which the head of its fence is looked for
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_OPENING: Final = re.compile(r"""{(?=\s*["'}])|\[(?=\s*["'{\[\]\dtfn-])""")
_MARK: Final = re.compile(rf"{_STRING}|\\.|([{{\[])|([}}\]])", re.DOTALL)
_SCALAR: Final = re.compile(rf"{_STRING}|true|false|null|-?\d[\d.eE+-]*", re.DOTALL)
_STRING_OR_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_RAW: Final = {n: f"\\u{n:04x}" for n in range(32)} | {9: "\\t", 10: "\\n", 13: "\\r"}


def json_of(text: str, kinds: Collection[str] = ()) -> str | None:
    """The JSON text that an answer gives.

    It is the answer itself, or what its fence holds, if that is one value. Else it is the last
    object or list in it, one in a fence before one outside. A number, a word or null in the middle
    of prose is no answer, nor is a part of a larger value that is broken.

    Args:
        text: the answer.
        kinds: the kinds of value that are wanted, as JSON Schema names them. Where prose holds
            objects and lists, those that are not wanted come last; all are, if none is named.

    Returns:
        the text, which may still be no JSON; None where there is nothing that could be.
    """
    text = bare(text)
    spans = list(_values(text))
    tags = [found.end() for found in _THOUGHT_ENDS.finditer(text)]
    if tags and not any(start < tags[-1] < end and closed for start, end, closed in spans):
        text = text[tags[-1] :].strip()  # some models are given the opening tag, and do not say it
        spans = list(_values(text))
    if not spans:
        return mended(text) if _SCALAR.fullmatch(text) else None
    heads = [head for kind, head in (("object", "{"), ("array", "[")) if kind in kinds]
    fitting = [span for span in spans if not heads or text[span[0]] in heads] or spans
    fenced = [span for span in fitting if _is_fenced(text, span[0])]
    start, end, _ = (fenced or fitting)[-1]
    return mended(text[start:end])


def bare(text: str) -> str:
    """The answer without the reasoning before it, and without a fence that holds all of it."""
    text = text.lstrip("\ufeff")
    at = 0
    while found := _THOUGHT.match(text, at):
        at = found.end()
    text = text[at:].strip()
    inside = text[len(_FENCE) : -len(_FENCE)]
    if text != f"{_FENCE}{inside}{_FENCE}" or _FENCE in inside:
        return text
    language = _LANGUAGE.match(inside)
    return inside[language.end() if language else 0 :].strip()


def mended(text: str) -> str:
    """JSON text without commas before closing brackets, and with line breaks written as escapes."""
    return _STRING_OR_COMMA.sub(
        lambda found: "" if found[0] == "," else found[0].translate(_RAW), text
    )


def _values(text: str) -> Iterator[tuple[int, int, bool]]:
    """Where the objects and lists stand that are inside no other, and whether each is closed.

    One pass: what follows an opening bracket that is never closed belongs to it.
    """
    at = 0
    while opening := _OPENING.search(text, at):
        depth = 0
        at = len(text)
        for mark in _MARK.finditer(text, opening.start()):
            depth += (mark[1] is not None) - (mark[2] is not None)
            if depth == 0:
                at = mark.end()
                break
        yield opening.start(), at, depth == 0


def _is_fenced(text: str, at: int) -> bool:
    return _IN_FENCE.search(text[max(0, at - _FENCE_HEAD) : at]) is not None
