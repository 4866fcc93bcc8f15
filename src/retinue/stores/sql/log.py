"""What is done to the tables: one function per operation, each within a transaction of the caller.

The owner is checked in the same transaction as the work (R-MEM-9). Plain SQL of SQLAlchemy Core;
nothing here knows which database it is.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Executable,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)

from retinue.messages import Message
from retinue.messages.codec import decode
from retinue.stores import rules
from retinue.stores.base import EVERYONE, Asker, Entry, EntryState, Summary
from retinue.stores.sql.tables import Sought, sought
from retinue.stores.sql.tables import conversations as c
from retinue.stores.sql.tables import entries as e
from retinue.stores.sql.tables import pauses as p

Forms = Mapping[str, tuple[Message, bytes]]
"""Messages and their stored forms, by id, in order."""

_find = select(c.c.key, c.c.owner, c.c.messages, c.c.last, c.c.question).where(
    sought(c.c.id) == bindparam("id", type_=Sought)
)
_find_to_write = _find.with_for_update()  # a no-op in SQLite, where the transaction is the lock
_begin = insert(c).returning(c.c.key)
_insert = insert(e)
_touch = (
    update(c)
    .where(c.c.key == bindparam("of"))
    .values(
        title=bindparam("title"),
        question=bindparam("question"),
        messages=bindparam("messages"),
        last=bindparam("last"),
        updated=bindparam("updated"),
    )
)
_grow = (
    update(c)
    .where(c.c.key == bindparam("of"))
    .values(messages=bindparam("messages"), last=bindparam("last"), updated=bindparam("updated"))
)
_retitle = update(c).where(c.c.key == bindparam("of")).values(title=bindparam("title"))
_stamp = update(c).where(c.c.key == bindparam("of")).values(updated=bindparam("updated"))
_this_message = and_(
    e.c.conversation == bindparam("of"), sought(e.c.message) == bindparam("name", type_=Sought)
)
_mark = update(e).where(_this_message).values(state=bindparam("state"))
_rewrite = update(e).where(_this_message).values(body=bindparam("body")).returning(e.c.position)
_among = select(e.c.message).where(
    e.c.conversation == bindparam("of"),
    sought(e.c.message).in_(bindparam("names", type_=Sought, expanding=True)),
)
_entries = (
    select(e.c.position, e.c.turn, e.c.state, e.c.at, e.c.body)
    .where(e.c.conversation == bindparam("of"))
    .limit(bindparam("most"))
)
_first = _entries.order_by(e.c.position)
_last = _entries.where(e.c.position < bindparam("end")).order_by(e.c.position.desc())
_listed = (
    select(
        c.c.id,
        c.c.owner,
        c.c.title,
        c.c.messages,
        c.c.created,
        c.c.updated,
        c.c.parent,
        c.c.forked_at,
        exists().where(p.c.conversation == c.c.key).label("paused"),
    )
    .order_by(c.c.updated.desc(), c.c.key.desc())
    .limit(bindparam("most"))
)
_listed_of_one = _listed.where(sought(c.c.owner) == bindparam("whose", type_=Sought))
_listed_of_none = _listed.where(sought(c.c.owner).is_(None))
_remove_entries = delete(e).where(e.c.conversation == bindparam("of"))
_remove_pause = delete(p).where(p.c.conversation == bindparam("of"))
_remove = delete(c).where(c.c.key == bindparam("of"))


def append(
    connection: Connection,
    conversation: str,
    owner: Asker,
    forms: Forms,
    turn: str,
    states: Mapping[str, EntryState],
) -> None:
    """See `Store.append`. The caller's transaction must be one that writes."""
    row = _look(connection, _find_to_write, conversation, owner)
    old = _among_those(connection, row.key, list({**forms, **states})) if row else frozenset[str]()
    new = [form for name, form in forms.items() if name not in old]
    older = {name: state for name, state in states.items() if name in old}
    for name in states:
        if name not in old and name not in forms:
            raise rules.message_not_found(conversation, name)
    if not new and not older:
        return
    now = time.time()
    if row is None:
        key, last, question = _create(connection, conversation, owner, now), 0, None
    else:
        key, last, question = row.key, row.last, row.question
    if older:
        connection.execute(
            _mark, [{"of": key, "name": name, "state": state} for name, state in older.items()]
        )
    if not new:
        connection.execute(_stamp, {"of": key, "updated": now})
        return
    connection.execute(
        _insert,
        [
            {
                "conversation": key,
                "position": position,
                "message": message.id,
                "turn": turn,
                "state": states.get(message.id, ""),
                "at": now,
                "body": body.decode(),
            }
            for position, (message, body) in enumerate(new, last + 1)
        ],
    )
    count = row.messages if row else 0
    values = {"of": key, "messages": count + len(new), "last": last + len(new), "updated": now}
    asked = None
    if question is None:
        asked = rules.first_question([message for message, _ in new], last)
    if asked is None:
        connection.execute(_grow, values)
    else:
        connection.execute(_touch, {**values, "title": asked[0], "question": asked[1]})


