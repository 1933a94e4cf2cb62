"""A file that is damaged is noticed before anything is asked for; what is wrong is said, and what helps."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.errors import StoreError
from opsmith.learn.loop import improve
from opsmith.store import Store

SMALL = SETTINGS.replace(samples=30, max_rounds=1)
PAGE = 4096


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    with Store.open(folder) as made:
        improve(TASKS[:2], TinyModel(), SMALL, made, judge=InProcess())
    return folder / "opsmith.sqlite"


@pytest.fixture
def file(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "opsmith.sqlite"))


def cut(size: Callable[[int], int]) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(file.read_bytes()[: size(file.stat().st_size)])


def overwrite_a_page_of(file: Path, table: str) -> None:
    """Of one that another run's first request does not touch."""
    with sqlite3.connect(file) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table]).fetchone()
    data = bytearray(file.read_bytes())
    data[(page - 1) * PAGE : (page - 1) * PAGE + 16] = b"\xa5" * 16
    file.write_bytes(bytes(data))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "half of it": (cut(lambda size: size // 2), "bytes; expected"),
    "a page less": (cut(lambda size: size - PAGE), "bytes; expected"),
    "a byte less": (cut(lambda size: size - 1), "bytes; expected"),
    "a page alone": (cut(lambda size: PAGE), "given 4,096 bytes; expected"),
    "less than a header": (cut(lambda size: 50), "given 50 bytes; expected"),
    "an index": (lambda file: overwrite_a_page_of(file, "verdict_by_time"), "given "),
    "a table": (lambda file: overwrite_a_page_of(file, "reverdict"), "given "),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_run_notices_a_damaged_file_before_its_first_request(file: Path, kind: str) -> None:
    damage, words = DAMAGE[kind]
    damage(file)
    model, another = TinyModel(), SMALL.replace(seed=5)
    with pytest.raises(StoreError) as caught, Store.open(file) as store:
        improve(TASKS[2:3], model, another, store, judge=InProcess())
    told = str(caught.value)
    assert told.startswith(f"store {file}: it is damaged: given ")
    assert words in told
    assert "try: keep a copy; `sqlite3" in told
    assert "the same command" not in told
    assert len(told.splitlines()) == 1
    assert model.asked == []


def test_a_sound_file_of_any_age_is_not_called_damaged(file: Path) -> None:
    with Store.open(file) as store:
        store.check_file()
        with Store.open(file) as other:
            other.put([]).result()
            other.check_file()


def test_what_lies_in_the_log_beside_a_file_is_not_missing(tmp_path: Path) -> None:
    """A process that is killed leaves its newest pages there; the file alone is shorter than its header may say."""
    file = tmp_path / "opsmith.sqlite"
    script = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from learn.tiny_run import *\n"
        "store = Store.open(sys.argv[1]); store.flush()\n"
        "improve(TASKS[:2], TinyModel(), SETTINGS.replace(max_rounds=1), store, judge=InProcess())\n"
        "os._exit(9)"
    )
    tests = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script, str(file), tests, f"{tests}/learn"], check=False)
    assert done.returncode == 9
    assert Path(f"{file}-wal").stat().st_size > file.stat().st_size
    with Store.open(file) as store:
        store.check_file()
        assert store.list_runs()[0].samples > 0


@pytest.mark.parametrize("text", ["", "hello " * 2000])
def test_what_is_no_store_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "opsmith.sqlite"
    file.write_text(text)
    if not text:  # a new one may be made in it
        Store.open(file).close()
    else:
        with pytest.raises(StoreError, match="not an opsmith store; choose another --out"):
            Store.open(file)
        assert file.read_text() == text


def test_a_mistake_of_ours_stays_one_while_a_sound_store_is_open(file: Path) -> None:
    with pytest.raises(KeyError, match="ours"), Store.open(file):
        raise KeyError("ours")


def test_an_odd_value_far_from_where_it_was_read_is_the_stores(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE run SET at = 'yesterday'")
    with pytest.raises(StoreError, match="given text in column 'at' of table 'run'"), Store.open(file) as store:
        store.list_runs()[0].started + 1.0
