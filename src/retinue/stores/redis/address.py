"""Where a Redis server is: a URL, checked before it is used. No I/O.

The password stands in `login` alone. Nothing else here shows it, nor what could be a piece of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from retinue.errors import ConfigError

SCHEMES: Final = ("redis", "rediss", "unix")
_PORT: Final = 6379
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+]{0,30}")
_LOGIN: Final = r"(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?"
_NETWORK: Final = re.compile(
    _LOGIN
    + r"""(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^]\[:@/?\#,]*))(?::(?P<port>\d{1,5}))?
        (?:/(?P<database>\d{0,9}))?(?:\?(?P<query>[^\#]*))?""",
    re.VERBOSE,
)
_SOCKET: Final = re.compile(_LOGIN + r"(?P<path>/[^@?#]+)(?:\?(?P<query>[^#]*))?")
_FORM: Final = "redis://USER:PASSWORD@HOST:PORT/NUMBER"
_FORMS: Final = f"{_FORM}, rediss://… or unix://USER:PASSWORD@/PATH?db=NUMBER"
_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CHECKS: Final = {
    "ssl_cert_reqs": {"required": "required", "optional": "optional", "none": "none"},
    "ssl_check_hostname": {"true": True, "false": False},
}


@dataclass(frozen=True)
class Address:
    """A numbered database of a server.

    Attributes:
        scheme: redis, rediss or unix.
        server: host and port, or the path of the socket, in errors.
        database: its number.
        where: host and port, or path, and TLS, by the names that redis-py has for them.
        login: user and password, by redis-py's names; what is not given is not there.
    """

    scheme: str
    server: str
    database: int
    where: Mapping[str, Any] = field(repr=False)
    login: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return f"Redis database {self.database} at {self.server}"

    @property
    def user(self) -> str:
        """Who logs in."""
        return self.login.get("username", "default")


def parse(url: str) -> Address:
    """The address that a URL gives: localhost, port 6379 and database 0 where it leaves them out.

    Raises:
        ConfigError: the URL cannot be read. The message does not repeat it.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"The URL of a Redis server is a text, not {type(url).__name__}.")
    scheme, divider, rest = url.partition("://")
    if not divider or scheme not in SCHEMES:
        shown = f" begins with {scheme}" if divider and _SCHEME.fullmatch(scheme) else ""
        raise ConfigError(f"The URL of the Redis server{shown or ' has no scheme'}; give {_FORMS}.")
    found = (_SOCKET if scheme == "unix" else _NETWORK).fullmatch(rest)
    if found is None or "\x00" in url or int(found.groupdict().get("port") or 0) > 65_535:
        raise ConfigError(
            "The URL of the Redis server cannot be read; percent-encode special characters of the"
            f" user and the password, such as @, : and /: {_FORMS}."
        )
    parts = {key: value for key, value in found.groupdict().items() if value}
    where, database = _parameters(scheme, parts.get("query", ""))
    if database is None:
        database = int(parts.get("database", 0))
    elif "database" in parts:
        raise ConfigError(
            "The URL of the Redis server gives two numbers of a database; leave out db=…."
        )
    if scheme == "unix":
        server = where["path"] = unquote(parts["path"])
    else:
        host = where["host"] = parts.get("six") or unquote(parts.get("name", "localhost"))
        port = where["port"] = int(parts.get("port", _PORT))
        server = f"[{host}]:{port}" if "six" in parts else f"{host}:{port}"
    login = {
        name: unquote(parts[part])
        for name, part in (("username", "user"), ("password", "password"))
        if part in parts
    }
    return Address(scheme, server, database, where, login)


def _parameters(scheme: str, query: str) -> tuple[dict[str, Any], int | None]:
    """The parameters of TLS, and the number of the database if it stands among them."""
    where: dict[str, Any] = {}
    database: int | None = None
    allowed = ("db", *(() if scheme != "rediss" else (*_FILES, *_CHECKS)))
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        pairs = [("", "")]
    for name, value in pairs:
        if name == "db" and re.fullmatch(r"\d{1,9}", value):
            database = int(value)
        elif name in allowed and name in _FILES and value:
            where[name] = value
        elif name in allowed and value in _CHECKS.get(name, ()):
            where[name] = _CHECKS[name][value]
        else:
            # Neither name nor value is repeated: a stray ? in the password begins the parameters.
            raise ConfigError(
                f"The URL of the Redis server has a parameter that means nothing; {scheme}:// takes"
                f" {', '.join(allowed)}."
            )
    return where, database