def revise(
    connection: Connection, conversation: str, owner: Asker, message: Message, body: bytes
) -> None:
    """See `Store.revise`."""
    row = _existing(connection, _find_to_write, conversation, owner)
    position = connection.scalar(
        _rewrite, {"of": row.key, "name": message.id, "body": body.decode()}
    )
    if position is None:
        raise rules.message_not_found(conversation, message.id)
    if row.question == position:
        # A question is often revised because of what it says: the list must not go on saying it.
        connection.execute(_retitle, {"of": row.key, "title": rules.question_of(message)})
    connection.execute(_stamp, {"of": row.key, "updated": time.time()})


def tail(
    connection: Connection, conversation: str, owner: Asker, limit: int, end: int
) -> list[Entry]:
    """See `Store.tail`; the positions are below `end`.

    Raises:
        FormatError: a row holds no message.
    """
    row = _look(connection, _find, conversation, owner)
    if row is None:
        return []
    rows = connection.execute(_last, {"of": row.key, "end": end, "most": limit}).all()
    return _read(reversed(rows))


def head(connection: Connection, conversation: str, owner: Asker, limit: int) -> list[Entry]:
    """See `Store.head`.

    Raises:
        FormatError: a row holds no message.
    """
    row = _look(connection, _find, conversation, owner)
    if row is None:
        return []
    return _read(connection.execute(_first, {"of": row.key, "most": limit}))


def known(
    connection: Connection, conversation: str, owner: Asker, ids: Sequence[str]
) -> frozenset[str]:
    """See `Store.known`."""
    row = _look(connection, _find, conversation, owner)
    return _among_those(connection, row.key, ids) if row else frozenset()


def conversations(connection: Connection, owner: Asker, limit: int) -> list[Summary]:
    """See `Store.conversations`."""
    if owner is EVERYONE:
        rows = connection.execute(_listed, {"most": limit})
    elif owner is None:
        rows = connection.execute(_listed_of_none, {"most": limit})
    else:
        rows = connection.execute(_listed_of_one, {"most": limit, "whose": owner})
    return [Summary(*row) for row in rows]


def remove(connection: Connection, conversation: str, owner: Asker) -> None:
    """See `Store.delete`."""
    row = _existing(connection, _find_to_write, conversation, owner)
    for statement in (_remove_entries, _remove_pause, _remove):
        connection.execute(statement, {"of": row.key})


def key_of(connection: Connection, conversation: str, owner: Asker) -> int | None:
    """The key of a conversation that this owner may see, or None."""
    row = _look(connection, _find, conversation, owner)
    return None if row is None else row.key


def key_to_write(connection: Connection, conversation: str, owner: Asker) -> int:
    """The key of a conversation that must be there, its row held until the transaction ends."""
    return _existing(connection, _find_to_write, conversation, owner).key


def is_taken(connection: Connection, conversation: str) -> bool:
    """Whether the id is in use, by whomever."""
    return connection.execute(_find, {"id": conversation}).first() is not None


def _look(
    connection: Connection, find: Executable, conversation: str, owner: Asker
) -> Row[Any] | None:
    """The conversation's row. None if it is not there; not found if it is somebody else's."""
    row = connection.execute(find, {"id": conversation}).first()
    if row is not None and not rules.may_see(row.owner, owner):
        raise rules.not_found(conversation)
    return row


def _existing(
    connection: Connection, find: Executable, conversation: str, owner: Asker
) -> Row[Any]:
    row = _look(connection, find, conversation, owner)
    if row is None:
        raise rules.not_found(conversation)
    return row


def _create(connection: Connection, conversation: str, owner: Asker, now: float) -> int:
    return connection.execute(
        _begin,
        {
            "id": conversation,
            "owner": rules.owner_of_new(conversation, owner),
            "title": "",
            "question": None,
            "messages": 0,
            "last": 0,
            "created": now,
            "updated": now,
        },
    ).scalar_one()


def _read(rows: Iterable[Sequence[Any]]) -> list[Entry]:
    return [
        Entry(position, turn, decode(body), state, at) for position, turn, state, at, body in rows
    ]


def _among_those(connection: Connection, key: int, ids: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    for names in rules.chunks(ids):
        found.update(connection.scalars(_among, {"of": key, "names": names}))
    return frozenset(found)
