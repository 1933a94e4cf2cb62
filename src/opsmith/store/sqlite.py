"""A store in one SQLite file (WAL): the default. A run is held by a lock on a file beside it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Table, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError
from opsmith.store.database import AGAIN, busy_error, damage_error, explain_cause, file_name

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

WAIT_S = 10.0  # for another process's transaction
LONGEST_VALUE = 2**28  # bytes of one text; a longer one is refused, read or written
CACHE_KIB = 32 * 1024  # of a connection, at most; rows lie in the order of hashes, so each touches pages of its own

_REMEDIES = (
    ("locked", "the program that holds it", f"another program holds it; end that one, {AGAIN}"),
    ("full", "room on the disk", f"the disk is full; make room, {AGAIN}: nothing that was received is lost"),
    ("readonly", "", "it or its folder cannot be written, as reading needs too; give write permission or copy it"),
    ("unable to open", "", "its folder does not exist or cannot be written, as reading needs too; try another --out"),
    ("not a database", "", "this file is not an opsmith store; choose another --out"),
    ("too big", "", f"a text of more than {LONGEST_VALUE >> 20} MiB; a store that this program made holds none"),
    ("disk I/O", "the disk", f"the disk refused; check it, {AGAIN}"),
)
_OF_LOCKS = (
    ("No space", "", f"the disk is full; make room, {AGAIN}"),
    ("Input/output", "", f"the disk refused; check it, {AGAIN}"),
    ("", "", "its folder cannot be written; give write permission or try another --out"),
)
_MAGIC = b"SQLite format 3\0"
_DAMAGE = ("malformed", "no such table", "no such column", "Could not decode to UTF-8")


class SQLite:
    """Fits `database.Database`."""

    is_file = True

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        self.engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": WAIT_S})
        event.listen(self.engine, "connect", lambda connection, _: _prepare_connection(connection, self.name))
        self._watching = threading.Lock()
        self._watch: sqlite3.Connection | None = None  # used for nothing but `version`, so that it sees all changes

    def hold_tables(self, connection: Connection) -> None:
        self.hold_writers(connection)

    def open_transaction(self) -> contextlib.AbstractContextManager[Connection]:
        return self.engine.begin()

    def hold_writers(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def insert_new(self, table: Table) -> Any:
        return insert(table).on_conflict_do_nothing()

    @contextlib.contextmanager
    def lock(self, run: str) -> Iterator[None]:
        path = self._lock_file(run)
        try:
            handle = _lock_file_at(path, busy_error(self.name, run))
        except OSError as error:
            raise explain_cause(self.name, f"its lock: {error}", _OF_LOCKS) from error
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # the lock ends with the handle; the next one locks the file that stays
                path.unlink()
            with contextlib.suppress(OSError):
                handle.close()

    def is_held(self, run: str) -> bool:
        try:
            with self._lock_file(run).open() as handle:
                if fcntl is None:
                    return True  # not POSIX: a process that was killed leaves its file behind
                fcntl.flock(handle.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def version(self) -> int:
        try:
            with self._watching:
                if self._watch is None:
                    self._watch = sqlite3.connect(self.name, check_same_thread=False)
                number: int = self._watch.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise StoreError(f"store {self.name}: {error}; is the file still there?") from error
        return number

    def find_damage(self) -> str:
        try:
            with self.engine.connect() as connection:
                lines = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(3)")]
        except SQLAlchemyError as error:
            if not _tells_damage(_name_cause(error)):
                raise self.explain_error(error) from error
            return _name_cause(error)
        return "" if lines == ["ok"] else "; ".join(lines)

    def explain_error(self, error: Exception) -> StoreError:
        cause = _name_cause(error)
        if _tells_damage(cause):
            if "malformed" not in cause or not _may_be_whole(self.name):
                return damage_error(self.name, cause, "a whole store")
            self.engine.dispose()  # connections that have read wrongly
            cause = "disk I/O error: what was read is not what is there"
        return explain_cause(self.name, cause, _REMEDIES)

    def close(self) -> None:
        self.engine.dispose()
        with self._watching:
            if self._watch is not None:
                self._watch.close()

    def _lock_file(self, run: str) -> Path:
        return Path(f"{self.name}.{file_name(run)}.lock")


def _name_cause(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error)


def _tells_damage(cause: str) -> bool:
    return any(words in cause for words in _DAMAGE)


def _refuse_cut(cursor: sqlite3.Cursor, name: str) -> None:
    """Raises StoreError for a file that ends before its header says so; SQLite itself counts whole pages alone.

    Pages that are missing may lie in a log beside it: then SQLite knows better. A file that is whole is not opened
    here: closing it would end the locks of all other connections of this process, and another process that believes
    itself the last one would take their log away.
    """
    if _has_log(name):
        return
    try:
        [page], [count] = (cursor.execute(f"PRAGMA {pragma}").fetchone() for pragma in ("page_size", "page_count"))
    except sqlite3.DatabaseError:
        expected = _read_stated_size(Path(name))
    else:
        expected = page * count
    size = _file_size(Path(name))
    if size < expected and not _has_log(name):
        raise damage_error(name, f"{size:,} bytes", f"{expected:,}: it was cut")


def _read_stated_size(file: Path) -> int:
    """By the header of a file that SQLite refuses, in bytes; 0 where it is none of SQLite's."""
    with contextlib.suppress(OSError), file.open("rb") as handle:
        head = handle.read(100)
        page = int.from_bytes(head[16:18])
        if head.startswith(_MAGIC):
            return int.from_bytes(head[28:32]) * (65536 if page == 1 else page) if head[24:28] == head[92:96] else 100
    return 0


def _may_be_whole(name: str) -> bool:
    """Whether a file that seems damaged is not, or cannot be read now. After an error of the disk a connection may
    believe what it could not read: one that knows nothing yet is asked."""
    try:
        with contextlib.closing(sqlite3.connect(name, timeout=WAIT_S)) as connection:
            lines = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.Error as error:
        return not _tells_damage(str(error)) and "not a database" not in str(error)
    return lines == [("ok",)]


def _has_log(name: str) -> bool:
    return any(_file_size(Path(name + end)) for end in ("-wal", "-journal"))


def _file_size(file: Path) -> int:
    """In bytes; 0 for a file that is not there."""
    return file.stat().st_size if file.exists() else 0


def _prepare_connection(connection: sqlite3.Connection, name: str) -> None:
    """A file may come from somebody else: what it holds is data, and nothing in it runs."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    cursor = connection.cursor()
    cursor.execute("PRAGMA trusted_schema=OFF")
    cursor.execute("PRAGMA cell_size_check=ON")
    _refuse_cut(cursor, name)
    _refuse_what_runs(cursor, name)
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    cursor.close()


def _refuse_what_runs(cursor: sqlite3.Cursor, name: str) -> None:
    """Raises StoreError for a trigger, view or virtual table, of which this program makes none."""
    query = "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
    entry = cursor.execute(query).fetchone()
    if entry is not None:
        kind = "virtual table" if entry[0] == "table" else entry[0]
        problem = f"given a {kind} {str(entry[1])[:80]!r}; expected tables alone"
        raise StoreError(f"store {name}: {problem}: no store, or one that was tampered with; choose another --out")


def _lock_file_at(path: Path, problem: StoreError) -> IO[str]:
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
            raise problem from error
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                return handle
        handle.close()
