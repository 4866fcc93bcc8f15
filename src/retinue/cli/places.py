"""Where the command line keeps what it keeps: one folder of the user's, for nobody else to read."""

import os
import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from retinue.errors import ConfigError

VARIABLE: Final = "RETINUE_DATABASE"
"""The environment variable that names another database than the user's own."""

Place = Path | str
"""A file of SQLite, or the URL of a server."""


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


def database(given: str | None) -> Place:
    """Where the conversations are: what was given, what the variable says, or the user's own file.

    What holds :// is a URL, all else a file.

    Raises:
        ConfigError: what was given is empty, as a shell leaves it where a variable is not set.
    """
    if given is not None and not given.strip():
        raise ConfigError("--database is empty; name a database, or leave it out.")
    named = given if given is not None else os.environ.get(VARIABLE)
    if not named:
        return own_database()
    return named if "://" in named else Path(named).expanduser()


def without_login(given: str) -> str:
    """What may be printed of a file or a URL: a password stays where it was typed."""
    if "://" not in given:
        return given
    shown = re.sub("(?<=://)[^/]*@", "USER:PASSWORD@", given)
    return re.sub("(?<=[?&])([^=&]*)=[^&]*", _without_password, shown)


def _without_password(parameter: re.Match[str]) -> str:
    name = parameter[1]
    return f"{name}=PASSWORD" if unquote(name).endswith("password") else parameter[0]


def own_database() -> Path:
    """The file of this user's conversations where no other is named. It may not be there."""
    return data_folder() / "conversations.db"
