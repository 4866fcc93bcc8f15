"""What a reader at a terminal is left with. The terminal is replayed, and is ten lines high."""

import io
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from rich.console import Console

from retinue.chains import events
from retinue.cli.screen import Screen

HEIGHT: Final = 10
WIDTH: Final = 40

_TOKEN: Final = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r|\n)|([^\x1b\r\n]+)")


def replay(raw: str) -> list[str]:
    """The lines that stand in the terminal and above it, after all that was written.

    What has scrolled out of a terminal cannot be written again, so reaching for it fails.
    """
    lines, row, column = [""], 0, 0
    for number, letter, move, text in _TOKEN.findall(raw):
        if text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
        elif move:
            column = 0
            row += move == "\n"
            lines += [""] * (row + 1 - len(lines))
        elif letter == "A":
            row -= int(number or 1)
            assert row >= max(0, len(lines) - HEIGHT), "it reached for what has scrolled away"
        elif letter == "K":
            lines[row] = ""
        else:
            assert letter in "mhl", f"unknown sequence {letter!r}"
    return [line.rstrip() for line in lines]


class Reader:
    """A screen, and the events of a turn to show on it."""

    def __init__(self, *, thinking: bool = False) -> None:
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=True, width=WIDTH, height=HEIGHT)
        self.screen = Screen(console, thinking=thinking)
        self._seq = 0
        self.path: tuple[str, ...] = ()
        self.see(events.TurnStarted, turn="t")
        self.see(events.AttemptStarted)

    def see(self, kind: type[events.Event], *fields: Any, **named: Any) -> None:
        self._seq += 1
        self.screen.show(kind(self._seq, 1, 1, self.path, *fields, **named))

    def read(self, *chunks: str) -> None:
        for chunk in chunks:
            self.see(events.TextChunk, chunk)

    def end(self, status: Any = "completed", **named: Any) -> list[str]:
        self.see(events.TurnEnded, turn="t", status=status, **named)
        return self.left

    @property
    def left(self) -> list[str]:
        return [line for line in replay(self.file.getvalue()) if line]


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.screen.close()


def test_a_long_answer_scrolls_and_every_line_stands_once(reader: Reader) -> None:
    words = [f"line {n}\n\n" for n in range(50)]
    reader.read(*words)
    assert reader.end() == [word.strip() for word in words]


def test_a_blank_line_stands_between_two_blocks_and_none_round_them(reader: Reader) -> None:
    reader.read("One.\n\n", "- Two.\n\n", "Three.\n\n", "Four.")
    reader.end()
    text = "\n".join(replay(reader.file.getvalue()))
    assert text.rstrip("\n") == "One.\n\n • Two.\n\nThree.\n\nFour."


def test_a_block_higher_than_the_terminal_stands_whole_in_the_end(reader: Reader) -> None:
    reader.read("Before.\n\n", *(f"{n}. item\n" for n in range(1, 41)), "\nAfter.")
    left = [line.strip() for line in reader.end()]
    assert left == ["Before.", *(f"{n} item" for n in range(1, 41)), "After."]


def test_of_a_block_higher_than_the_terminal_the_last_lines_are_drawn(reader: Reader) -> None:
    reader.read(*(f"{n}. item\n" for n in range(1, 41)))
    reader.see(events.ModelRetried, "Once more.", 0.0)  # draws all anew
    drawn = [line.strip() for line in reader.left]
    assert drawn[-6:] == [f"{n} item" for n in range(35, 41)]
    assert "20 item" not in drawn


@pytest.mark.rule("R-STREAM-5")
def test_an_answer_that_is_taken_back_unprinted_leaves_no_trace(reader: Reader) -> None:
    reader.read("A wrong ans")
    reader.see(events.AttemptDiscarded, "the model was asked again")
    reader.see(events.AttemptStarted)
    reader.read("Right.")
    assert reader.end() == ["Right."]


