"""Projects of `opsmith init` with a language of their own work as they are: their tests pass, their runs solve."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opsmith.running import sandbox

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())
MAIN = [sys.executable, "-m", "opsmith"]
CHIP = ["--target", "language.toml"]


@pytest.fixture(scope="module", params=["--command", "--executed"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param.strip("-")) / "my-ops"
    run_command([*MAIN, "init", request.param, folder], folder.parent)
    return folder


def run_command(command: list[object], folder: Path, status: int = 0) -> str:
    """What a command prints in a folder."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_its_own_tests_pass(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert " passed" in run_command(command, project)


def test_its_tasks_are_fine(project: Path) -> None:
    tasks = "problems" if (project / "problems").exists() else "tasks"
    count = len(list((project / tasks).glob("*.yaml")))
    target = CHIP if tasks == "problems" else []
    assert f"{count} task files: {count} fine" in run_command([*MAIN, "check", tasks, *target], project)


def test_the_commands_of_a_verdict_are_shown_on_demand(tmp_path: Path) -> None:
    project = tmp_path / "my-ops"
    run_command([*MAIN, "init", "--command", project], tmp_path)
    (project / "wrong.vex").write_text("vsun f1, v0\n")
    verify = [*MAIN, "verify", "problems/row_sum.yaml", *CHIP]
    printed = run_command([*verify, "--show-commands"], project)
    assert "tools/sim.py program.bin x=in_x.bin y=out_y.bin M=6 N=100" in printed
    assert "ended: status 0" in printed
    wrong = [*verify, "--impl", "wrong.vex"]
    assert "stderr: program.vex:1:1: error" in run_command([*wrong, "--show-commands"], project, 1)
    assert "$ " not in run_command(wrong, project, 1)


def test_its_run_solves_all(project: Path) -> None:
    is_chip = (project / "language.toml").exists()
    printed = run_command([*MAIN, "run", "experiment.toml", *(CHIP if is_chip else [])], project)
    assert "(all solved)" in printed


def test_a_run_of_another_language_is_another_run(tmp_path: Path) -> None:
    """What a verdict means has changed with the file, so that an unfinished run does not go on under it."""
    run_command([*MAIN, "init", "--command", "my-ops"], tmp_path)
    folder = tmp_path / "my-ops"
    choice = ["--tasks", "problems/row_sum.yaml", "--samples", "1", "--max-rounds", "1", "--no-report", "--json"]
    command = [*MAIN, "run", "experiment.toml", *CHIP, *choice]
    runs = [run_command(command, folder), run_command(command, folder)]
    file = folder / "language.toml"
    file.write_text(file.read_text().replace('version = "1"', 'version = "2"'))
    runs.append(run_command(command, folder))
    names = [run.partition('"run": "')[2].partition('"')[0] for run in runs]
    assert names[0] == names[1] != names[2]
