"""`opsmith init`: the project works as it is, and nothing that is there already is touched."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.scaffold.project import COMMAND, EXECUTED, INTERPRETED, write_project

MAIN = [sys.executable, "-m", "opsmith"]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "My-ops"
    write_project(folder)
    return folder


def ran(command: list[object], folder: Path, **environment: str) -> str:
    """What a command prints in `folder`; it must end well."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_its_task_files_are_fine(project):
    assert "1 task file: 1 fine" in ran([*MAIN, "check", project / "tasks"], project.parent)
    checked = ran([*MAIN, "check", "lanes_tasks"], project, PYTHONPATH="src")
    assert "2 task files: 2 fine" in checked


def test_its_entry_point_names_the_target(project, monkeypatch):
    monkeypatch.syspath_prepend(str(project / "src"))
    metadata = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    assert metadata["name"] == "My-ops"
    ((name, value),) = metadata["entry-points"]["opsmith.targets"].items()
    assert name == "my_ops-lanes"
    assert EntryPoint(name, value, "opsmith.targets").load().name == "lanes"


@pytest.mark.parametrize("kind", [INTERPRETED, COMMAND, EXECUTED])
def test_no_template_is_left_unfilled(tmp_path, kind):
    folder = tmp_path / "Unfilled-ops"
    texts = {path: path.read_text() for path in write_project(folder, kind=kind)}
    assert not [path for path, text in texts.items() if "{{" in text or "{%" in text or "package" in path.parts]
    assert (folder / ".gitignore").is_file()
    assert [path for path, text in texts.items() if path.suffix == ".py" and compile(text, path, "exec")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("json", "a package json is there already"),
        ("Opsmith", "a package opsmith is there already"),
        ("9ops", "beginning with a letter"),
        ("class", "no word of Python's"),
        ("a b", "expected letters"),
        ("", "expected letters"),
        ("évier", "expected letters"),
    ],
)
def test_a_name_that_is_none_for_a_package_is_refused_and_nothing_is_written(tmp_path, name, words):
    with pytest.raises(UsageError, match=words):
        write_project(tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_a_folder_with_content_and_a_file_are_refused_and_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"it holds notes\.txt; expected an empty folder"):
        write_project(tmp_path, "ops_of_mine")
    with pytest.raises(UsageError, match="this is a file"):
        write_project(tmp_path / "notes.txt", "ops_of_mine")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_empty_folder_is_filled_under_another_name(tmp_path):
    write_project(tmp_path, "Other.Name")
    assert (tmp_path / "src" / "other_name" / "lanes.py").is_file()
