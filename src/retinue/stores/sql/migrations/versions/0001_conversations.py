"""Conversations and their entries.

Some texts are longer than an index row of PostgreSQL. There they are stored with NUL and backslash
escaped, and found by the digest of their bytes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Makes the first tables."""
    key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "retinue_conversations",
        sa.Column("key", key, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column(
            "question", sa.BigInteger, comment="the position of the message that gives the title"
        ),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False, comment="the highest position in use"),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
    )
    op.create_index("retinue_conversations_by_time", "retinue_conversations", ["updated", "key"])
    op.create_table(
        "retinue_entries",
        sa.Column(
            "conversation",
            key,
            sa.ForeignKey(
                "retinue_conversations.key",
                name="retinue_entries_conversation",
                ondelete="CASCADE",
            ),
            nullable=False,
        ),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("turn", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation", "position", name="retinue_entries_key"),
    )
    op.create_index(
        "retinue_conversations_id", "retinue_conversations", [sought("id")], unique=True
    )
    op.create_index(
        "retinue_conversations_by_owner",
        "retinue_conversations",
        [sought("owner"), "updated", "key"],
    )
    op.create_index(
        "retinue_entries_message",
        "retinue_entries",
        ["conversation", sought("message")],
        unique=True,
    )


def sought(column: str) -> str | sa.TextClause:
    """What the column is searched by."""
    if op.get_bind().dialect.name == "postgresql":
        return sa.text(f"sha256(decode({column}, 'escape'))")
    return column


def downgrade() -> None:
    """Removes them, with all that they hold."""
    op.drop_table("retinue_entries")
    op.drop_table("retinue_conversations")
