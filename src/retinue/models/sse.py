"""Server-sent events: bytes in, events out. No I/O, no clock, and no idea of what the data means.

It follows the HTML standard where servers do, and servers where they do not: spaces before a field
name are ignored, a last event without its blank line counts, and a field `error:`, which some send
in place of an event, is an event of that name.
"""

from typing import Final

from msgspec import Struct

BOM: Final = b"\xef\xbb\xbf"


class Event(Struct, frozen=True, gc=False):
    """One event: its data lines joined by a newline, and its name, empty for most."""

    data: bytes
    name: str = ""


class Decoder:
    """Decodes one stream, cut into chunks anywhere: inside a line end, a character or the BOM.

    Feed it every chunk, then call `flush` once.
    """

    __slots__ = ("_after_cr", "_data", "_name", "_rest", "_started")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # the line that has no end yet
        self._data: list[bytes] = []  # the lines of the event that has no end yet
        self._name = ""
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_newlines(chunk)
        if b"\n" not in chunk:
            if chunk:
                self._rest.append(chunk)
            return []
        if self._rest:
            self._rest.append(chunk)
            chunk = b"".join(self._rest)
            self._rest.clear()
        if not self._started:
            self._started = True
            chunk = chunk.removeprefix(BOM)
        lines = chunk.split(b"\n")
        last = lines.pop()
        if last:
            self._rest.append(last)
        return self._read(lines)

    def flush(self) -> list[Event]:
        """The event that the end of the stream completes, if there is one."""
        line = b"".join(self._rest)
        self._rest.clear()
        if not self._started:
            line = line.removeprefix(BOM)
        return self._read([line, b""])

    def _with_newlines(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if chunk.endswith(b"\r"):
            self._after_cr = True
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data: "):
                data.append(line[6:])
            elif line:
                self._field(line)
            elif len(data) == 1:
                events.append(Event(data[0], self._name))
                data.clear()
                self._name = ""
            else:
                if data:
                    events.append(Event(b"\n".join(data), self._name))
                    data.clear()
                self._name = ""
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.lstrip(b" ").partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"error":
            self._name = "error"
            self._data.append(value)
