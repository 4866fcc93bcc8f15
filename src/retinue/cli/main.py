"""The entry of the command `retinue`. It loads the commands once their packages are known to be
there, so that a missing one is a sentence and not a traceback."""

import io
import sys
from importlib.util import find_spec
from typing import Final

_NEEDED: Final = {"typer": "typer", "rich": "rich", "prompt_toolkit": "prompt-toolkit"}
_USAGE: Final = 2  # `exits.USAGE`, which is not to be had without typer


def main() -> None:
    """Runs the command that `sys.argv` names, and exits."""
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        print(
            f"retinue: the command line needs {', '.join(missing)}; install it with:"
            " pip install 'retinue[cli]'",
            file=sys.stderr,
        )
        sys.exit(_USAGE)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is no reason to end a conversation.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    from retinue.cli.app import app

    app(prog_name="retinue")
