"""How commands end: the exit codes, and errors as one sentence on standard error.

    0    done
    1    the turn failed, or the store did; what serves was ended by a third signal
    2    wrong usage or configuration; nothing was done
    3    the turn was stopped: a limit, a block
    4    the turn waits for answers; `retinue resume` goes on with it
    130  interrupted by Ctrl-C, or not confirmed

With `--debug` the traceback is shown too; the codes are the same.
"""

import signal
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from retinue.chains import Status
from retinue.cli.wording import safe
from retinue.errors import ConfigError, RetinueError

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
STOPPED: Final = 3
WAITS: Final = 4
INTERRUPTED: Final = 130

_OF_STATUS: Final[dict[Status, int]] = {
    "completed": DONE,
    "failed": FAILED,
    "limit": STOPPED,
    "blocked": STOPPED,
    "paused": WAITS,
    "cancelled": INTERRUPTED,
}


def code_of(status: Status) -> int:
    """The exit code of a turn that ended so."""
    return _OF_STATUS[status]


@contextmanager
def told(debug: bool) -> Generator[None]:
    """Inside, an error ends the command with a sentence and its exit code.

    Raises:
        typer.Exit: there was an error, or Ctrl-C, also in place of a "yes".
    """
    try:
        yield
    except (typer.Exit, BrokenPipeError):  # a reader that left, as `head` does, is typer's to end
        raise
    except (KeyboardInterrupt, typer.Abort):
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        tell(error, debug=debug)
        raise typer.Exit(USAGE if isinstance(error, ConfigError) else FAILED) from error


def on_hangup(end: Callable[[int, FrameType | None], object]) -> None:
    """Has `end` called when the terminal is closed, unless `nohup` was said."""
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, end)


def tell(error: BaseException, *, debug: bool = False) -> None:
    """Writes an error to standard error: a sentence, with `debug` after its traceback."""
    if debug:
        traceback.print_exception(error)
    print(f"retinue: {sentence_of(error, debug=debug)}", file=sys.stderr, flush=True)


def sentence_of(error: BaseException, *, debug: bool = False) -> str:
    """What a user is told of an error. Errors of the library speak for themselves."""
    if isinstance(error, RetinueError):
        return safe(" ".join([str(error), *getattr(error, "__notes__", ())]))
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return safe(said if debug else f"{said} (--debug shows where)")
