"""Where a PostgreSQL database is: a URL, checked before it is used. No I/O.

The password stands in the URL alone. Nothing else here shows it, nor what could be a piece of it.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from retinue.errors import ConfigError, MissingExtraError

_SCHEMES: Final = ("postgresql", "postgres")
_PORT: Final = "5432"
_LONGEST_NAME: Final = 63  # bytes; PostgreSQL cuts a longer name short, and so finds another one
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+]{0,30}")
_AUTHORITY: Final = re.compile(
    r"""([^@/]*@)?                                 # the user and the password
        (\[[^]@/]*\]|[^]\[:,@/]*)(:\d*)?            # a host and its port
        (,(\[[^]@/]*\]|[^]\[:,@/]*)(:\d*)?)*        # and others
        (/[^@]*)?                                  # the database""",
    re.VERBOSE,
)
"""Stricter than libpq, which takes what stands after a stray @ or / of the password for a host."""
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True)
class Address:
    """A database, and the schema in it.

    Attributes:
        url: what libpq is given, the password included.
        given: the names of the settings that the URL or the environment makes.
        user: who logs in.
        server: host and port in errors; several are divided by commas.
        database: its name.
        schema: where the tables are, or None for where the server looks first.
    """

    url: str = field(repr=False)
    given: frozenset[str]
    user: str
    server: str
    database: str
    schema: str | None

    def __str__(self) -> str:
        schema = f", schema {self.schema}" if self.schema is not None else ""
        return f"PostgreSQL database {self.database} at {self.server}{schema}"


def parse(url: str, schema: str | None, extra: str) -> Address:
    """The address that a URL of libpq gives; what it leaves out is taken as psql would take it.

    Args:
        url: postgresql://…, as psql takes it too.
        schema: a schema of the database, or None.
        extra: the extra of pip that brings psycopg.

    Raises:
        ConfigError: the URL is none, or the schema is no name. The message does not repeat the URL.
        MissingExtraError: psycopg is not installed.
    """
    _check_form(url)
    if schema is not None and not (
        0 < len(schema.encode(errors="replace")) <= _LONGEST_NAME and "\x00" not in schema
    ):
        raise ConfigError(
            f"{schema!r} is no name of a schema; give 1 to {_LONGEST_NAME} bytes, or None."
        )
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtraError(
            "PostgreSQL is spoken to through psycopg and its libpq, which are not installed: pip"
            f" install 'retinue[{extra}]'."
        ) from error
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val
    }
    try:
        settings: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        # libpq quotes what it could not read, which may be the password.
        raise ConfigError(
            "The URL of the PostgreSQL database cannot be read; check its parameters, and"
            f" percent-encode special characters: {_FORM}?PARAMETER=VALUE."
        ) from None
    found = {**defaults, **settings}
    user = found.get("user", "")
    return Address(
        url=url,
        given=frozenset(found),
        user=user,
        server=_server(found),
        database=found.get("dbname") or user,
        schema=schema,
    )


def _check_form(url: str) -> None:
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"The URL of a PostgreSQL database is a text, not {type(url).__name__}.")
    scheme, divider, rest = url.partition("://")
    if not divider or scheme not in _SCHEMES:
        shown = f" begins with {scheme}" if divider and _SCHEME.fullmatch(scheme) else ""
        raise ConfigError(
            f"The URL of the PostgreSQL database{shown or ' has no scheme'}; give {_FORM}."
        )
    if "\x00" in url or not _AUTHORITY.fullmatch(rest.partition("?")[0]):
        raise ConfigError(
            "The URL of the PostgreSQL database cannot be read; percent-encode special characters"
            f" of the user and the password, such as @ and /: {_FORM}."
        )


def _server(settings: dict[str, Any]) -> str:
    hosts = str(settings.get("host") or settings.get("hostaddr") or "the local socket").split(",")
    ports = str(settings.get("port") or "").split(",")
    ports *= len(hosts) if len(ports) == 1 else 1
    return ",".join(
        f"{f'[{host}]' if ':' in host else host}:{port or _PORT}"
        for host, port in zip(hosts, ports, strict=False)
    )
