"""What an installed package holds: every file of ours beside the modules."""

import tomllib
from pathlib import Path

import opsmith

PACKAGE = Path(opsmith.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_no_file_of_the_package_is_left_out_of_a_wheel() -> None:
    patterns = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["setuptools"]["package-data"]["opsmith"]
    packed = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert len(files) > 200
    assert {path for path in files - packed if path.suffix != ".py"} == set()
