"""What the shell completes: a real bash asks, and the names are those that the commands take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.cli.completion import choose_completion, complete_models, complete_runs, complete_tasks
from opsmith.learn.loop import improve
from opsmith.models.table import list_models
from opsmith.store import Store

pytestmark = pytest.mark.usefixtures("warm_runs")
ASK = """
eval "$(opsmith --show-completion bash)"
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _opsmith_completion opsmith; echo "${COMPREPLY[*]}"; }
ask opsmith show tin
ask opsmith run --target c --tasks softmax,row_
"""


@pytest.fixture
def run(tmp_path: Path) -> str:
    with Store.open(tmp_path / "runs") as store:
        settings = SETTINGS.replace(samples=1, max_rounds=1)
        return improve(TASKS[:1], TinyModel(), settings, store, judge=InProcess()).run


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_runs_and_lists_of_tasks(tmp_path: Path, run: str) -> None:
    command = tmp_path / "opsmith"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m opsmith "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", ASK], cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [run, "softmax,row_max_argmax softmax,row_sum"], done.stderr


def test_the_names_are_those_that_the_commands_take(tmp_path: Path, run: str, monkeypatch) -> None:
    line = SimpleNamespace(params={"out": tmp_path / "runs", "run": run})
    assert complete_runs(line, "") == [run]
    assert complete_tasks(line, "") == [TASKS[0].id]
    assert complete_runs(SimpleNamespace(params={"out": tmp_path}), "") == []
    patterns = [model.pattern for model in list_models()]
    assert all(pattern.startswith(name) for name, pattern in zip(complete_models(""), patterns, strict=True))
    assert choose_completion("NAME") is None
