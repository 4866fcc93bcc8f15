"""Where the command line keeps what it keeps: one folder of the user's, for nobody else to read."""

import os
import sys
from pathlib import Path
from typing import Final

from retinue.errors import ConfigError

VARIABLE: Final = "RETINUE_DATABASE"
"""The environment variable that names another database than the user's own."""


def data_folder() -> Path:
    """The folder of this user's data, where the system keeps such things. It may not be there."""
    if sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "retinue"


def made_data_folder() -> Path:
    """`data_folder`, made if it was not there.

    Raises:
        ConfigError: it cannot be made.
    """
    folder = data_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The folder {folder} cannot be made: {error.strerror or error}. Name a database of"
            f" your own with --database or {VARIABLE}, or keep nothing with --no-memory."
        ) from error
    return folder


def database(given: Path | None) -> Path:
    """The file of the conversations: the one given, the variable's, or the user's own."""
    if given is not None:
        return given.expanduser()
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return own_database()


def own_database() -> Path:
    """The file of this user's conversations where no other is named. It may not be there."""
    return data_folder() / "conversations.db"
