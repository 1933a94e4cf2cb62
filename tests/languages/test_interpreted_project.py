"""The project of `opsmith init` with a language of its own in Python: what its runs leave is found from anywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opsmith.scaffold.project import write_project

MAIN = [sys.executable, "-m", "opsmith"]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "Lane-ops"
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


def test_its_run_works_from_anywhere_and_is_the_same_run(project):
    outside = ran([*MAIN, "run", "Lane-ops/experiment.toml", "--out", "runs"], project.parent)
    inside = ran([*MAIN, "run", "experiment.toml", "--out", "../runs"], project)
    assert "solved reach_0" in outside
    assert "solved reach_0" not in inside  # it was finished already
    assert re.findall(r"run +(embedded-\S+)", outside)[0] in inside


def test_its_own_language_is_learned_from_what_was_solved(project):
    done = ran([*MAIN, "run", "lanes.toml", "--out", "lanes_runs"], project, PYTHONPATH="src")
    assert "2/2" in done
    assert "round 0: 1, round 1: 1" in done


def test_what_its_run_left_is_found_from_anywhere_by_what_the_tasks_say(project):
    """The target calls itself otherwise than its tasks and its entry point do."""
    path = {"PYTHONPATH": str(project / "src")}
    run = ran([*MAIN, "run", "Lane-ops/lanes.toml", "--out", "left", "--no-report", "--json"], project.parent, **path)
    name = re.findall(r'"run": "([^"]+)"', run)[0]
    again = ran([*MAIN, "reverify", name, "--out", "left"], project.parent, **path)
    assert "0 flipped; solved then 2, now 2, of 2 tasks" in " ".join(again.split())
    assert "energy_0" in ran([*MAIN, "bench", "verify", "lanes_tasks", "--batch", "4"], project, **path)


def test_its_own_tests_pass_and_a_wrong_task_fails_them(project, tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert "7 passed" in ran(command, project)
    write_project(tmp_path / "spoiled")
    task = tmp_path / "spoiled" / "lanes_tasks" / "energy_0.yaml"
    task.write_text(task.read_text().replace("q = mul d d", "q = abs d"))
    with pytest.raises(AssertionError, match="energy_0"):
        ran(command, tmp_path / "spoiled")


def test_a_generated_script_in_its_own_language_runs(project, tmp_path):
    ran([*MAIN, "codegen", "lanes_tasks/energy_0.yaml", "-o", tmp_path / "test_energy.py"], project, PYTHONPATH="src")
    command = [sys.executable, "-m", "pytest", "-q", tmp_path / "test_energy.py"]
    assert "1 passed" in ran(command, project, PYTHONPATH="src")
