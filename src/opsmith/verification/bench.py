"""How long do verdicts take? Measured in a warm worker, where verdicts are made, on one task and its own program.

A trial is one execution with its comparison; `base` are the trials of the first shape set. Refusals are measured on
programs that lack one line of the right one: most are refused before they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from opsmith.records import Stage, Task
from opsmith.targets import get_target

REPEATS = 20
EARLY = (Stage.PARSE, Stage.TYPE, Stage.AFFINE)


def timings(task: Task, source: str) -> dict[str, Any]:
    """Seconds: `trial` at the base shape, `check` of the right program, `candidate` over all trials, `refusals`."""
    target = get_target(task.target)
    program = target.check(task, source).program
    trials = target.trials(task)
    first = trials[0].name.split()[0]
    base = [trial for trial in trials if trial.name.split()[0] == first]
    for trial in trials:
        target.run(program, trial)  # data, expected values and functions are prepared once per task
    return {
        "trial": median(_seconds(lambda: [target.run(program, trial) for trial in base])) / len(base),
        "check": median(_seconds(lambda: target.check(task, source))),
        "candidate": min(_seconds(lambda: [target.run(program, trial) for trial in trials], 3)),
        "trials": len(trials),
        "refusals": [_refusal(task, spoiled) for spoiled in _spoiled(source)],
    }


def _spoiled(source: str) -> list[str]:
    lines = source.strip("\n").split("\n")
    return ["\n".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]


def _refusal(task: Task, source: str) -> tuple[str, float]:
    """(stage, seconds) of a check."""
    target = get_target(task.target)
    stage = target.check(task, source).stage
    return stage.name, median(_seconds(lambda: target.check(task, source), 5))


def _seconds(action: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return found


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Medians over the tasks, in milliseconds."""
    early = [seconds for row in rows.values() for stage, seconds in row["refusals"] if Stage[stage] in EARLY]
    return {
        "tasks": len(rows),
        "trial_ms": 1e3 * median(row["trial"] for row in rows.values()),
        "worst_trial_ms": 1e3 * max(row["trial"] for row in rows.values()),
        "candidate_ms": 1e3 * median(row["candidate"] for row in rows.values()),
        "check_ms": 1e3 * median(row["check"] for row in rows.values()),
        "refusal_ms": 1e3 * median(early) if early else None,
        "worst_refusal_ms": 1e3 * max(early) if early else None,
        "refusals": len(early),
    }
