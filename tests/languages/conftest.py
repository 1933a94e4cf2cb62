"""`--language L` (`make languages L=wgsl`): the tests in L's folder here, and those of several languages as far as they are of L."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
APART = ("tvm", "triton")  # languages, and packages, of an environment of its own each: `make tvm`, `make triton`
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/__init__.py"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    language = config.getoption("--language")
    if language and language not in FOLDERS:
        raise pytest.UsageError(f"--language: given {language!r}; expected one of {', '.join(FOLDERS)}")
    elsewhere = [name for name in APART if name != language and find_spec(name) is None]
    chosen = [
        item
        for item in items
        if (not language or is_of_language(item, language))
        and not any(is_of_language(item, name) for name in elsewhere)
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def is_of_language(item: pytest.Item, language: str) -> bool:
    """Whether it stands in the language's folder, or one of its parameters is the language."""
    return HERE / language in item.path.parents or language in re.split(r"[-\[\]]", item.name)[1:]
