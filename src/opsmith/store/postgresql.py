"""A store on a PostgreSQL server: several machines run, read and report on it at once.

All tables lie in the schema `opsmith` of the database that the URL names. The process that works on a run holds an
advisory lock on the very connection that it writes with, so that rows of a run are written by its holder or by nobody:
when the connection is lost, so is the lock, and the next connection takes it again or the run ends.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, make_url, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from opsmith.errors import StoreError, UsageError
from opsmith.records import content_hash
from opsmith.store.database import AGAIN, busy_error, explain_cause

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
SCHEMA = "opsmith"
CONNECT_S = 5
_ALONE = 0x6F70736D  # the advisory lock under which tables are made

_CONNECTION = {
    "application_name": "opsmith",
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 30,  # seconds; a machine that vanished loses its connection, and its locks, after a minute
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # ms, for what was sent and is not acknowledged
    "options": f"-c search_path={SCHEMA} -c lock_timeout=10000 -c tcp_keepalives_idle=30"
    " -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
}
_AWAY = f"the database server is away; start it, {AGAIN}: nothing that was received is lost"
_REMEDIES = (
    ("password authentication failed", "", "check the user and the password of --store"),
    ("no password supplied", "", "give a password in --store, PGPASSWORD or ~/.pgpass"),
    ("no pg_hba.conf entry", "", "allow this host in the server's pg_hba.conf"),
    ("permission denied", "", f"grant the user CREATE on the database, or ask for a schema {SCHEMA!r}"),
    ("must be owner", "", "it is of an earlier version; its owner brings it up to date by any command"),
    ("could not translate host name", "", "check the host name of --store"),
    ("failed to resolve host", "", "check the host name of --store"),
    ("does not exist", "", "create it (createdb NAME), or check --store"),
)
_SERVER = "the database server"
# by SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
_PASSING = {
    "53100": ("room on the server's disk", f"make room there, {AGAIN}: nothing that was received is lost"),
    "53200": ("memory on the server", f"the server has no memory left; look at it, {AGAIN}"),
    "53300": ("a free connection", f"the server takes no more connections; end some, {AGAIN}"),
    "57P01": (_SERVER, _AWAY),
    "57P02": (_SERVER, _AWAY),
    "57P03": (_SERVER, _AWAY),
    "57P05": (_SERVER, _AWAY),
    "57014": ("its turn", "the server cancelled it; run the same command again"),
    "55P03": ("the program that holds a table", f"another program holds a table; end that one, {AGAIN}"),
    "25006": ("a server that can be written", f"the server takes no writes; look at it, {AGAIN}"),
    "40001": ("its turn", "two transactions met; run the same command again"),
    "40P01": ("its turn", "two transactions met; run the same command again"),
}


class PostgreSQL:
    """Fits `database.Database`. `url`: postgresql://user:password@host:port/database."""

    is_file = False

    def __init__(self, url: str) -> None:
        parsed = _parse_url(url)
        self.name = _public_name(parsed)
        try:
            engine = create_engine(parsed, connect_args=_CONNECTION, pool_pre_ping=True)
        except ImportError as error:
            raise UsageError(
                f"store {self.name}: given no package 'psycopg'; try: pip install 'opsmith[postgres]'"
            ) from error
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what its errors say again
        self._engine = engine
        self.engine: Engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._guard = threading.RLock()  # of the two below
        self._own: Connection | None = None  # the writer's
        self._was_there = False  # a connection was made once: user, host and database are right
        self._held: dict[str, int] = {}  # runs, and their keys

    def hold_tables(self, connection: Connection) -> None:
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ALONE})
        if connection.execute(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}).scalar() is None:
            connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))

    @contextlib.contextmanager
    def open_transaction(self) -> Iterator[Connection]:
        with self._guard:
            connection = self._connect_writer()
            try:
                with connection.begin():
                    yield connection
            except SQLAlchemyError:
                if connection.invalidated or connection.closed:
                    self._drop_writer()
                raise

    def hold_writers(self, connection: Connection) -> None:
        connection.execute(text(f"LOCK TABLE {SCHEMA}.text IN SHARE ROW EXCLUSIVE MODE"))

    def insert_new(self, table: Table) -> Any:
        return insert(table).on_conflict_do_nothing()

    @contextlib.contextmanager
    def lock(self, run: str) -> Iterator[None]:
        with self._guard:
            if run in self._held:  # the server would give it to the same connection twice
                raise busy_error(self.name, run)
            try:
                self._take_lock(self._connect_writer(), run)
            except (SQLAlchemyError, OSError) as error:
                self._drop_writer()  # the next connection takes again what is held
                raise self.explain_error(error) from error
        try:
            yield
        finally:
            self._give_back(run)

    def is_held(self, run: str) -> bool:
        key = _lock_key(run) & (2**64 - 1)
        query = text(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND datname = current_database() AND granted"
            " AND classid = CAST(:high AS oid) AND objid = CAST(:low AS oid) AND objsubid = 1"
        )
        return bool(self._fetch_value(query, high=str(key >> 32), low=str(key & (2**32 - 1))))

    def version(self) -> int:
        """Changes of other databases of the server count as well: a reader may look once too often, never too late."""
        return int(
            self._fetch_value(text("SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"))
        )

    def find_damage(self) -> str:
        return ""

    def explain_error(self, error: Exception) -> StoreError:
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None)
        words = str(cause)
        if state in _PASSING:
            return explain_cause(self.name, words, [("", *_PASSING[state])])
        failed = type(cause).__name__ == "OperationalError" and (state is None or state.startswith("08"))
        away = [("", _SERVER, _AWAY)] if failed or getattr(error, "connection_invalidated", False) else []
        return explain_cause(self.name, words, [*away, *_REMEDIES] if self._was_there else [*_REMEDIES, *away])

    def close(self) -> None:
        with self._guard:
            self._drop_writer()
        self._engine.dispose()

    def _connect_writer(self) -> Connection:
        """The writer's connection, which holds what this process holds."""
        if self._own is None:
            own = self._engine.connect()
            self._was_there = True
            try:
                for run in list(self._held):
                    self._take_lock(own, run)
            except BaseException:
                _drop_connection(own)
                raise
            self._own = own
        return self._own

    def _take_lock(self, connection: Connection, run: str) -> None:
        with connection.begin():
            mine = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _lock_key(run)}).scalar()
        if not mine:
            self._held.pop(run, None)
            raise busy_error(self.name, run)
        self._held[run] = _lock_key(run)

    def _give_back(self, run: str) -> None:
        with self._guard:
            key = self._held.pop(run, None)
            if key is None or self._own is None:
                return
            with contextlib.suppress(SQLAlchemyError), self._own.begin():  # a lost connection holds nothing
                self._own.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})

    def _drop_writer(self) -> None:
        if self._own is not None:
            _drop_connection(self._own)
            self._own = None

    def _fetch_value(self, query: Any, **values: Any) -> Any:
        try:
            with self.engine.connect() as connection:
                return connection.execute(query, values).scalar()
        except (SQLAlchemyError, OSError) as error:
            raise self.explain_error(error) from error


def _drop_connection(connection: Connection) -> None:
    """Close for good: a pooled connection would keep its locks."""
    with contextlib.suppress(SQLAlchemyError):
        connection.invalidate()
        connection.close()


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number
        parsed = None
    if parsed is None or parsed.drivername not in SCHEMES or not parsed.database:
        raise UsageError("--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE; given something else")
    return parsed.set(drivername="postgresql+psycopg")


def _public_name(url: URL) -> str:
    """Without password and query, which may hold one."""
    user = f"{url.username}@" if url.username else ""
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{user}{url.host or ''}{port}/{url.database}"


def _lock_key(run: str) -> int:
    """An advisory lock's key, of 63 bits."""
    return int(content_hash(SCHEMA, run)[:16], 16) >> 1
