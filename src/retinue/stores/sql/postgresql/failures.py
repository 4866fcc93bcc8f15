"""What PostgreSQL's errors mean: one sentence each, which names the place and the way out.

An error within a session has a code (SQLSTATE), a refused login only a text: it is recognised where
the server speaks English, and quoted in any case. Texts of the server hold no password.
"""

import re
from typing import TYPE_CHECKING, Final

from retinue.errors import StoreError
from retinue.stores import rules
from retinue.stores.sql.postgresql.address import Address

if TYPE_CHECKING:
    import psycopg

_LOST: Final = (
    "The connection to {place} was lost in the middle; check the server and the network, and try"
    " again over a new one."
)
_STOPPING: Final = (
    "The server of {place} is stopping or starting, or ended this connection; try again in a"
    " moment."
)
_CROWDED: Final = (
    "{place} has no free connection; end others, or raise its max_connections or this store's"
    " share of them (pool)."
)
_FORBIDDEN: Final = (
    "User {user} may not do this in {place} ({said}); grant the user the schema (USAGE, and CREATE"
    " for the first start or an upgrade), its tables and sequences."
)

_AT_THE_DOOR: Final = (
    (
        "password authentication failed|no password supplied",
        "{place} refused the password of user {user}; check both in the URL.",
    ),
    (
        "authentication failed|no pg_hba.conf entry|is not permitted to log in",
        "{place} does not let user {user} in from here ({said}); check the user, or let it in with"
        " an entry in pg_hba.conf.",
    ),
    (
        'database ".*" does not exist',
        "{place} is not there; make it with `createdb`, or check the name in the URL.",
    ),
    (
        'role ".*" does not exist',
        "{place} knows no user {user}; make it with `createuser`, or check the URL.",
    ),
    (
        "permission denied for database",
        "User {user} may not connect to {place}; grant the user CONNECT on it.",
    ),
    ("too many connections|too many clients|connection slots", _CROWDED),
    ("is shutting down|is starting up|in recovery mode", _STOPPING),
)
_UNREACHABLE: Final = (
    "{place} cannot be reached ({said}); start the server, or check host, port, network and"
    " the parameters of the URL."
)

_IN_A_SESSION: Final = {
    "08": _LOST,
    "25006": "{place} may only be read; give the address of the primary server, or let user {user}"
    " write.",
    "42501": _FORBIDDEN,
    "42P01": "The tables are gone from {place}; try again, and they are made anew, empty.",
    "3F000": "The schema is gone from {place}; try again, and it is made anew, empty.",
    "53100": "There is no space left for {place}; free some on the server's disk and try again.",
    "53200": "{place} has no memory left for this; give the server more, or store smaller"
    " messages.",
    "53300": _CROWDED,
    "54000": "A message is larger than {place} can hold in one row; store its files elsewhere and"
    " keep their URLs.",
    "55P03": "A statement waited too long for a lock in {place}; end the transaction that"
    " holds it.",
    "57014": "A statement took longer in {place} than the {timeout:g} seconds that it may, or was"
    " cancelled there; end what blocks it, or give PostgreSQL a longer timeout.",
    "57P": _STOPPING,
    "58": "{place} cannot read or write its files ({said}); check the server's disk.",
    "XX001": "{place} is damaged ({said}); restore it from a backup.",
    "XX002": "An index of {place} is damaged ({said}); rebuild it with REINDEX.",
}
"""By SQLSTATE, or by its first characters."""

_OTHER: Final = "{place} cannot be used: PostgreSQL says {said!r}."

_GONE: Final = ("42P01", "3F000")
_COLLISIONS: Final = ("23505", "40001", "40P01")


def refused(error: "psycopg.Error", address: Address) -> StoreError:
    """The sentence for a connection that did not come about."""
    # Where a name has several addresses, the first line is of the last one that was tried.
    said = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]
    sentences = (sentence for pattern, sentence in _AT_THE_DOOR if re.search(pattern, said))
    return _worded(next(sentences, _UNREACHABLE), address, said.removeprefix("FATAL:"))


def explain(error: Exception, address: Address, timeout: float) -> StoreError | None:
    """The sentence for an error within a session, or None if it is not the database's."""
    cause = _cause(error)
    if cause is None:
        return None
    said = cause.diag.message_primary or str(cause)
    state = cause.sqlstate or ("08" if _is_operational(cause) else "")
    sentences = (_IN_A_SESSION.get(state[:length]) for length in (5, 3, 2))
    return _worded(next(filter(None, sentences), _OTHER), address, said, timeout)


def nowhere(address: Address) -> StoreError:
    """The sentence for a user whose search path leads to no schema: the tables have no place."""
    return StoreError(
        f"User {address.user} has in {address} no schema to make its tables in; give schema=..., or"
        " let the user's search_path name one that is there and open to this user."
    )


def lost_lock(address: Address, conversation: str) -> StoreError:
    """The sentence for a writer whom nothing kept from others for a while."""
    return StoreError(
        f"The connection to {address} that kept other turns from writing conversation"
        f" {rules.quoted(conversation)} was lost while this one wrote it; what was stored is there,"
        " but look at what others may have stored in between, and whether a pooler on the way keeps"
        " sessions."
    )


def collides(error: Exception) -> bool:
    """Whether another transaction was in the way, so that the same one may succeed now."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate in _COLLISIONS


def tables_are_gone(error: Exception) -> bool:
    """Whether somebody dropped the tables, or the schema, under an open store."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate in _GONE


def _cause(error: Exception) -> "psycopg.Error | None":
    import psycopg
    from sqlalchemy.exc import DBAPIError

    cause = error.orig if isinstance(error, DBAPIError) else error
    return cause if isinstance(cause, psycopg.Error) else None


def _is_operational(cause: "psycopg.Error") -> bool:
    """Whether it is of the connection, where psycopg itself found out and there is no code."""
    import psycopg

    return isinstance(cause, psycopg.OperationalError)


def _worded(sentence: str, address: Address, said: str = "", timeout: float = 0.0) -> StoreError:
    words = " ".join(said.split()).rstrip(".")
    return StoreError(
        sentence.format(place=address, user=address.user, said=words, timeout=timeout)
    )
