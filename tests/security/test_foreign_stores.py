"""A store of somebody else is data: nothing in it runs, no name in it becomes a path outside, and damage is an error."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, InProcess, TinyModel
from tiny_target import register, tiny_task
from typer.testing import CliRunner, Result

from opsmith.cli.app import build_app
from opsmith.errors import StoreError, UsageError
from opsmith.export.solved import name_functions
from opsmith.learn.loop import improve
from opsmith.store import Store
from opsmith.store import sqlite as sqlite_store
from opsmith.store.database import file_name
from opsmith.targets import get_target

IDS = ("../../evil_0", "/tmp/evil_1", "..", "evil/../2", "~/evil_3", "evil\n4", "C:\\evil", "<b>evil")
SETTINGS_SMALL = SETTINGS.replace(samples=4, max_rounds=1)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    register()
    folder = tmp_path_factory.mktemp("original")
    tasks = [tiny_task(name, "x y +", seed=number) for number, name in enumerate(IDS)]
    with Store.open(folder) as made:
        improve(tasks, TinyModel(), SETTINGS_SMALL, made, judge=InProcess())
    return folder / "opsmith.sqlite"


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    """The file of a small store with a run in it, whose tasks have hostile ids."""
    file = tmp_path / "home" / "out" / "opsmith.sqlite"
    file.parent.mkdir(parents=True)
    shutil.copy(original, file)
    return file


def execute(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def rename_run(file: Path, name: str) -> None:
    """Give the run another id, in every table."""
    connection = sqlite3.connect(file)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info('{table}')")]
        column = "id" if table == "run" else "run"
        if column in columns:
            connection.execute(f'UPDATE "{table}" SET "{column}" = ?', [name])
    connection.commit()
    connection.close()


def call(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("CREATE TRIGGER spy AFTER INSERT ON session BEGIN DELETE FROM reply; END", "trigger 'spy'"),
        ("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n", "view"),
        ("CREATE VIRTUAL TABLE words USING fts5(body)", "virtual table 'words'"),
    ],
)
def test_a_file_with_something_that_runs_is_refused(store: Path, statement: str, word: str) -> None:
    execute(store, statement)
    with pytest.raises(StoreError, match=f"store .*opsmith.sqlite: given a {word}"):
        Store.open(store)
    done = call("runs", "--out", store.parent)
    assert (done.exit_code, word in done.output) == (4, True)


def test_a_table_that_is_a_view_of_that_name_is_refused(store: Path) -> None:
    execute(
        store,
        "DROP TABLE text",
        "CREATE VIEW text AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS hash, i AS body FROM n",
    )
    with pytest.raises(StoreError, match="given a view 'text'"):
        Store.open(store)


def test_a_schema_cannot_call_what_is_not_harmless(store: Path) -> None:
    """A column that is computed when it is read: SQLite refuses functions with effects there."""
    with Store.open(store) as opened, opened._database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
        assert connection.exec_driver_sql("PRAGMA cell_size_check").scalar() == 1


def test_a_text_beyond_reason_is_not_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "LONGEST_VALUE", 2**20)
    execute(store, "UPDATE text SET body = hex(zeroblob(600000))")
    with Store.open(store) as opened, pytest.raises(StoreError, match="too big"):
        opened.read_tasks(opened.list_runs()[0].info.id)


@pytest.mark.parametrize("version", ["'x'", "-1", "99999999999999999999", "x'00ff'", "''", "2.5"])
def test_a_version_that_is_none_is_refused(store: Path, version: str) -> None:
    execute(store, f"UPDATE meta SET value = {version} WHERE name = 'schema'")
    with pytest.raises(StoreError, match="written with schema"):
        Store.open(store)


@pytest.mark.parametrize("name", ["../../../evil", "/tmp/opsmith-evil-run", "..", "a/b", "evil\n", "-o", "x" * 500])
def test_a_run_named_like_a_path_writes_only_where_it_was_told(
    store: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename_run(store, name)
    monkeypatch.chdir(store.parent)
    kinds = [word for kind in ("html", "md", "csv", "parquet", "svg") for word in ("--format", kind)]
    done = call("report", "--out", ".", *kinds, "--", name)
    assert done.exit_code == 0, done.output
    assert call("export", "--dataset", "data", "--out", ".", "--", name).exit_code == 0
    assert call("show", "--out", ".", "--", name).exit_code == 0
    with Store.open(store) as opened, opened.lock(name):
        assert opened.is_held(name)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and store.parent not in path.parents]
    assert outside == []
    assert {path.name for path in store.parent.iterdir()} <= {"opsmith.sqlite", "reports", "data", *WAL}
    assert not list(Path("/tmp").glob("opsmith-evil*"))


WAL = {"opsmith.sqlite-wal", "opsmith.sqlite-shm"}


def test_names_that_are_sound_stay_as_they_are() -> None:
    assert file_name("gpt-4o-2024-s-3-0123456789") == "gpt-4o-2024-s-3-0123456789"
    assert file_name("../") == "run"


def test_functions_of_a_library_are_named_by_no_path() -> None:
    for name in name_functions(IDS):
        assert name.isidentifier()
        assert name.isascii()


@pytest.mark.parametrize("target", ["os:system", "antigravity:geohash", "this:s", "json.decoder:JSONDecoder"])
def test_a_store_cannot_make_the_standard_library_run(store: Path, target: str) -> None:
    execute(store, f"UPDATE run SET target = '{target}'", f"UPDATE text SET body = {_with_target(target)}")
    before = set(sys.modules)
    with pytest.raises(UsageError, match="a module of Python's own"):
        get_target(target)
    with Store.open(store) as opened:
        run = opened.list_runs()[0].info.id
    assert call("export", run, "--dataset", store.parent / "data", "--out", store.parent).exit_code == 2
    assert not {"antigravity", "this"} & (set(sys.modules) - before)


def _with_target(target: str) -> str:
    """The texts of a store, where a task's text names this target instead of its own; in SQL."""
    return f"""replace(body, '"target":"tiny"', '"target":"{target}"')"""


