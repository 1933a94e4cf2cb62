"""What all tests share: golden files, rewritten by `pytest --update-golden` and read in review."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from postgres import PostgresServer

SECRET = "the tests'"  # the installation's, so that hidden sizes are the same every time
GOLDEN = Path(__file__).parent / "golden"

pytest_plugins = ["warm_pools"]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell starts what ends in & like that, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a busy machine draws slowly: that says nothing of what is drawn
hypothesis.settings.register_profile("busy", suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None)
hypothesis.settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files under tests/golden")
    parser.addoption("--kills", type=int, default=3, help="how often the kill tests kill a run")
    parser.addoption("--language", default="", help="of tests/languages, those of this one alone")
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure (continuous integration)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome, report.longrepr = "failed", f"skipped, and --no-skips was given: {report.longrepr}"
    return report


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text equals the golden file of that name."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of one process that ask for it."""
    from postgres import PostgresServer, binaries

    if binaries() is None:
        pytest.skip("no PostgreSQL server: install Debian's package `postgresql`")
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where `Store.open` makes a new store: every test that asks for this runs on both databases."""
    return _new_place(request, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def where_all(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | str:
    """The same for a store that all tests of a module share."""
    return _new_place(request, tmp_path_factory.mktemp("store"))


def _new_place(request: pytest.FixtureRequest, folder: Path) -> Path | str:
    if request.param == "sqlite":
        return folder / "opsmith.sqlite"
    url: str = request.getfixturevalue("postgres").new_database()
    return url


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a program keeps in the user's home, builds among it, goes to folders of the tests; so do the locks of leases,
    since others may measure on this machine, or test."""
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        (state / "opsmith").mkdir()
        (state / "opsmith/secret").write_text(f"{SECRET}\n", encoding="utf-8")
        patch.setenv("XDG_STATE_HOME", str(state))
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        patch.setenv("OPSMITH_BUILDS", str(tmp_path_factory.mktemp("builds")))
        yield
