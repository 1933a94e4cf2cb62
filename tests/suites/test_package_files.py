"""What an installed package holds: every file of ours beside the modules."""

import tomllib
from pathlib import Path

import yaml

import opsmith

PACKAGE = Path(opsmith.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_no_file_of_the_package_is_left_out_of_a_wheel() -> None:
    patterns = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["setuptools"]["package-data"]["opsmith"]
    packed = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert len(files) > 200
    assert {path for path in files - packed if path.suffix != ".py"} == set()


def test_the_version_stands_everywhere_and_every_extra_on_the_page_on_installing() -> None:
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    citation = yaml.safe_load((PROJECT.parent / "CITATION.cff").read_text("utf-8"))
    assert project["version"] == citation["version"] == opsmith.__version__
    assert f"\n## [{opsmith.__version__}]" in (PROJECT.parent / "CHANGELOG.md").read_text("utf-8")
    page = (PROJECT.parent / "docs" / "installing.md").read_text("utf-8")
    assert [name for name in project["optional-dependencies"] if f"`{name}`" not in page] == []
