"""The course of a run: what it had come to when each of its rounds ended, and what that had taken.

Rounds of both phases count. The gain is the geometric mean over the tasks that are optimised of the best ratio to the
start program so far, in the higher grade that each was measured in; a task without such a program counts as 1. What
may be published of a gain is another figure, at the end of a run (`results.optimisation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.results.optimisation import OptimisedRun, OptimisedTask
from opsmith.store import Store
from opsmith.store.spending import seconds_by_round, usage_by_round


@dataclass(frozen=True)
class CourseStep:
    """A run at the end of a round."""

    round: int
    phase: str
    level: str  # of the demonstrations that it showed; "": none
    solved: int  # tasks, so far
    gain: float | None  # so far; None: no round that makes right programs better has ended
    cost: float | None  # USD, so far; None: some price is not known
    tokens: int  # input and output, so far
    time: float  # s, so far


def read_course(store: Store, run: str, optimised: OptimisedRun | None = None) -> tuple[CourseStep, ...]:
    """The steps of a run; `optimised`: what came of its optimisation rounds, if it has any."""
    usage, seconds = usage_by_round(store, run), seconds_by_round(store, run)
    steps: list[CourseStep] = []
    solved, tokens, cost = 0, 0, 0.0
    is_priced = True
    for info, solutions in store.read_rounds(run):
        spent = usage.get(info.number)
        if spent is not None:
            tokens += spent.input_tokens + spent.output_tokens
            cost += spent.cost_usd or 0.0
            is_priced = is_priced and spent.cost_usd is not None
        if solutions is None:
            break
        has_gain = optimised is not None and info.number >= optimised.first
        gain = measure_gain(optimised.tasks, info.number) if optimised is not None and has_gain else None
        solved += len(solutions)
        sums = (cost if is_priced else None, tokens, seconds[info.number])
        level = "" if info.level == "none" else info.level
        steps.append(CourseStep(info.number, info.phase, level, solved, gain, *sums))
    return tuple(steps)


def find_value(course: Sequence[CourseStep], is_finished: bool, shown: str, by: str, place: float) -> float | None:
    """What a run had there; None: nothing can be said of it."""
    steps = [(getattr(step, by), getattr(step, shown)) for step in course]
    ends = [end for end, _ in steps if end is not None]
    if not ends or (place > ends[-1] and not is_finished):
        return None
    reached = [value for end, value in steps if end is not None and end <= place]
    value: float | None = reached[-1] if reached else 0.0 if shown == "solved" else None
    return value


def measure_gain(tasks: Sequence[OptimisedTask], last: int) -> float | None:
    """The best so far, in no round after `last`; None without tasks."""
    so_far = [[step.to_start for step in task.steps if step.row.round <= last] for task in tasks]
    bests = [max([1.0, *(ratio.value for ratio in ratios if ratio is not None)]) for ratios in so_far]
    return math.exp(math.fsum(map(math.log, bests)) / len(bests)) if bests else None
