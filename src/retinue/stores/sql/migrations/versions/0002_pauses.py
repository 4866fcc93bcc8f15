"""Paused turns, and where a conversation was forked from."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the table and the columns."""
    op.add_column(
        "retinue_conversations",
        sa.Column("parent", sa.Text, comment="the conversation that it was forked from"),
    )
    op.add_column(
        "retinue_conversations",
        sa.Column("forked_at", sa.BigInteger, comment="the last position that it has from there"),
    )
    op.create_table(
        "retinue_pauses",
        sa.Column(
            "conversation",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            sa.ForeignKey(
                "retinue_conversations.key",
                name="retinue_pauses_conversation",
                ondelete="CASCADE",
            ),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Removes them; turns that are paused can then not go on."""
    op.drop_table("retinue_pauses")
    op.drop_column("retinue_conversations", "forked_at")
    op.drop_column("retinue_conversations", "parent")
