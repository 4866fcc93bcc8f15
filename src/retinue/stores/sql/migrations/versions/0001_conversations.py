"""Conversations and their entries."""

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
        sa.UniqueConstraint("id", name="retinue_conversations_id"),
    )
    op.create_index(
        "retinue_conversations_by_owner", "retinue_conversations", ["owner", "updated", "key"]
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
        sa.UniqueConstraint("conversation", "message", name="retinue_entries_message"),
    )


def downgrade() -> None:
    """Removes them, with all that they hold."""
    op.drop_table("retinue_entries")
    op.drop_table("retinue_conversations")
