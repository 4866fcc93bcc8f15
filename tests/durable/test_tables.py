"""Tables that workers make when they start, at the same time too."""

from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from retinue.durable.tables import create


def engine_of(path: Path) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(f"sqlite:///{path / 'turns.db'}", poolclass=sqlalchemy.NullPool)


def table() -> sqlalchemy.Table:
    column = sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True)
    return sqlalchemy.Table("things", sqlalchemy.MetaData(), column)


def test_a_table_that_another_worker_makes_at_the_same_moment_is_used(tmp_path: Path) -> None:
    engine, things = engine_of(tmp_path), table()

    def another_is_faster(*_: object, **__: object) -> None:
        table().create(engine_of(tmp_path))

    event.listen(things, "before_create", another_is_faster)  # it was not there yet
    create(things, engine)
    with engine.begin() as db:
        db.execute(things.insert().values(id=1))


def test_a_database_that_takes_no_table_says_so(tmp_path: Path) -> None:
    with pytest.raises(OperationalError):
        create(table(), engine_of(tmp_path / "nowhere"))
