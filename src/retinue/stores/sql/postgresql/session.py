"""How a connection to PostgreSQL begins: what it asks of the server, and who notices its end.

A client that is gone without a word (its machine lost its power, the network is cut) is noticed
after 25 seconds, on both sides: then the server ends its transaction and frees its locks. A
process that dies is noticed at once, as its system closes its connections.
"""

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from retinue.errors import StoreError
from retinue.stores.sql.postgresql import failures
from retinue.stores.sql.postgresql.address import Address

if TYPE_CHECKING:
    import psycopg

    Session: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_CLIENT: Final = {
    "application_name": "retinue",
    "connect_timeout": 10,  # seconds, per host
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}
"""Settings of libpq, where neither the URL nor the environment makes them."""

_SERVER: Final = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


def connect(address: Address, timeout: float) -> "Session":
    """A new connection, in autocommit mode, that looks for its tables in the address's schema.

    Args:
        address: where.
        timeout: seconds that a statement may take.

    Raises:
        StoreError: there is no connection, or texts of the database are not in UTF-8.
    """
    import psycopg

    options: dict[str, Any] = {k: v for k, v in _CLIENT.items() if k not in address.given}
    try:
        session = psycopg.connect(address.url, autocommit=True, client_encoding="UTF8", **options)
    except psycopg.Error as error:
        raise failures.refused(error, address) from error
    try:
        encoding = session.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"{address} keeps its texts in {encoding}, which cannot hold all of them; make a"
                " database with ENCODING 'UTF8'."
            )
        _set(session, {**_SERVER, "statement_timeout": str(max(1, round(timeout * 1_000)))})
        if address.schema is not None:
            session.execute(
                "SELECT set_config('search_path', quote_ident(%s), false)", (address.schema,)
            )
    except BaseException:
        session.close()
        raise
    return session


def _set(session: "Session", settings: dict[str, str]) -> None:
    session.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[])"
        " AS settings(name, value)",
        (list(settings), list(settings.values())),
    )
