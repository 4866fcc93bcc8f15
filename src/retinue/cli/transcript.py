"""The messages of a conversation as lines to read."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from retinue.cli.wording import RESULT_WIDTH, cut, safe
from retinue.messages import Message, Part, Thinking, ToolCall, ToolResult
from retinue.messages import Text as Words
from retinue.stores import Entry

_STYLES = {"user": "bold", "assistant": "green", "system": "magenta", "tool": "cyan"}


def print_transcript(console: Console, entries: Iterable[Entry]) -> None:
    """Prints entries of a log, those that later turns are not sent marked with the reason."""
    for entry in entries:
        label = Text(_label(entry), style=_STYLES[entry.message.role])
        body = "\n".join(_lines(entry.message))
        console.print(label + Text(f": {body}"), highlight=False, soft_wrap=True)


def _label(entry: Entry) -> str:
    message = entry.message
    facts = [message.origin, entry.state, "partial" if message.partial else ""]
    said = ", ".join(fact for fact in dict.fromkeys(facts) if fact)
    return f"{message.role} ({said})" if said else message.role


def _lines(message: Message) -> Iterator[str]:
    for part in message.parts:
        if line := _line(part):
            yield line


def _line(part: Part) -> str:
    if isinstance(part, Words):
        return safe(part.text)
    if isinstance(part, ToolCall):
        return f"calls {cut(part.name, 60)} with {cut(part.arguments, RESULT_WIDTH)}"
    if isinstance(part, ToolResult):
        result = cut(part.text, RESULT_WIDTH)
        return f"{cut(part.name, 60)} {'says' if part.ok else 'failed'}: {result}"
    if isinstance(part, Thinking):
        return ""
    return f"[{type(part).__name__.lower()}, {part.media_type}]"
