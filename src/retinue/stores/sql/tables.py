"""The tables, as the newest migration leaves them. A test holds the two together.

What differs between the databases is said here once: how a text that users choose is kept, and how
it is found. Such a text has up to 1,000 characters, any of them.
"""

import hashlib
import re
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    func,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

VERSION_TABLE: Final = "retinue_version"

_ESCAPED: Final = re.compile(r"\\(\\|000)")


class _Escaped(TypeDecorator[str]):
    """A text in PostgreSQL, which holds no NUL: as its bytea, in the format `escape`.

    Only NUL and the backslash look different there; `decode(column, 'escape')` gives the bytes.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return value.replace("\\", "\\\\").replace("\x00", "\\000")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        if value is None or "\\" not in value:
            return value
        return _ESCAPED.sub(lambda found: "\\" if found[1] == "\\" else "\x00", value)


class _Digest(TypeDecorator[str]):
    """What a text is found by in PostgreSQL, whose index rows are shorter than some texts."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        if value is None:
            return None
        # Half a surrogate pair is stored nowhere; asked for, it is simply not found.
        return hashlib.sha256(value.encode(errors="surrogatepass")).digest()


_Name = Text().with_variant(_Escaped(), "postgresql")
Sought: Final = Text().with_variant(_Digest(), "postgresql")
"""The type of a parameter that is compared to `sought(column)`."""


class _Sought(GenericFunction[str]):
    name = "retinue_sought"
    inherit_cache = True
    type = Sought


@compiles(_Sought)
def _by_itself(element: _Sought, compiler: Any, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_Sought, "postgresql")
def _by_digest(element: _Sought, compiler: Any, **options: Any) -> str:
    return f"sha256(decode({compiler.process(element.clauses, **options)}, 'escape'))"


def sought(column: Column[Any]) -> ColumnElement[str]:
    """What a column of texts is searched and indexed by: the text, in PostgreSQL its SHA-256."""
    return func.retinue_sought(column)


metadata = MetaData()

_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only INTEGER keys by itself

conversations = Table(
    "retinue_conversations",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("id", _Name, nullable=False),
    Column("owner", _Name),
    Column("title", _Name, nullable=False),
    Column("question", BigInteger, comment="the position of the message that gives the title"),
    Column("messages", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False, comment="the highest position in use"),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("parent", _Name, comment="the conversation that it was forked from"),
    Column("forked_at", BigInteger, comment="the last position that it has from there"),
    Index("retinue_conversations_by_time", "updated", "key"),
)

entries = Table(
    "retinue_entries",
    metadata,
    Column(
        "conversation",
        _Key,
        ForeignKey(conversations.c.key, name="retinue_entries_conversation", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("position", BigInteger, nullable=False),
    Column("message", _Name, nullable=False),
    Column("turn", _Name, nullable=False),
    Column("state", String(16), nullable=False),
    Column("at", Double, nullable=False),
    # As it was encoded: PostgreSQL's jsonb refuses an escaped NUL and changes numbers.
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("conversation", "position", name="retinue_entries_key"),
)

pauses = Table(
    "retinue_pauses",
    metadata,
    Column(
        "conversation",
        _Key,
        ForeignKey(conversations.c.key, name="retinue_pauses_conversation", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("id", _Name, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

# Indexes, not constraints: those of PostgreSQL are of columns only.
Index("retinue_conversations_id", sought(conversations.c.id), unique=True)
Index(
    "retinue_conversations_by_owner",
    sought(conversations.c.owner),
    conversations.c.updated,
    conversations.c.key,
)
Index("retinue_entries_message", entries.c.conversation, sought(entries.c.message), unique=True)

versions = Table(
    VERSION_TABLE,
    MetaData(),  # Alembic's own table: not among those that it compares
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
