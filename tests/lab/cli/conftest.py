"""The command line in this process, as the tests of the core have it."""

from cli.conftest import opsmith

__all__ = ["opsmith"]