@pytest.mark.rule("R-STREAM-5")
def test_a_printed_answer_that_is_taken_back_is_said_to_be(reader: Reader) -> None:
    reader.read("Wrong.\n\nAnd more.\n\nAnd")
    reader.see(events.AttemptDiscarded, "it is no JSON")
    reader.see(events.AttemptStarted)
    reader.read("Right.")
    taken_back = "The answer so far is taken back: it is no JSON."
    assert " ".join(reader.end()) == f"Wrong. {taken_back} Right."


def test_thinking_is_folded_to_its_length(reader: Reader) -> None:
    for chunk in ("Let me ", "see.\n", "Well."):
        reader.see(events.ThinkingChunk, chunk)
    reader.read("Yes.")
    assert reader.end() == ["thought for 17 characters", "Yes."]


def test_thinking_is_shown_on_demand_apart_from_the_answer() -> None:
    reader = Reader(thinking=True)
    for chunk in ("Let me ", "see.\n", "Well."):
        reader.see(events.ThinkingChunk, chunk)
    reader.read("Yes.")
    assert reader.end() == ["Let me see.", "Well.", "Yes."]


def test_a_call_is_shown_with_its_arguments_result_and_time(reader: Reader) -> None:
    reader.read("I look.")
    reader.see(events.ToolArguments, 0, "a", "look", "{}")
    reader.see(events.ToolStarted, "a", "look", {"at": "Oslo"})
    reader.see(events.ToolStarted, "b", "look", None)
    reader.see(events.ToolFinished, "b", "look", False, "no JSON", 0.0)
    reader.see(events.ToolFinished, "a", "look", True, "fog\n" * 9, 1.26)
    assert reader.end()[:3] == [
        "I look.",
        "✗ look(?) → no JSON  0.0 s",
        '✓ look(at="Oslo") → fog fog fog fog fog',
    ]


def test_what_a_sub_agent_says_is_not_the_answer_and_its_calls_stand_below(reader: Reader) -> None:
    reader.see(events.ToolStarted, "a", "ask", {})
    reader.path = ("a",)
    reader.read("I am the sub-agent.\n\nMore.")
    reader.see(events.ToolStarted, "b", "look", {})
    reader.see(events.ToolFinished, "b", "look", True, "fog", 0.0)
    reader.path = ()
    reader.see(events.ToolFinished, "a", "ask", True, "fog", 0.0)
    reader.read("Fog.")
    assert reader.end() == ["  ✓ look() → fog  0.0 s", "✓ ask() → fog  0.0 s", "Fog."]


def test_a_call_that_never_started_is_shown_too(reader: Reader) -> None:
    reader.see(events.ToolFinished, "a", "look", False, "Not allowed.", 0.0)
    assert reader.end() == ["✗ look(…) → Not allowed.  0.0 s"]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("cancelled", "Cancelled. What had come is kept."),
        ("limit", "Stopped: too much"),
        ("blocked", "Blocked by doorman: too much"),
        ("paused", "Paused: too much"),
    ],
)
def test_a_turn_that_did_not_complete_says_so(reader: Reader, status: str, says: str) -> None:
    reader.read("So f")
    assert reader.end(status, reason="too much", blocked_by="doorman") == ["So f", says]


def test_a_retry_is_told(reader: Reader) -> None:
    reader.see(events.ModelRetried, "The line is busy.", 1.5)
    assert reader.end() == ["The line is busy. Trying again in 1.5 s."]


def test_what_would_steer_the_terminal_is_not_written(reader: Reader) -> None:
    reader.read("\x1b]0;owned\x07 a\x9b2J [bold]b")
    reader.see(events.ToolStarted, "a", "look", {"at": "\x1b[2J"})
    reader.see(events.ToolFinished, "a", "look", True, "\x1b[2J[red]", 0.0)
    assert reader.end() == [
        "�]0;owned� a�2J [bold]b",
        '✓ look(at="\\u001b[2J") → �[2J[red]  0.0',
        "s",
    ]  # fmt: skip
    assert "\x1b]0" not in reader.file.getvalue()
    assert "\x1b[2J" not in reader.file.getvalue()


def test_an_interrupted_turn_leaves_nothing_half_drawn(reader: Reader) -> None:
    reader.read("So far.\n\nAnd more.\n\nAnd")
    reader.screen.close()
    assert reader.left == ["So far."]
    reader.screen.close()
