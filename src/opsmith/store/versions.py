"""Versions of the tables. An empty store gets today's, one of an earlier version since `OLDEST` is migrated (Alembic);
what is not ours, newer or from before that is refused and left as it is.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select

from opsmith.errors import StoreError
from opsmith.store import schema
from opsmith.store.database import Database

OLDEST = 7  # that a migration begins at: earlier ones were written before there was a release
MIGRATIONS = Path(__file__).with_name("migrations")


def prepare_tables(database: Database) -> None:
    """Make sure that the tables are those of `schema.VERSION`. Raises StoreError when they cannot be."""
    with database.engine.connect() as connection:
        if "meta" in _table_names(connection) and _written_version(connection) == schema.VERSION:
            return
    with database.open_transaction() as connection:
        if database.is_file and _table_names(connection) - {"meta"} and "meta" not in _table_names(connection):
            raise StoreError(f"store {database.name}: an SQLite file of another program; choose another --out")
        database.hold_tables(connection)  # of two processes, one makes the tables
        if "meta" not in _table_names(connection):
            schema.metadata.create_all(connection)
            connection.execute(schema.meta.insert(), [{"name": "schema", "value": str(schema.VERSION)}])
            connection.execute(schema.revision.insert(), [{"version_num": str(schema.VERSION)}])
        written = _written_version(connection)
        if OLDEST <= written < schema.VERSION:
            migrate_tables(connection)
        elif 0 < written < OLDEST:
            problem = f"written with schema {written}, before the first release; expected {OLDEST} or later"
            raise StoreError(f"store {database.name}: {problem}; try: another --out, and the same commands again")
        elif written != schema.VERSION:
            problem = f"written with schema {written}, this opsmith knows {schema.VERSION}"
            raise StoreError(f"store {database.name}: {problem}; use the version that wrote it or choose another one")


def migrate_tables(connection: Connection) -> None:
    """Bring older tables up to date, in the transaction of `connection`."""
    from alembic import command  # noqa: PLC0415  (slow to import, and seldom needed)
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, str(schema.VERSION))
    mark = schema.meta.update().where(schema.meta.c.name == "schema")
    connection.execute(mark.values(value=str(schema.VERSION)))


def _written_version(connection: Connection) -> int:
    query = select(schema.meta.c.value).where(schema.meta.c.name == "schema")
    version = str(connection.execute(query).scalar() or 0)
    return int(version) if version.isascii() and version.isdigit() else 0


def _table_names(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())
