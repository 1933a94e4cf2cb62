"""What happened, for ever? An append-only store of runs in one SQLite file (WAL), written by one thread in batches.

    with Store.open("out") as store:       # a file, or the folder that holds `opsmith.sqlite`
        store.put(rows).result()           # committed: `rows` are made by the functions of `opsmith.store.rows`
        store.runs(), store.samples(run)   # see `opsmith.store.queries`

Readers see what is committed, from any process. Keys never come here: only settings, prompts and replies do.
It does not decide what is stored when; that is `opsmith.learn`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError
from opsmith.store import schema
from opsmith.store.queries import Reader
from opsmith.store.writer import Row, Writer, explain

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["FILE", "Row", "Store"]

FILE = "opsmith.sqlite"
_WAIT_S = 10.0  # for another process's transaction


class Store(Reader):
    """One store file. Thread-safe; a context manager. Raises StoreError when it is locked, full, foreign or newer."""

    def __init__(self, engine: Engine, path: str) -> None:
        super().__init__(engine, path)
        self._writer = Writer(engine, path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """The store at `path`, made when there is none; a folder stands for the `opsmith.sqlite` in it."""
        file = Path(path)
        file = file / FILE if file.is_dir() or not file.suffix else file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            engine = _engine(file)
            _prepare(engine, str(file))
        except (SQLAlchemyError, OSError) as error:
            raise explain(error, str(file)) from error
        return cls(engine, str(file))

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """Add rows, all or none. Rows that are there already are left as they are."""
        return self._writer.put(rows)

    def flush(self) -> None:
        """Wait until everything that was put is committed. Raises StoreError when something was not."""
        self.put([]).result()

    @contextlib.contextmanager
    def lock(self, run: str) -> Iterator[None]:
        """Hold a run, so that no second process works on it; given back when the process ends, however it does."""
        path = Path(f"{self.path}.{run}.lock")
        handle = _locked(path, f"store {self.path}: run {run} is being worked on by another process; wait for it")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            handle.close()

    def is_held(self, run: str) -> bool:
        """Whether some process works on the run just now."""
        path = Path(f"{self.path}.{run}.lock")
        try:
            with path.open() as handle:
                if fcntl is None:
                    return True  # not POSIX: a process that was killed leaves its file behind
                fcntl.flock(handle.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        """Commit what waits and close the file."""
        self._writer.close()
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _engine(file: Path) -> Engine:
    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": _WAIT_S})
    event.listen(engine, "connect", _pragmas)
    return engine


def _pragmas(connection: sqlite3.Connection, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _prepare(engine: Engine, path: str) -> None:
    """Make the tables in an empty file, add what an earlier version lacked; refuse what is not ours or is newer."""
    with engine.begin() as connection:
        if not _tables(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # of two processes, one makes the tables
            if not _tables(connection):
                schema.metadata.create_all(connection)
                connection.execute(schema.meta.insert(), [{"name": "schema", "value": str(schema.VERSION)}])
        if "meta" not in _tables(connection):
            raise StoreError(f"store {path}: an SQLite file of another program; choose another --out")
        query = select(schema.meta.c.value).where(schema.meta.c.name == "schema")
        written = int(connection.execute(query).scalar() or 0)
        if 0 < written < schema.VERSION:
            written = _upgrade(connection)
        if written != schema.VERSION:
            problem = f"written with schema {written}, this opsmith knows {schema.VERSION}"
            raise StoreError(f"store {path}: {problem}; use the version that wrote it or choose another --out")


def _upgrade(connection: Connection) -> int:
    """Add the tables and indices that an earlier version did not have; nothing that is there changes."""
    schema.metadata.create_all(connection)
    for table in schema.metadata.tables.values():
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    version = schema.meta.update().where(schema.meta.c.name == "schema").values(value=str(schema.VERSION))
    connection.execute(version)
    return schema.VERSION


def _tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


def _locked(path: Path, problem: str) -> IO[str]:
    """The open file, locked; a file that its last holder has just removed is no lock, so that is tried again."""
    tries = iter((True, True, False))  # `is_held` of another process holds it for a moment
    while True:
        handle = path.open("a")
        try:
            if fcntl is not None:  # None: not POSIX; two processes on one run are not noticed there
                fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.close()
            if next(tries):
                time.sleep(0.02)
                continue
            raise StoreError(problem) from error
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                return handle
        handle.close()
