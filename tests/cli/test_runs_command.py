"""`opsmith runs --delete`: asks first, says what goes with a run, and refuses what would harm another one."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.store import Store

pytestmark = pytest.mark.usefixtures("warm_runs")

SMALL = SETTINGS.replace(samples=2, max_rounds=1)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two runs of a store; the second began with the first one's solutions."""
    with Store.open(tmp_path / "runs") as store:
        first = improve(TASKS[:2], TinyModel(price=0.25), SMALL, store, judge=InProcess()).run
        second = SMALL.replace(seed=2, samples=12)
        both = [first, improve(TASKS[:2], TinyModel(), second, store, judge=InProcess()).run]
        third = SMALL.replace(from_run=both[1])
        return [*both, improve(TASKS[2:4], TinyModel(), third, store, judge=InProcess()).run]


def left(folder: Path) -> list[str]:
    with Store.open(folder / "runs") as store:
        return [found.info.id for found in store.list_runs()]


def answer(folder: Path, words: str, *options: str) -> tuple[int, str]:
    """What the real command says on a terminal where somebody types these words."""
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "opsmith", "runs", "--out", str(folder / "runs"), *options]
    with subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        os.write(terminal, f"{words}\n".encode())
        said = process.communicate(timeout=60)[0]
    os.close(side)
    os.close(terminal)
    return process.returncode, said


def test_it_says_what_goes_with_a_run_and_does_as_it_is_told(tmp_path: Path, runs: list[str]) -> None:
    code, said = answer(tmp_path, "n", "--delete", runs[0])
    assert (code, left(tmp_path)) == (1, runs)
    assert f"Delete from {tmp_path}/runs/opsmith.sqlite:\nrun {runs[0]} (max rounds): 8 samples, 8 replies of " in said
    assert "cost $2.0000, " in said
    assert "nothing was deleted" in said
    code, said = answer(tmp_path, "y", "--delete", runs[0])
    assert (code, left(tmp_path)) == (0, runs[1:])
    assert f"deleted {runs[0]}" in said


def test_a_script_says_yes(opsmith, tmp_path: Path, runs: list[str]) -> None:
    refused = opsmith("runs", "--delete", runs[0])
    assert (refused.code, left(tmp_path)) == (2, runs)
    assert "stdin is no terminal; try: --yes" in refused.err
    done = opsmith("runs", "--delete", runs[0], "--yes", "--json")
    assert (done.code, json.loads(done.out), left(tmp_path)) == (0, {"deleted": runs[0]}, runs[1:])


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "given no name"), ("tiny", "more than one run begins so"), ("other", "no such run"), ("%", "no such run")],
)
def test_a_name_that_is_not_one_run_deletes_none(opsmith, tmp_path: Path, runs: list[str], name: str, words: str):
    done = opsmith("runs", "--delete", name, "--yes")
    assert (done.code, words in done.err, left(tmp_path)) == (2, True, runs)


def test_a_run_that_others_need_is_not_deleted_before_them(opsmith, tmp_path: Path, runs: list[str]) -> None:
    done = opsmith("runs", "--delete", runs[1], "--yes")
    assert (done.code, left(tmp_path)) == (2, runs)
    assert f"others began with or were measured by: {runs[2]}; " in done.err
    for name in (runs[2], runs[1]):
        assert opsmith("runs", "--delete", name, "--yes").code == 0
    assert left(tmp_path) == runs[:1]


def test_a_run_that_is_being_worked_on_is_not_deleted(opsmith, tmp_path: Path, runs: list[str]) -> None:
    with Store.open(tmp_path / "runs") as store, store.lock(runs[0]):
        done = opsmith("runs", "--delete", runs[0], "--yes")
        assert (done.code, "is being worked on" in done.err) == (4, True)
    assert left(tmp_path) == runs


def test_yes_alone_deletes_nothing(opsmith, tmp_path: Path, runs: list[str]) -> None:
    assert opsmith("runs", "--yes").code == 2
    assert left(tmp_path) == runs


def test_an_empty_file_is_no_store_to_look_at(opsmith, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "opsmith.sqlite").touch()
    done = opsmith("runs")
    assert (done.code, "given an empty file; expected a store" in done.err) == (4, True)
