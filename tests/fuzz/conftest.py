"""`pytest tests/fuzz --fuzz-times 20` draws twenty times as many examples, and new ones, instead of those of every run."""

import pytest

from fuzz import examples


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-times", type=int, default=0, help="draw so many times the usual examples, anew (0: as usual)"
    )


def pytest_configure(config: pytest.Config) -> None:
    examples.times = config.getoption("fuzz_times", 0)
