"""Our two tables beside those of DBOS, made where they are not there yet."""

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError


def create(table: sa.Table, engine: sa.Engine) -> None:
    """Makes a table; workers may start at the same time."""
    try:
        with engine.begin() as db:
            table.create(db, checkfirst=True)
    except (IntegrityError, OperationalError, ProgrammingError):
        if not sa.inspect(engine).has_table(table.name):  # else another worker was faster
            raise
