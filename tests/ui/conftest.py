"""A store with one finished tiny run, and the pages over it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.store import Store, rows
from opsmith.ui.app import make_app
from opsmith.ui.guard import Access


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store file; nobody changes it."""
    path = tmp_path_factory.mktemp("finished") / "opsmith.sqlite"
    with Store.open(path) as store:
        improve(TASKS, TinyModel(price=0.001), SETTINGS, store, judge=InProcess())
    return path


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(shutil.copy(finished, tmp_path / "opsmith.sqlite")) as opened:
        yield opened


@pytest.fixture
def access() -> Access:
    return Access(hosts=frozenset({"testserver"}))


@pytest.fixture
def client(store: Store, access: Access) -> Iterator[TestClient]:
    app, _ = make_app(store, access)
    with TestClient(app, follow_redirects=False) as made:
        yield made


@pytest.fixture
def going_on(store: Store) -> str:
    """A run that is not finished."""
    info = rows.RunInfo("open-s0-1", "1", "tiny", False, "tiny", 0, {}, {})
    store.put(rows.run_rows(info, store.read_tasks(store.list_runs()[0].info.id))).result()
    return info.id
