"""Temporary stores that are measured: in a folder, or in a database of a PostgreSQL server."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from opsmith.store import FILE


@dataclass(frozen=True)
class TemporaryStore:
    """`where`: what `Store.open` takes."""

    where: str = ""

    def settle_store(self) -> int:
        """Called when the store is filled and closed; its size in bytes."""
        return Path(self.where).stat().st_size


@dataclass(frozen=True)
class _Database(TemporaryStore):
    def settle_store(self) -> int:
        """Tables are vacuumed and analysed first, as the server does by itself a minute later."""
        _run_statement(self.where, "VACUUM ANALYZE")
        return int(_run_statement(self.where, "SELECT pg_database_size(current_database())"))


@contextmanager
def make_temporary(server: str | None) -> Iterator[TemporaryStore]:
    """`server`: a postgresql:// URL whose user may create databases; None: a file. Raises StoreError, UsageError."""
    if server is None:
        with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
            yield TemporaryStore(str(Path(folder) / FILE))
        return
    name = f"opsmith_bench_{secrets.token_hex(4)}"
    _run_statement(server, f"CREATE DATABASE {name}")
    try:
        yield _Database(make_url(server).set(database=name).render_as_string(hide_password=False))
    finally:
        _run_statement(server, f"DROP DATABASE {name} WITH (FORCE)")


def _run_statement(server: str, statement: str) -> int:
    """The one number that a statement answers; 0: none."""
    from opsmith.store.postgresql import PostgreSQL  # noqa: PLC0415  (an extra)

    database = PostgreSQL(server)
    try:
        with database.engine.connect() as connection:
            rows = connection.exec_driver_sql(statement)
            return int(rows.scalar_one()) if rows.returns_rows else 0
    except SQLAlchemyError as error:
        raise database.explain_error(error) from error
    finally:
        database.close()
