"""What is said of a program is stored before it is shown, is made once, and ends no run when it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from tiny_target import TINY

from opsmith.executors.local_profiler import LocalProfiler
from opsmith.learn.profiles import fetch_profiles
from opsmith.learn.session import RunSession
from opsmith.learn.speeds import RightProgram
from opsmith.models.roles import RoleModels
from opsmith.records import Candidate, ProfileReport, Usage
from opsmith.store import Store

PROGRAM = RightProgram(TASKS[0], "1 2 +", "")


def _make_session(store: Store, warnings: list[str]) -> RunSession:
    session = RunSession("r", SETTINGS, TINY, RoleModels(TinyModel()), InProcess(), store, lambda _: None, Usage())
    session.warn_once = warnings.append  # type: ignore[method-assign]
    return session


def _fetch(store: Store, command: str, warnings: list[str], program: RightProgram = PROGRAM) -> list[ProfileReport]:
    source = LocalProfiler(lambda task, source: {}, (), command)
    return list(asyncio.run(fetch_profiles(_make_session(store, warnings), source, program)))


def test_a_program_is_profiled_once_in_all_sessions_of_a_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"sh -c 'echo once >> {log}; cat {{source}}'"
    warnings: list[str] = []
    with Store.open(tmp_path / "runs") as store:
        first = _fetch(store, command, warnings)
        assert first[0].body.endswith("1 2 +\n")
        [profile] = store.read_profiles("r")
        assert (profile.task, profile.candidate, profile.report) == (
            TASKS[0].id, Candidate(PROGRAM.source).id, first[0],
        )  # fmt: skip
        assert _fetch(store, command, warnings) == first
        assert log.read_text() == "once\n"
        other = RightProgram(TASKS[1], PROGRAM.source, "")
        _fetch(store, command, warnings, other)
        assert log.read_text() == "once\nonce\n"  # of another task it is another program
    assert warnings == []


def test_a_profiler_that_fails_is_a_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    with Store.open(tmp_path / "runs") as store:
        assert _fetch(store, "false", warnings) == []
        assert store.read_profiles("r") == []
    assert warnings == [f"task {TASKS[0].id}: profile command: false ended with status 1: it said nothing"]
