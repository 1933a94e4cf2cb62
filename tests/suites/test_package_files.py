"""What an installed package holds: every file of ours beside the modules."""

import tomllib
from pathlib import Path

import pytest
import yaml

import opsmith
import opsmith_lab

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (opsmith, opsmith_lab)}
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_of_a_package_is_left_out_of_a_wheel(package: str) -> None:
    patterns = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["setuptools"]["package-data"][package]
    folder = PACKAGES[package]
    packed = {path for pattern in patterns for path in folder.glob(pattern)}
    files = {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert len(files) > 100
    assert {path for path in files - packed if path.suffix != ".py"} == set()


def test_the_version_stands_everywhere_and_every_extra_on_the_page_on_installing() -> None:
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    citation = yaml.safe_load((PROJECT.parent / "CITATION.cff").read_text("utf-8"))
    assert project["version"] == citation["version"] == opsmith.__version__
    assert f"\n## [{opsmith.__version__}]" in (PROJECT.parent / "CHANGELOG.md").read_text("utf-8")
    page = (PROJECT.parent / "docs" / "installing.md").read_text("utf-8")
    assert [name for name in project["optional-dependencies"] if f"`{name}`" not in page] == []
