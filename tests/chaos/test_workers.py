"""`kill -9` of the processes that a run has started: a verdict may be missing then, and none is wrong."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.books import contents, unjudged
from chaos.conftest import SAMPLES, Undisturbed
from chaos.plan import Constant, Plan
from chaos.processes import Command, Commands, children, runs_module, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def test_verdicts_survive_the_death_of_their_workers(tmp_path: Path, commands: Commands, whole: Undisturbed) -> None:
    disturb(tmp_path, commands, whole, workers, 6)


def test_verdicts_survive_the_death_of_the_process_that_starts_workers(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    disturb(tmp_path, commands, whole, lambda run: [pid for pid in nurseries(run) if children(pid)], 3)


def test_programs_whose_workers_do_not_live_are_unjudged_and_not_wrong(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    whole.server.reset(Plan(latency=Constant(0.2)))
    run = commands.run("hit", *whole.options)
    killed: set[int] = set()
    wait_until(lambda: workers(run.process.pid) or not run.alive)
    until = time.monotonic() + 3.0
    while run.alive and time.monotonic() < until:
        for pid in workers(run.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert run.result()["run"] == whole.run
    reasons = unjudged(tmp_path / "hit", whole.run, whole.contents)
    tell(len(killed), reasons)
    assert any("a worker process, twice" in reason for reason in reasons)


def test_samples_survive_the_death_of_the_embedded_models_workers(tmp_path: Path, commands: Commands) -> None:
    options = ("--tasks", "index_0", "--samples", 24, "--temperature", "1.0", "--max-rounds", 1)
    whole = commands.finish("whole", *options)["run"]
    run = commands.run("hit", *options)
    hits = hit(run, samplers, most=3)
    assert run.result()["run"] == whole
    tell(hits, unjudged(tmp_path / "hit", whole, contents(tmp_path / "whole", whole)))
    assert hits >= 2


def disturb(
    folder: Path, commands: Commands, whole: Undisturbed, victims: Callable[[int], list[int]], kills: int
) -> None:
    """The run, in which every program is judged on its own, while victims are killed."""
    whole.server.reset(Plan(latency=Constant(0.1)))
    whole.server.hold_after = SAMPLES - 4  # it cannot end before all are killed
    run = commands.run("hit", *whole.options)
    hits = hit(run, victims, most=kills)
    whole.server.hold_after = None
    assert run.result()["run"] == whole.run
    tell(hits, unjudged(folder / "hit", whole.run, whole.contents))
    assert hits == kills
    assert set(whole.server.sent.values()) == {1}
    assert len(whole.server.sent) == SAMPLES


def hit(run: Command, victims: Callable[[int], list[int]], most: int, seed: int = 2) -> int:
    """Kill victims at random moments, until the run has ended or so many are dead."""
    rng, hits = random.Random(seed), 0
    while hits < most:
        wait_until(lambda: victims(run.process.pid) or not run.alive)
        time.sleep(rng.uniform(0.0, 0.5))
        alive = victims(run.process.pid)
        if not run.alive:
            break
        if alive:
            os.kill(rng.choice(alive), signal.SIGKILL)
            hits += 1
    return hits


def tell(hits: int, reasons: list[str]) -> None:
    print(f"{hits} processes killed, {len(reasons)} samples unjudged")


def nurseries(run: int) -> list[int]:
    return [pid for pid in children(run) if runs_module(pid, "opsmith.running.forks")]


def workers(run: int) -> list[int]:
    """The verifier's workers, which are forks of the nursery."""
    return [pid for nursery in nurseries(run) for pid in children(nursery)]


def samplers(run: int) -> list[int]:
    return [pid for pid in children(run) if runs_module(pid, "opsmith_lab.models.sampling")]
