"""The examples in the docstrings of problems, the language and the frontend run and give what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import opsmith.problems
import opsmith.step
import opsmith.targets.step

MODULES = [
    name
    for package in (opsmith.problems, opsmith.targets.step, opsmith.step)
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


@pytest.mark.parametrize("name", [*MODULES, "opsmith.step", "opsmith.targets.step"])
def test_the_examples_of_a_module_run(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
