"""`pytest tests/fuzz --fuzz-examples 20000` draws that many new examples per test instead of the few that never change."""

import pytest

from fuzz import examples


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-examples", type=int, default=0, help="examples per fuzzing test, drawn anew (0: the few)")


def pytest_configure(config: pytest.Config) -> None:
    examples.asked = config.getoption("fuzz_examples", 0)
