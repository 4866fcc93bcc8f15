"""The view for a terminal: what is settled is printed, what still changes is drawn below it.

Blocks of the answer are printed for good as soon as they cannot change, so a long answer scrolls
like any output. The region below holds the block that is being written, cut to its last lines,
and the tools that run; it is redrawn a few times a second and erased at the end of the turn.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from retinue.chains import events
from retinue.chains.events import Event
from retinue.cli.blocks import Blocks
from retinue.cli.turns import ending_words
from retinue.cli.wording import (
    RESULT_WIDTH,
    call_words,
    count_words,
    cut,
    safe,
    seconds_words,
)

_REDRAWS: Final = 8  # a second: quick enough to read along, slow enough for a slow line
_WAITING: Final = "waiting for the model"


class Screen:
    """Draws turns on a terminal. One object serves one turn after another.

    Args:
        console: the terminal.
        thinking: whether the model's reasoning is shown, or only how long it is.
    """

    def __init__(self, console: Console, *, thinking: bool = False) -> None:
        self._console = console
        self._show_thinking = thinking
        self._live: Live | None = None
        self._answer = Blocks()
        self._printed = False  # whether any of this attempt stands printed
        self._thought = ""
        self._doing = _WAITING
        self._tools: dict[str, _Running] = {}

    def show(self, event: Event) -> None:
        """See `View.show`."""
        if isinstance(event, events.TurnStarted):
            self._begin()
        elif isinstance(event, (events.ToolStarted, events.ToolFinished)):
            self._show_tool(event)
        elif event.path:
            return  # what a sub-agent says is not the answer
        elif isinstance(event, events.TextChunk):
            self._end_thinking()
            self._doing = "writing"
            self._print_answer(self._answer.add(safe(event.text)))
        elif isinstance(event, events.ThinkingChunk):
            self._think(safe(event.text))
        elif isinstance(event, events.ToolArguments):
            self._end_thinking()
            if event.name:
                self._doing = f"calling {cut(event.name, 60)}"
        elif isinstance(event, (events.AttemptStarted, events.AttemptDiscarded)):
            self._change_attempt(event)
        elif isinstance(event, events.ModelRetried):
            self.note(f"{event.error} Trying again in {seconds_words(event.wait)}.")
        elif isinstance(event, events.TurnEnded):
            self._end(event)

    def note(self, text: str) -> None:
        """See `View.note`."""
        self._print(Text(safe(text), style="dim"))

    def close(self) -> None:
        """See `View.close`: erases the region that is redrawn, if it is still there."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    # -- the turn -----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._doing = _WAITING
        self._tools.clear()
        self._live = Live(
            _Region(self._region),
            console=self._console,
            refresh_per_second=_REDRAWS,
            transient=True,
        )
        self._live.start()

    def _end(self, event: events.TurnEnded) -> None:
        self._settle()
        self.close()
        if said := ending_words(event):
            self._print(Text(safe(said), style="yellow"))

    def _change_attempt(self, event: events.AttemptStarted | events.AttemptDiscarded) -> None:
        if isinstance(event, events.AttemptStarted):
            self._settle()
        else:
            self._end_thinking()
            self._answer.take()
            if self._printed:
                self.note(f"The answer so far is taken back: {event.reason}.")
        self._printed = False
        self._doing = _WAITING

    def _settle(self) -> None:
        """Prints what has come so far for good."""
        self._end_thinking()
        self._print_answer(self._answer.take())

    # -- text and reasoning -------------------------------------------------------------------

    def _print_answer(self, text: str) -> None:
        if text.strip():
            if self._printed:
                self._print("")  # what Markdown puts between two blocks
            self._printed = True
            self._print(_Block(Markdown(text)))

    def _think(self, text: str) -> None:
        self._doing = "thinking"
        self._thought += text
        if self._show_thinking:
            lines, newline, rest = self._thought.rpartition("\n")
            self._thought = rest
            if newline:
                self._print_thought(lines)

    def _end_thinking(self) -> None:
        thought, self._thought = self._thought, ""
        if not thought.strip():
            return
        if self._show_thinking:
            self._print_thought(thought)
        else:
            self.note(f"thought for {count_words(len(thought), 'character')}")

    def _print_thought(self, text: str) -> None:
        self._print(Text(text, style="dim italic"))

    # -- tools --------------------------------------------------------------------------------

    def _show_tool(self, event: events.ToolStarted | events.ToolFinished) -> None:
        if isinstance(event, events.ToolStarted):
            if not event.path:
                self._settle()
            call = call_words(event.name, event.arguments)
            self._tools[event.call_id] = _Running(call, len(event.path))
            return
        self._doing = _WAITING
        tool = self._tools.pop(event.call_id, None) or _Running(f"{event.name}(…)", len(event.path))
        mark = Text("✓ ", style="green") if event.ok else Text("✗ ", style="red")
        self._print(
            Text("  " * tool.depth)
            + mark
            + Text(tool.call, style="cyan")
            + Text(f" → {cut(event.text, RESULT_WIDTH)}  {seconds_words(event.seconds)}", "dim")
        )

    # -- drawing ------------------------------------------------------------------------------

    def _print(self, renderable: RenderableType) -> None:
        self._console.print(renderable, highlight=False)

    def _region(self) -> Iterator[RenderableType]:
        """What is drawn below the settled output. Rich's own thread asks for it too."""
        tools = list(self._tools.values())
        if answer := self._answer.rest.strip("\n"):
            yield _Block(Markdown(answer), spare=len(tools) + 2)
        yield from tools
        if not tools and not answer:
            doing = self._doing
            if self._thought:
                doing += f", {count_words(len(self._thought), 'character')}"
            yield Spinner("dots", Text(doing, style="dim"))


class _Region:
    """What its function gives at the moment it is drawn, so that nothing stale is drawn again."""

    def __init__(self, parts: Callable[[], Iterator[RenderableType]]) -> None:
        self._parts = parts

    def __rich__(self) -> RenderableType:
        return Group(*self._parts())


class _Running:
    """A tool that runs, and for how long."""

    def __init__(self, call: str, depth: int) -> None:
        self.call = call
        self.depth = depth
        self._began = time.monotonic()
        self._spinner = Spinner("dots")

    def __rich__(self) -> RenderableType:
        spent = seconds_words(time.monotonic() - self._began)
        words = Text("  " * self.depth) + Text(self.call, style="cyan") + Text(f"  {spent}", "dim")
        self._spinner.update(text=words)
        return self._spinner


class _Block:
    """Something without the blank lines round it, and cut to its last lines if it must fit.

    Args:
        inner: what is drawn.
        spare: lines of the terminal to leave for others, or None to draw all of it.
    """

    def __init__(self, inner: RenderableType, *, spare: int | None = None) -> None:
        self._inner = inner
        self._spare = spare

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._inner, options.update(height=None), pad=False)
        written = [n for n, line in enumerate(lines) if any(part.text.strip() for part in line)]
        if written:
            lines = lines[written[0] : written[-1] + 1]
        if self._spare is not None:
            lines = lines[-max(1, console.height - self._spare) :]
        for line in lines:
            yield from line
            yield Segment.line()
