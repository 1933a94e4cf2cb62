"""What happened, for ever. A store of runs that grows by rows alone, written by one thread in batches.

    with Store.open("out") as store:       # an SQLite file, or the folder that holds `opsmith.sqlite`
    with Store.open("postgresql://...") as store:
        store.put(rows).result()           # committed: `rows` are made by the functions of `opsmith.store.rows`
        store.list_runs(), store.list_samples(run)   # see `opsmith.store.queries`

Readers see what is committed, from any process. Keys never come here: only settings, prompts and replies do.
It does not decide what is stored when; that is `opsmith.learn`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError
from opsmith.store import unsaved
from opsmith.store.damage import OF_CONTENT, damage_behind
from opsmith.store.database import AGAIN, Database, Row, damage_error
from opsmith.store.deletion import delete_run
from opsmith.store.patience import Patience
from opsmith.store.queries import Reader
from opsmith.store.sqlite import SQLite
from opsmith.store.versions import prepare_tables
from opsmith.store.writer import Writer

__all__ = ["FILE", "Row", "Store"]

FILE = "opsmith.sqlite"


class Store(Reader):
    """One store. Thread-safe; a context manager. Raises StoreError when it is locked, full, foreign or newer."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._patience = Patience()
        super().__init__(database, self._patience)
        self.folder = folder  # where reports and other files go
        self._writer = Writer(database, self._patience)

    @classmethod
    def open(cls, where: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Store:
        """The store at a path or a `postgresql://` URL, made when there is none.

        A folder stands for the `opsmith.sqlite` in it. `folder`: where reports go; None: beside the file, or for a URL
        the working directory. Raises UsageError for a URL that is none of a database.
        """
        if isinstance(where, str) and "://" in where:
            from opsmith.store.postgresql import PostgreSQL  # noqa: PLC0415  (an extra)

            return cls(_prepare_database(PostgreSQL(where)), Path(folder or "."))
        file = Path(where)
        file = file / FILE if file.is_dir() or not file.suffix else file
        database = SQLite(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise database.explain_error(error) from error
        return cls(_prepare_database(database), Path(folder or file.parent))

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """Add rows, all or none. Rows that are there already are left as they are."""
        return self._writer.put(rows)

    def flush(self, seconds: float | None = None) -> None:
        """Wait until everything that was put is committed. Raises StoreError when something was not, or not in time."""
        try:
            self.put([]).result(seconds)
        except TimeoutError:
            raise StoreError(f"store {self.path}: no answer within {seconds:g} s; look at it, {AGAIN}") from None

    def recover_rows(self, run: str) -> None:
        """Put what an earlier process on this run received and could not store; see `unsaved`."""
        for file, rows in unsaved.read_kept(self.path, run):
            self.put(rows).result()
            file.unlink(missing_ok=True)

    def check_file(self) -> None:
        """Read all of a file. Raises StoreError when it is damaged."""
        if damage := self._database.find_damage():
            raise damage_error(self.path, damage, "a whole store")

    def delete_run(self, run: str) -> None:
        """Take a run out of the store, with all that is its own. Raises StoreError when some process works on it."""
        self.flush()
        with self.lock(run):
            try:
                delete_run(self._database, run)
            except (SQLAlchemyError, OSError) as error:
                raise self._database.explain_error(error) from error
            for file, _ in unsaved.read_kept(self.path, run):
                file.unlink(missing_ok=True)

    def lock(self, run: str) -> AbstractContextManager[None]:
        """Hold a run, so that no second process works on it; given back when the process ends, however it does."""
        return self._database.lock(run)

    def is_held(self, run: str) -> bool:
        """Whether some process works on the run just now."""
        return self._database.is_held(run)

    def version(self) -> int:
        """A number that is another one after every commit of any process."""
        return self._database.version()

    def wait_patiently(self) -> AbstractContextManager[None]:
        """While inside, a full disk or a server that is away is waited for instead of raising StoreError."""
        return self._patience.without_end()

    def hurry(self, seconds: float) -> None:
        """Wait no longer than that for anything. Safe in a signal handler."""
        self._patience.hurry(seconds)

    @property
    def trouble(self) -> str:
        """What writing waits for; "": it does not wait."""
        return self._writer.trouble

    def close(self) -> None:
        """Commit what waits and close the database."""
        self._patience.end()
        if self._writer.close():
            self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Raises StoreError in place of an error that what the store holds has led to."""
        damage = damage_behind(self._database, value) if isinstance(value, OF_CONTENT) else None
        self.close()
        if damage is not None:
            raise damage from value


def _prepare_database(database: Database) -> Database:
    try:
        prepare_tables(database)
    except (SQLAlchemyError, OSError) as error:
        database.close()
        raise database.explain_error(error) from error
    return database
