"""Views for pipes: the answer on standard output, all else on standard error; or events as JSON."""

import sys
from typing import Any, Final

import msgspec

from retinue.chains import events
from retinue.chains.events import Event
from retinue.cli.turns import ending_words
from retinue.cli.wording import RESULT_WIDTH, call_words, cut, safe, seconds_words

_encoder: Final = msgspec.json.Encoder(enc_hook=repr)


class Plain:
    """Writes the answer when it is final, since a pipe takes nothing back.

    Args:
        thinking: whether the model's reasoning is shown, on standard error.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self._thinking = thinking
        self._mid_line = False
        self._calls: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """See `View.show`."""
        if isinstance(event, events.ThinkingChunk):
            if self._thinking and not event.path:
                self._mid_line = not event.text.endswith("\n")
                print(safe(event.text), end="", file=sys.stderr, flush=True)
        elif isinstance(event, events.ToolStarted):
            self._calls[event.call_id] = call_words(event.name, event.arguments)
        elif isinstance(event, events.ToolFinished):
            call = self._calls.pop(event.call_id, f"{event.name}(…)")
            self.note(
                f"{'ok' if event.ok else 'failed'}: {call} → {cut(event.text, RESULT_WIDTH)}"
                f" [{seconds_words(event.seconds)}]"
            )
        elif isinstance(event, events.ModelRetried):
            self.note(f"{event.error} Trying again in {seconds_words(event.wait)}.")
        elif isinstance(event, events.TurnEnded):
            if event.text:
                print(event.text, flush=True)
            if said := ending_words(event):
                self.note(said)

    def note(self, text: str) -> None:
        """See `View.note`."""
        if self._mid_line:
            print(file=sys.stderr)
            self._mid_line = False
        print(safe(text), file=sys.stderr, flush=True)

    def close(self) -> None:
        """See `View.close`; all that was written is whole."""


class JsonLines:
    """Writes each event as a line of JSON. What JSON cannot hold is written as its `repr`."""

    def show(self, event: Event) -> None:
        """See `View.show`."""
        print_json(event)

    def note(self, text: str) -> None:
        """The events say it all."""

    def close(self) -> None:
        """See `View.close`; a line is written at once."""


def print_json(value: Any) -> None:
    """Writes a value as one line of JSON."""
    print(_encoder.encode(value).decode(), flush=True)
