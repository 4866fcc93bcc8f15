"""Pauses and forks: one function per operation, each within a transaction of the caller.

The rows of messages are the business of `log`.
"""

import time
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from retinue.stores import rules
from retinue.stores.base import Asker, Held
from retinue.stores.sql import log
from retinue.stores.sql.tables import Sought, sought
from retinue.stores.sql.tables import conversations as c
from retinue.stores.sql.tables import entries as e
from retinue.stores.sql.tables import pauses as p

_hold: Final = insert(p)
_held: Final = select(p.c.id, p.c.document).where(p.c.conversation == bindparam("of"))
_drop: Final = delete(p).where(p.c.conversation == bindparam("of"))
_release: Final = (
    delete(p)
    .where(
        p.c.conversation == bindparam("of"),
        sought(p.c.id) == bindparam("name", type_=Sought),
    )
    .returning(p.c.conversation)
)
_ENTRY: Final = (e.c.position, e.c.message, e.c.turn, e.c.state, e.c.at, e.c.body)
_copy: Final = insert(e).from_select(
    ["conversation", *(column.name for column in _ENTRY)],
    select(bindparam("new", type_=c.c.key.type), *_ENTRY).where(
        e.c.conversation == bindparam("of"), e.c.position <= bindparam("end")
    ),
)
_copy_pause: Final = insert(p).from_select(
    ["conversation", "id", "document"],
    select(bindparam("new", type_=c.c.key.type), p.c.id, p.c.document).where(
        p.c.conversation == bindparam("of")
    ),
)
_cut_end: Final = delete(e).where(
    e.c.conversation == bindparam("of"), e.c.position > bindparam("end")
)
_cut_head: Final = delete(e).where(
    e.c.conversation == bindparam("of"), e.c.position < bindparam("end")
)
_measure: Final = select(func.count(), func.max(e.c.position)).where(
    e.c.conversation == bindparam("of")
)
_row: Final = select(c).where(c.c.key == bindparam("of"))
_begin: Final = insert(c).returning(c.c.key)
_settle: Final = (
    update(c)
    .where(c.c.key == bindparam("of"))
    .values(
        title=bindparam("title"),
        question=bindparam("question"),
        messages=bindparam("messages"),
        updated=bindparam("updated"),
    )
)


def hold(connection: Connection, conversation: str, owner: Asker, id: str, document: bytes) -> None:
    """See `Store.hold`."""
    key = log.key_to_write(connection, conversation, owner)
    connection.execute(_drop, {"of": key})
    connection.execute(_hold, {"conversation": key, "id": id, "document": document})


def held(connection: Connection, conversation: str, owner: Asker) -> Held | None:
    """See `Store.held`."""
    key = log.key_of(connection, conversation, owner)
    row = None if key is None else connection.execute(_held, {"of": key}).one_or_none()
    return None if row is None else Held(row.id, bytes(row.document))


def release(connection: Connection, conversation: str, owner: Asker, id: str) -> bool:
    """See `Store.release`."""
    key = log.key_to_write(connection, conversation, owner)
    return connection.execute(_release, {"of": key, "name": id}).first() is not None


def fork(connection: Connection, conversation: str, owner: Asker, new: str, at: int | None) -> None:
    """See `Store.fork`."""
    key = log.key_to_write(connection, conversation, owner)
    if log.is_taken(connection, new):
        raise rules.taken(new)
    row = connection.execute(_row, {"of": key}).one()
    end = rules.end_of(None) if at is None else at
    began = row.question is not None and row.question <= end
    now = time.time()
    values = {
        "id": new,
        "owner": row.owner,
        "title": row.title if began else "",
        "question": row.question if began else None,
        "messages": 0,
        "last": min(row.last, end),
        "created": now,
        "updated": now,
        "parent": conversation,
        "forked_at": min(row.last, end),
    }
    fresh = connection.execute(_begin, values).scalar_one()
    connection.execute(_copy, {"new": fresh, "of": key, "end": end})
    if at is None:
        connection.execute(_copy_pause, {"new": fresh, "of": key})
    _recount(connection, fresh)


def rollback(connection: Connection, conversation: str, owner: Asker, after: int) -> None:
    """See `Store.rollback`."""
    key = log.key_to_write(connection, conversation, owner)
    connection.execute(_cut_end, {"of": key, "end": after})
    connection.execute(_drop, {"of": key})
    _recount(connection, key)


def prune(connection: Connection, conversation: str, owner: Asker, before: int) -> None:
    """See `Store.prune`."""
    key = log.key_to_write(connection, conversation, owner)
    connection.execute(_cut_head, {"of": key, "end": before})
    _recount(connection, key)


def _recount(connection: Connection, key: int) -> None:
    """What the conversation's row says of its entries. Positions are not given out again."""
    row = connection.execute(_row, {"of": key}).one()
    count, highest = connection.execute(_measure, {"of": key}).one()
    gone = row.question is not None and row.question > (highest or 0)
    connection.execute(
        _settle,
        {
            "of": key,
            "title": "" if gone else row.title,
            "question": None if gone else row.question,
            "messages": count,
            "updated": time.time(),
        },
    )
