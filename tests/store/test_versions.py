"""Databases of earlier versions become today's by migrations: shown by an example, a version that is to come."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres import PASSWORD, USER, PostgresServer
from sqlalchemy import inspect, text
from store.test_store import KEY, RUN, TASK, reply_rows

from opsmith.errors import StoreError
from opsmith.store import Store, rows, schema, versions
from opsmith.store.postgresql import PostgreSQL
from opsmith.store.sqlite import SQLite

NEXT = schema.VERSION + 1
MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{schema.VERSION}"


def upgrade() -> None:
    op.add_column("run", sa.Column("mood", sa.Text(), nullable=True))
    op.create_table("visitor", sa.Column("name", sa.Text(), primary_key=True))
"""


def database(where: Path | str) -> SQLite | PostgreSQL:
    return PostgreSQL(where) if isinstance(where, str) else SQLite(where)


def make(where: Path | str) -> None:
    """A store of today with a run."""
    with Store.open(where) as store:
        store.put([*rows.run_rows(RUN, [TASK]), *reply_rows(KEY)]).result()


def mark(where: Path | str, version: str) -> None:
    made = database(where)
    with made.open_transaction() as connection:
        connection.execute(text("UPDATE meta SET value = :version WHERE name = 'schema'"), {"version": version})
    made.close()


@pytest.fixture
def become_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, this is the version that is to come."""
    folder = shutil.copytree(versions.MIGRATIONS, tmp_path / "migrations of the next version, 100%")
    (folder / "versions" / f"v{NEXT}.py").write_text(MIGRATION)

    def advance() -> None:
        monkeypatch.setattr(versions, "MIGRATIONS", folder)
        monkeypatch.setattr(schema, "VERSION", NEXT)

    return advance


def test_an_older_store_is_brought_up_to_date_and_keeps_what_it_holds(
    where: Path | str, become_next: Callable[[], None]
) -> None:
    make(where)
    with Store.open(where) as store:
        before = store.read_contents(RUN.id)
    become_next()
    for _ in range(2):
        with Store.open(where) as store:
            assert store.sum_usage(RUN.id).requests == 1
            assert [task.id for task in store.read_tasks(RUN.id)] == [TASK.id]
            assert store.read_contents(RUN.id) == before
    made = database(where)
    with made.open_transaction() as connection:
        assert "mood" in {column["name"] for column in inspect(connection).get_columns("run")}
        assert "visitor" in inspect(connection).get_table_names()
        stated = connection.execute(text("SELECT value FROM meta WHERE name = 'schema'")).scalar()
        assert stated == connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == str(NEXT)
    made.close()


def test_a_new_database_has_the_tables_and_indices_of_the_schema(where: Path | str) -> None:
    made = database(where)
    versions.prepare_tables(made)
    with made.open_transaction() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), schema.metadata)
        assert [entry for entry in differences if "alembic_version" not in repr(entry)] == []
        indices = {
            index["name"] for table in schema.metadata.tables for index in inspect(connection).get_indexes(table)
        }
        stated = connection.execute(text("SELECT value FROM meta WHERE name = 'schema'")).scalar()
        assert stated == connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    made.close()
    assert indices == {index.name for table in schema.metadata.tables.values() for index in table.indexes}
    assert stated == str(schema.VERSION)


def test_of_several_that_open_an_older_store_at_once_one_migrates_it(
    where: Path | str, become_next: Callable[[], None]
) -> None:
    make(where)
    become_next()
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


def test_a_migration_that_fails_changes_nothing(where: Path | str, become_next: Callable[[], None]) -> None:
    make(where)
    made = database(where)
    with made.open_transaction() as connection:
        connection.execute(text("CREATE TABLE visitor (taken INTEGER)"))
    become_next()
    with pytest.raises(StoreError, match="already exists"):
        Store.open(where)
    with made.open_transaction() as connection:
        columns = {column["name"] for column in inspect(connection).get_columns("run")}
        stated = connection.execute(text("SELECT value FROM meta WHERE name = 'schema'")).scalar()
    made.close()
    assert ("mood" in columns, stated) == (False, str(NEXT - 1))


def test_who_may_not_bring_an_older_store_up_to_date_is_told_who_may(
    postgres: PostgresServer, become_next: Callable[[], None]
) -> None:
    url = postgres.new_database()
    make(url)
    become_next()
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
    mark(where, "99")
    with pytest.raises(StoreError, match="schema 99, this opsmith knows"):
        Store.open(where)


def test_a_store_from_before_the_first_release_is_refused_with_what_to_try(where: Path | str) -> None:
    make(where)
    mark(where, "3")
    with pytest.raises(StoreError, match=r"schema 3, before the first release.* try: another --out"):
        Store.open(where)
    mark(where, str(schema.VERSION))
    with Store.open(where) as store:
        assert store.sample_count(RUN.id) == 1