def _overwrite(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:40960] = b"\xa5" * (40960 - 4096)
    file.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "numbers for texts": lambda file: execute(file, "UPDATE text SET body = 7"),
    "bytes for texts": lambda file: execute(file, "UPDATE text SET body = x'00ff00'"),
    "no JSON": lambda file: execute(file, "UPDATE run SET settings = '{'", "UPDATE round SET attempted = '{'"),
    "deep JSON": lambda file: execute(file, f"UPDATE round SET demonstrations = '{'[' * 100_000}'"),
    "a date of letters": lambda file: execute(file, "UPDATE run SET at = 'x'"),
    "no UTF-8": lambda file: execute(file, "UPDATE run SET model = CAST(x'ff41' AS TEXT)"),
    "some bytes less": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "the first bytes alone": lambda file: file.write_bytes(file.read_bytes()[:50]),
    "a table less": lambda file: execute(file, "DROP TABLE text"),
    "bytes in the middle": _overwrite,
    "half of it": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_store_ends_a_command_and_does_nothing_else(store: Path, tmp_path: Path, kind: str) -> None:
    with Store.open(store) as opened:
        run = opened.list_runs()[0].info.id
    DAMAGE[kind](store)
    before = {path for path in tmp_path.rglob("*") if path.name not in WAL}
    done = [
        call("report", run, "--format", "md", "-o", "-", "--out", store.parent),
        call("show", run, "--out", store.parent),
        call("show", run, IDS[0], "--out", store.parent),
        call("runs", "--out", store.parent),
        call("spent", run, "--out", store.parent),
    ]
    assert {one.exit_code for one in done} in ({4}, {0, 4}), "an error message of the store, and no traceback"
    told = [one.output for one in done if one.exit_code]
    assert all(f"opsmith: store {store}: it is damaged: given " in text for text in told)
    assert all("try: keep a copy" in text and "the same command" not in text for text in told)
    assert {path for path in tmp_path.rglob("*") if path.name not in WAL} == before
