"""The scripts that the server runs, one operation each, so that each happens whole or not at all.

They stand in `lua/`; `common.lua` and `locks.lua` say what is stored under which keys.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final, Literal

Operation = Literal[
    "append", "revise", "entries", "known", "conversations", "delete", "hold", "held", "release",
    "fork", "cut", "take", "renew", "free",
]  # fmt: skip
_LOCKING: Final = ("take", "renew", "free")


@dataclass(frozen=True)
class Script:
    """Lua, and the name that the server has for it once it has run."""

    source: str = field(repr=False)
    sha: str


@cache
def script(operation: Operation) -> Script:
    """The script of an operation, with what it shares with others before it."""
    folder = files(__package__ or __name__).joinpath("lua")
    shared = "locks" if operation in _LOCKING else "common"
    source = "\n".join(
        folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in (shared, operation)
    )
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
