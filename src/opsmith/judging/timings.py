"""How long do verdicts take, and in how much memory? Measured in a warm worker, on one task.

All times are seconds. `base` is the first shape set, `large` the one of that name; the time of a trial is that of one
draw of inputs with its comparison; the reference's time is that of its bare text. Refusals are measured on programs
that lack one line of the right one, each beside Python's own parse of the same text, if it is Python; random
candidates are given.
"""

from __future__ import annotations

import ast
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from statistics import median
from typing import Any

from opsmith.judging.verifier import verify_many
from opsmith.records import Outcome, Scrutiny, Stage, Task
from opsmith.targets import Target, Trial, get_target, list_runnable
from opsmith.targets.protocols import HidesSizes, Referenced

REPEATS = 15
EARLY = ("PARSE", "TYPE", "AFFINE")


def measure_timings(task: Task, source: str, candidates: Sequence[str], scrutiny: Scrutiny) -> dict[str, Any]:
    """Times on the task's own program, programs that lack a line of it, and random candidates."""
    verify_many(task, [source], scrutiny)  # data, expected values and functions are prepared once per task
    target = get_target(task.target)
    trials = list_runnable(target.list_trials(task))
    base, large = _of_set(trials, trials[0].name.split()[0]), _of_set(trials, "large")
    small = [trial for trial in trials if trial not in large]
    program = target.check_program(task, source).program
    parse, check = _time_check(target, task, source)
    return {
        "parse": parse,
        "check": check,
        "base": _time_trials(target, program, base),
        "large": _time_trials(target, program, large) if large else None,
        "candidate": min(time_action(lambda: _run_trials(target, program, small), 5)),
        "trials": sum(trial.draws for trial in trials),
        "refusals": [_time_refusal(target, task, spoiled) for spoiled in _spoil_lines(source)],
        "batch": _time_batch(target, task, candidates, base, scrutiny) if candidates else None,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _of_set(trials: Sequence[Trial], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name.split()[0] == name]


def _run_trials(target: Target, program: Any, trials: Sequence[Trial]) -> None:
    for trial in trials:
        target.run_programs([program], trial)


def _time_trials(target: Target, program: Any, trials: Sequence[Trial]) -> dict[str, float | None]:
    """Per draw: the trial's time and the reference's, measured in turn; None: the target has no reference to run."""
    draws = sum(trial.draws for trial in trials)
    if not isinstance(target, Referenced):
        return {
            "trial": median(time_action(lambda: _run_trials(target, program, trials), REPEATS)) / draws,
            "reference": None,
        }
    references = lambda: [target.run_reference(trial) for trial in trials]  # noqa: E731
    trial, reference = _time_together(lambda: _run_trials(target, program, trials), references)
    return {"trial": trial / draws, "reference": reference / draws}


def _spoil_lines(source: str) -> list[str]:
    lines = source.strip("\n").split("\n")
    return ["\n".join(lines[:index] + lines[index + 1 :]) for index in range(len(lines))]


def _time_refusal(target: Target, task: Task, source: str) -> dict[str, Any]:
    """A program that lacks a line: where it is refused, the time of the static check, and Python's for parsing it."""
    stage = target.check_program(task, source).stage
    parse, check = _time_check(target, task, source)
    return {"stage": stage.name, "check": check, "parse": parse}


def _time_check(target: Target, task: Task, source: str) -> tuple[float | None, float]:
    """Python's parse and the whole static check, each time of a text that nobody has seen before.

    None: the text is none of Python's, so that there is nothing to measure its check against.
    """
    comment = target.comment
    fresh = (f"{source}\n{comment} {number}" for number in count())
    if not _is_python(next(fresh)):
        return None, median(time_action(lambda: target.check_program(task, next(fresh)), REPEATS))
    return _time_together(lambda: ast.parse(next(fresh)), lambda: target.check_program(task, next(fresh)))


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _time_batch(
    target: Target, task: Task, candidates: Sequence[str], base: Sequence[Trial], scrutiny: Scrutiny
) -> dict[str, Any]:
    """Random candidates judged together at the base shape, and each on its own at every shape set."""
    together = min(time_action(lambda: _run_funnel(target, task, candidates, base), 5))
    start = time.perf_counter()
    verdicts = [verify_many(task, [source], scrutiny)[0] for source in candidates]
    alone = time.perf_counter() - start
    stages = Counter(
        verdict.stage.name if verdict.outcome is Outcome.REFUSED else str(verdict.outcome) for verdict in verdicts
    )
    return {
        "samples": len(candidates),
        "distinct": len(set(candidates)),
        "base": together,
        "alone": alone,
        "stages": dict(stages),
        "flagged": sum(_is_flagged(target, task, source, scrutiny) for source in candidates),
    }


def _is_flagged(target: Target, task: Task, source: str, scrutiny: Scrutiny) -> bool:
    """Whether a candidate must also be right at hidden sizes."""
    program = target.check_program(task, source).program
    if not isinstance(target, HidesSizes) or program is None:
        return False
    return target.hidden_trials(task, program, scrutiny) is not None


def _run_funnel(target: Target, task: Task, sources: Sequence[str], trials: Sequence[Trial]) -> None:
    """What `verify_many` does, up to the base shape."""
    checked = [target.check_program(task, source) for source in dict.fromkeys(sources)]
    programs = [result.program for result in checked if result.stage == Stage.RUN]
    for trial in trials:
        results = target.run_programs(programs, trial) if programs else ()
        passed = [not isinstance(result, Exception) and not result.errors for result in results]
        programs = [program for program, fine in zip(programs, passed, strict=True) if fine]


def _time_together(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """The medians of two actions, measured in turn, so that a busy moment of the machine hits both."""
    pairs = [(time_action(first, 1)[0], time_action(second, 1)[0]) for _ in range(REPEATS)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def time_action(action: Callable[[], object], repeats: int) -> list[float]:
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        durations.append(time.perf_counter() - start)
    return durations


def summarise_timings(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Medians over the tasks, and the worst; times in milliseconds, ratios to the reference and to Python's parse."""
    refused = {name: [each for each in row["refusals"] if each["stage"] in EARLY] for name, row in rows.items()}
    refusals = [each for refusals_of_task in refused.values() for each in refusals_of_task]
    ratios = [median(over_parse) for rows_of_task in refused.values() if (over_parse := _over_parse(rows_of_task))]
    large = [row["large"] for row in rows.values() if row["large"]]
    batches = [row["batch"] for row in rows.values() if row["batch"]]
    return {
        "tasks": len(rows),
        "trial_ms": _find_spread([1e3 * row["base"]["trial"] for row in rows.values()]),
        "base_over_reference": _find_spread(_over_reference(row["base"] for row in rows.values())),
        "large_over_reference": _find_spread(_over_reference(large)),
        "candidate_ms": _find_spread([1e3 * row["candidate"] for row in rows.values()]),
        "check_over_parse": _find_spread(_over_parse(rows.values())),
        "refusal_ms": _find_spread([1e3 * each["check"] for each in refusals]),
        "refusal_over_parse": _find_spread(ratios),
        "refusals": len(refusals),
        "candidates_per_second": _find_spread([row["samples"] / row["base"] for row in batches], worst=min),
        "candidates_per_second_of_all": sum(row["samples"] for row in batches) / sum(row["base"] for row in batches)
        if batches
        else None,
        "flagged": sum(row["flagged"] for row in batches),
        "samples": sum(row["samples"] for row in batches),
        "memory_mib": max(row["memory_mib"] for row in rows.values()),
    }


def _over_parse(rows: Iterable[dict[str, Any]]) -> list[float]:
    return [row["check"] / row["parse"] for row in rows if row["parse"] is not None]


def _over_reference(rows: Iterable[dict[str, float]]) -> list[float]:
    return [row["trial"] / row["reference"] for row in rows if row["reference"] is not None]


def _find_spread(values: Sequence[float], worst: Callable[[Sequence[float]], float] = max) -> dict[str, float] | None:
    return {"median": median(values), "worst": worst(values)} if values else None
