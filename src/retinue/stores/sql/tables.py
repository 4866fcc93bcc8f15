"""The tables, as the newest migration leaves them. A test holds the two together."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION_TABLE: Final = "retinue_version"

metadata = MetaData()

_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only INTEGER keys by itself

conversations = Table(
    "retinue_conversations",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("id", Text, nullable=False),
    Column("owner", Text),
    Column("title", Text, nullable=False),
    Column("question", BigInteger, comment="the position of the message that gives the title"),
    Column("messages", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False, comment="the highest position in use"),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    UniqueConstraint("id", name="retinue_conversations_id"),
    Index("retinue_conversations_by_owner", "owner", "updated", "key"),
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
    Column("message", Text, nullable=False),
    Column("turn", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("conversation", "position", name="retinue_entries_key"),
    UniqueConstraint("conversation", "message", name="retinue_entries_message"),
)

versions = Table(
    VERSION_TABLE,
    MetaData(),  # Alembic's own table: not among those that it compares
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
