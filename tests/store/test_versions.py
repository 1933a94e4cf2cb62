"""Older databases become today's by migrations, which end at the tables that a new one is made with."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from postgres import PASSWORD, USER, PostgresServer
from sqlalchemy import inspect, text
from store.test_store import KEY, RUN, TASK, reply_rows

from opsmith.errors import StoreError
from opsmith.store import Store, rows, schema
from opsmith.store.postgresql import PostgreSQL
from opsmith.store.sqlite import SQLite
from opsmith.store.versions import MIGRATIONS, prepare_tables


def database(where: Path | str) -> SQLite | PostgreSQL:
    return PostgreSQL(where) if isinstance(where, str) else SQLite(where)


def make(where: Path | str, version: int) -> None:
    """A database as that version made it, with a run of its time."""
    made = database(where)
    with made.open_transaction() as connection:
        made.hold_tables(connection)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, str(version))
        connection.execute(schema.meta.insert(), [{"name": "schema", "value": str(version)}])
        if version < 3:  # Alembic came later
            schema.revision.drop(connection)
        for table, values in [*rows.run_rows(RUN, [TASK]), *reply_rows(KEY)]:
            known = {column["name"] for column in inspect(connection).get_columns(table.name)}
            connection.execute(made.insert_new(table), {name: values[name] for name in values if name in known})
    made.close()


@pytest.mark.parametrize("version", range(1, schema.VERSION + 1))
def test_an_older_store_is_brought_up_to_date_and_keeps_what_it_holds(where: Path | str, version: int) -> None:
    make(where, version)
    with Store.open(where) as store:
        assert store.sum_usage(RUN.id).requests == 1
        assert [task.id for task in store.read_tasks(RUN.id)] == [TASK.id]
        before = store.read_contents(RUN.id)
        store.put([rows.control_row(RUN.id, "pause")]).result()
        assert store.is_paused(RUN.id)
        store.put([rows.control_row(RUN.id, "resume")]).result()
        assert not store.is_paused(RUN.id)
    with Store.open(where) as store:
        assert store.read_contents(RUN.id) == before


@pytest.mark.parametrize("version", range(schema.VERSION + 1))
def test_migrations_end_at_the_tables_of_a_new_database(where: Path | str, version: int) -> None:
    if version:
        make(where, version)
    made = database(where)
    prepare_tables(made)
    with made.open_transaction() as connection:
        found = compare_metadata(MigrationContext.configure(connection), schema.metadata)
        assert [item for item in found if "alembic_version" not in repr(item)] == []
        indices = {
            index["name"] for table in schema.metadata.tables for index in inspect(connection).get_indexes(table)
        }
        mark = connection.execute(text("SELECT value FROM meta WHERE name = 'schema'")).scalar()
        alembic = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    made.close()
    assert indices == {index.name for table in schema.metadata.tables.values() for index in table.indexes}
    assert mark == alembic == str(schema.VERSION)


@pytest.mark.parametrize("version", [1, 3])
def test_of_several_that_open_an_older_store_at_once_one_migrates_it(where: Path | str, version: int) -> None:
    make(where, version)
    together = threading.Barrier(4)

    def count(_: int) -> int:
        together.wait()
        with Store.open(where) as store:
            return store.sample_count(RUN.id)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(4))) == [1, 1, 1, 1]
    made = database(where)
    with made.open_transaction() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    made.close()


def test_a_migration_that_fails_changes_nothing(where: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(where, 1)
    made = database(where)
    with made.open_transaction() as connection:
        connection.execute(text("CREATE TABLE batch_failure (taken INTEGER)"))
    with pytest.raises(StoreError, match="already exists"):
        Store.open(where)
    with made.open_transaction() as connection:
        tables = set(inspect(connection).get_table_names())
        assert connection.execute(text("SELECT value FROM meta WHERE name = 'schema'")).scalar() == "1"
    made.close()
    assert not {"control", "reverdict"} & tables


def test_who_may_not_bring_an_older_store_up_to_date_is_told_who_may(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    make(url, 3)
    reader = f"reader_{url.rpartition('/')[2]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {reader} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"GRANT USAGE ON SCHEMA opsmith TO {reader}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA opsmith TO {reader}")
    with pytest.raises(StoreError, match="its owner brings it up to date"):
        Store.open(url.replace(f"//{USER}:", f"//{reader}:"))
    with Store.open(url) as store:
        assert store.sample_count(RUN.id) == 1


def test_a_store_of_a_later_version_is_refused_and_left_alone(where: Path | str) -> None:
    Store.open(where).close()
    made = database(where)
    with made.open_transaction() as connection:
        connection.execute(text("UPDATE meta SET value = '99' WHERE name = 'schema'"))
    with pytest.raises(StoreError, match="schema 99"):
        Store.open(where)
    made.close()
