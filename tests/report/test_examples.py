"""The examples in the docstrings of the reports run and give what they say."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import opsmith.report


@pytest.mark.parametrize("name", [found.name for found in pkgutil.iter_modules(opsmith.report.__path__)])
def test_the_examples_of_a_module_run(name):
    assert doctest.testmod(import_module(f"opsmith.report.{name}")).failed == 0
