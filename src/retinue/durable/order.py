"""The order in which the turns of a conversation run: a row for each, from its beginning on.

It holds also where workers die: a turn whose worker is gone keeps its place until another worker
has ended it. The rows of turns that have ended are removed by the next turn of the conversation.
"""

import hashlib
from typing import Final

import sqlalchemy as sa

from retinue.durable.tables import create

_turns: Final = sa.Table(
    "retinue_turns",
    sa.MetaData(),
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    sa.Column("turn", sa.String(512), nullable=False, unique=True),
    sa.Column("conversation", sa.String(64), nullable=False, index=True, comment="its SHA-256"),
)


class Order:
    """Whose turn it is. All methods block.

    Args:
        engine: the database.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def create(self) -> None:
        """Makes the table, where it is not there yet."""
        create(_turns, self._engine)

    def enter(self, turn: str, conversation: str) -> list[str]:
        """Gives a turn the next place, if it has none yet.

        Returns:
            the turns of the conversation that have places before it.
        """
        digest = hashlib.sha256(conversation.encode(errors="surrogatepass")).hexdigest()
        with self._engine.begin() as db:
            if db.dialect.name == "postgresql":
                # Numbers are given in the order of asking, and must be seen in that order.
                db.execute(sa.text("LOCK TABLE retinue_turns IN SHARE ROW EXCLUSIVE MODE"))
            mine = sa.select(_turns.c.number).where(_turns.c.turn == turn)
            if db.execute(mine).scalar() is None:
                row = {"turn": turn, "conversation": digest}
                db.execute(_turns.insert().values(row))
            earlier = sa.select(_turns.c.turn).where(
                _turns.c.conversation == digest,
                _turns.c.number < mine.scalar_subquery(),
            )
            return [*db.execute(earlier).scalars()]

    def forget(self, turns: list[str]) -> None:
        """Removes turns that have ended."""
        with self._engine.begin() as db:
            db.execute(_turns.delete().where(_turns.c.turn.in_(turns)))
