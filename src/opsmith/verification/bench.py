"""How long do verdicts take, and in how much memory? Measured in a warm worker, on one task.

All times are seconds. `base` is the first shape set, `large` the one of that name; the time of a trial is that of one
draw of inputs with its comparison; the reference's time is that of its bare text. Refusals are measured on programs
that lack one line of the right one, each beside Python's own parse of the same text; random candidates are given.
"""

from __future__ import annotations

import ast
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from statistics import median
from typing import Any

from opsmith.records import Outcome, Stage, Task
from opsmith.targets import Target, Trial, get_target
from opsmith.verification.verifier import verify_many

REPEATS = 15
EARLY = ("PARSE", "TYPE", "AFFINE")


def timings(task: Task, source: str, candidates: Sequence[str]) -> dict[str, Any]:
    """Times on the task's own program, programs that lack a line of it, and random candidates."""
    verify_many(task, [source])  # data, expected values and functions are prepared once per task
    target = get_target(task.target)
    trials = list(target.trials(task))
    base, large = _of_set(trials, trials[0].name.split()[0]), _of_set(trials, "large")
    rest = [trial for trial in trials if trial not in large]
    program = target.check(task, source).program
    parse, check = _check(target, task, source)
    return {
        "parse": parse,
        "check": check,
        "base": _figures(target, program, base),
        "large": _figures(target, program, large) if large else None,
        "candidate": min(times(lambda: _run(target, program, rest), 5)),
        "trials": sum(trial.draws for trial in trials),
        "refusals": [_refusal(target, task, spoiled) for spoiled in _spoiled(source)],
        "batch": _batch(target, task, candidates, base) if candidates else None,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _of_set(trials: Sequence[Trial], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name.split()[0] == name]


def _run(target: Target, program: Any, trials: Sequence[Trial]) -> None:
    for trial in trials:
        target.run([program], trial)


def _figures(target: Target, program: Any, trials: Sequence[Trial]) -> dict[str, float]:
    """Per draw: the trial's time and the reference's, measured in turn."""
    draws = sum(trial.draws for trial in trials)
    references = lambda: [target.reference(trial) for trial in trials]  # noqa: E731
    trial, reference = _together(lambda: _run(target, program, trials), references)
    return {"trial": trial / draws, "reference": reference / draws}


def _spoiled(source: str) -> list[str]:
    lines = source.strip("\n").split("\n")
    return ["\n".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]


def _refusal(target: Target, task: Task, source: str) -> dict[str, Any]:
    """A program that lacks a line: where it is refused, the time of the static check, and Python's for parsing it."""
    stage = target.check(task, source).stage
    parse, check = _check(target, task, source)
    return {"stage": stage.name, "check": check, "parse": parse}


def _check(target: Target, task: Task, source: str) -> tuple[float, float]:
    """Python's parse and the whole static check, each time of a text that nobody has seen before."""
    fresh = (f"{source}\n# {number}" for number in count())
    return _together(lambda: ast.parse(next(fresh)), lambda: target.check(task, next(fresh)))


def _batch(target: Target, task: Task, candidates: Sequence[str], base: Sequence[Trial]) -> dict[str, Any]:
    """Random candidates judged together at the base shape, and each on its own at every shape set."""
    together = min(times(lambda: _funnel(target, task, candidates, base), 5))
    start = time.perf_counter()
    verdicts = [verify_many(task, [source])[0] for source in candidates]
    alone = time.perf_counter() - start
    stages = Counter(found.stage.name if found.outcome is Outcome.REFUSED else str(found.outcome) for found in verdicts)
    return {
        "samples": len(candidates),
        "distinct": len(set(candidates)),
        "base": together,
        "alone": alone,
        "stages": dict(stages),
    }


def _funnel(target: Target, task: Task, sources: Sequence[str], trials: Sequence[Trial]) -> None:
    """What `verify_many` does, up to the base shape."""
    checked = [target.check(task, source) for source in dict.fromkeys(sources)]
    programs = [found.program for found in checked if found.stage is Stage.RUN]
    for trial in trials:
        results = target.run(programs, trial) if programs else ()
        passed = [not isinstance(result, Exception) and not result.errors for result in results]
        programs = [program for program, fine in zip(programs, passed, strict=True) if fine]


def _together(first: Callable[[], object], second: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """The medians of two actions, measured in turn, so that a busy moment of the machine hits both."""
    pairs = [(times(first, 1)[0], times(second, 1)[0]) for _ in range(repeats)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def times(action: Callable[[], object], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return found


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Medians over the tasks, and the worst; times in milliseconds, ratios to the reference and to Python's parse."""
    refused = {name: [each for each in row["refusals"] if each["stage"] in EARLY] for name, row in rows.items()}
    refusals = [each for found in refused.values() for each in found]
    ratios = [median(each["check"] / each["parse"] for each in found) for found in refused.values() if found]
    large = [row["large"] for row in rows.values() if row["large"]]
    batches = [row["batch"] for row in rows.values() if row["batch"]]
    return {
        "tasks": len(rows),
        "trial_ms": _spread([1e3 * row["base"]["trial"] for row in rows.values()]),
        "base_over_reference": _spread([_ratio(row["base"]) for row in rows.values()]),
        "large_over_reference": _spread([_ratio(row) for row in large]),
        "candidate_ms": _spread([1e3 * row["candidate"] for row in rows.values()]),
        "check_over_parse": _spread([row["check"] / row["parse"] for row in rows.values()]),
        "refusal_ms": _spread([1e3 * each["check"] for each in refusals]),
        "refusal_over_parse": _spread(ratios),
        "refusals": len(refusals),
        "candidates_per_second": _spread([row["samples"] / row["base"] for row in batches], worst=min),
        "candidates_per_second_of_all": sum(row["samples"] for row in batches) / sum(row["base"] for row in batches)
        if batches
        else None,
        "memory_mib": max(row["memory_mib"] for row in rows.values()),
    }


def _ratio(row: dict[str, float]) -> float:
    return row["trial"] / row["reference"]


def _spread(values: Sequence[float], worst: Callable[[Sequence[float]], float] = max) -> dict[str, float] | None:
    return {"median": median(values), "worst": worst(values)} if values else None
