"""What a `Durable` is built from is checked here, before any of it is used."""

import importlib.util
from pathlib import Path

from retinue.errors import ConfigError, MissingExtraError


def check(name: str, version: str, lease: float, grace: float) -> None:
    """Refuses a value that cannot be one.

    Raises:
        ConfigError: names the value and what it takes.
        MissingExtraError: DBOS is not installed.
    """
    if importlib.util.find_spec("dbos") is None:
        raise MissingExtraError("Durable turns need DBOS: pip install 'retinue[dbos]'.")
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not (3 <= len(name) <= 200 and plain and name == name.lower()):
        raise ConfigError(
            f"Durable(name={name!r}) cannot be used; give 3 to 200 lower-case letters, digits, '-'"
            " and '_'."
        )
    if not version.strip() or len(version) > 200:
        raise ConfigError(f"Durable(version={version!r}): give 1 to 200 characters.")
    if not lease >= 0.2:
        raise ConfigError(f"Durable(lease={lease!r}): give 0.2 seconds or more.")
    if not grace >= 0:
        raise ConfigError(f"Durable(grace={grace!r}): give 0 seconds or more.")


def url_of(database: str | Path) -> str:
    """The URL of a database that is given as a file or a URL.

    Raises:
        ConfigError: it is of a kind that turns cannot be kept in.
    """
    text = str(database)
    if "://" not in text:
        return f"sqlite:///{Path(text).absolute()}"
    scheme = text.partition("://")[0]
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise ConfigError(
            f"Durable(database=...) has a {scheme!r} address; give a file for SQLite, or"
            " postgresql://..."
        )
    return text.replace("postgres://", "postgresql://", 1)
