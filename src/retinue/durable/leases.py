"""Who is alive: a row for each worker, and what becomes of a worker whose row is not renewed.

DBOS keeps a dead worker's turns as they were until somebody says that it is dead. This says it. A
thread renews the worker's row, also while its event loop is busy; it looks for rows that were not
renewed in time, and the one worker that gets hold of such a row takes its turns over. Two that hold
a worker for dead, or one that was not dead but slow, do no harm: DBOS lets nobody record a step who
is not the turn's owner.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from retinue.durable.tables import create

_log: Final = logging.getLogger("retinue.durable")

BEATS: Final = 3
"""How often in the time of a lease it is renewed, and others are looked at."""

_workers: Final = sa.Table(
    "retinue_workers",
    sa.MetaData(),
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("fleet", sa.String(512), nullable=False, comment="workers that run the same agent"),
    sa.Column("beat", sa.Double, nullable=False, comment="when it was last alive, in seconds"),
)


class Leases:
    """The rows of one fleet, as one worker sees them.

    Args:
        engine: the database.
        worker: this worker's name.
        fleet: which workers may take each other's turns over.
        seconds: after which time without a sign a worker is dead.
        take_over: takes over from a dead worker, whose name it is given, turn by turn: it yields
            after each. It runs in the thread of this object.
        beat: called in that thread each time the row is renewed.
    """

    def __init__(
        self,
        engine: sa.Engine,
        worker: str,
        fleet: str,
        seconds: float,
        *,
        take_over: Callable[[str], Iterable[None]],
        beat: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._fleet = fleet
        self._seconds = seconds
        self._take_over = take_over
        self._beat = beat
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._keep, name="retinue-durable-leases", daemon=True
        )

    def join(self) -> None:
        """Adds this worker's row. From here on the others know it."""
        create(_workers, self._engine)
        with self._engine.begin() as db:
            self._renew(db)

    def start(self) -> None:
        """Renews the row from now on, and looks after the others."""
        self._thread.start()

    def leave(self) -> None:
        """Lets the row go: whatever turns this worker has left are taken over at once."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(SQLAlchemyError), self._engine.begin() as db:
            mine = _workers.c.id == self._worker
            db.execute(_workers.update().where(mine).values(beat=0.0))

    def _keep(self) -> None:
        wait = 0.0  # a new worker looks at once for what an old one has left
        while not self._over.wait(wait):
            wait = self._seconds / BEATS
            try:
                with self._engine.begin() as db:
                    self._renew(db)
                self._beat()
                self._bury()
            except Exception as error:  # the database is away: the next time may be better
                _log.warning("A worker's lease was not renewed: %s", error)

    def _renew(self, db: sa.Connection) -> None:
        if not self._set(db, self._worker):
            row = {"id": self._worker, "fleet": self._fleet, "beat": self._now(db)}
            db.execute(_workers.insert().values(row))

    def _bury(self) -> None:
        """Takes over from each dead worker that this one gets hold of first."""
        with self._engine.connect() as db:
            now, beat = self._now(db), _workers.c.beat
            # A beat far ahead was made before the clock was set back; a live worker mends its own.
            old = (beat < now - self._seconds) | (beat > now + self._seconds)
            dead = sa.select(_workers.c.id, beat).where(old & (_workers.c.fleet == self._fleet))
            rows = db.execute(dead).all()
        for worker, seen in rows:
            with self._engine.begin() as db:
                # Whoever renews it has hold of it for the time of a lease, should he die, too.
                mine = self._set(db, worker, _workers.c.beat == seen)
            if mine:
                self._take_all(worker)

    def _take_all(self, worker: str) -> None:
        """Takes the turns over one by one. They may be many, and both rows must not run out."""
        due = time.monotonic() + self._seconds / BEATS
        for _ in self._take_over(worker):
            if time.monotonic() >= due:
                with self._engine.begin() as db:
                    self._renew(db)
                    self._set(db, worker)
                due = time.monotonic() + self._seconds / BEATS
        with self._engine.begin() as db:
            db.execute(_workers.delete().where(_workers.c.id == worker))

    def _set(self, db: sa.Connection, worker: str, *only: sa.ColumnElement[bool]) -> bool:
        """Sets a worker's beat to now, if it has a row and that is such. Whether it was."""
        row = _workers.update().where(_workers.c.id == worker, *only)
        return bool(db.execute(row.values(beat=self._now(db))).rowcount)

    def _now(self, db: sa.Connection) -> float:
        """By one clock for all: that of the server, or of the machine that a file lies on."""
        if db.dialect.name == "sqlite":
            return time.time()
        clock: Any = sa.func.extract("epoch", sa.func.clock_timestamp())
        return float(db.execute(sa.select(clock)).scalar_one())
