"""What all tests share: golden files, rewritten by `pytest --update-golden` and read in review."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files under tests/golden")
    parser.addoption("--kills", type=int, default=3, help="how often the kill tests kill a run")
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
