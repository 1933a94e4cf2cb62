"""Searches that adapt a kernel to its size, without a model: with as many builds as a model has samples.

The tuner rewrites the plain program by the language's rules, one move after another, and goes on from what is fastest.
The search draws the numbers of a template by Optuna's TPE. Both are told the screen of what they built, and nothing of
a size but that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from opsmith.measuring.record import MeasuringGrade
from opsmith.targets import get_target
from opsmith.targets.protocols import Timed, Tuned
from opsmith_lab.models.rewriting import Rewriter
from opsmith_lab.study.arms import seed_search
from opsmith_lab.study.kernels import Parameters, read_parameters, screen_program
from opsmith_lab.study.optimisers import OPTIMISERS
from opsmith_lab.study.sizes import KernelCell, find_task
from opsmith_lab.study.templates import read_template
from opsmith_lab.study.trajectory import Domain
from opsmith_lab.study.workbench import PlainRatio, Workbench

_PATIENCE = 20  # proposals of programs that were built already, for each build
Score = Callable[[str], float]  # of a program: above 1 it is faster than the plain one; 0: it is wrong


class UntimedError(Exception):
    """A search ends: its next program is not timed."""


@dataclass(frozen=True)
class TunedKernel:
    """The fastest program of a search by its screens, fully graded."""

    arm: str
    cell: KernelCell
    builds: int
    source: str
    parameters: Parameters
    ratio: PlainRatio


def climb_by_rules(cell: KernelCell, builds: int, score: Score) -> Iterator[str]:
    """Every program that is built, each once. Raises UsageError for a language without rules."""
    target = get_target(cell.language)
    if not isinstance(target, Tuned):
        return
    rewriter, rng = Rewriter(target.make_tuner()), random.Random(seed_search("tuner", cell.place))
    best = find_task(cell.kernel, cell.language).impl or ""
    fastest, built = 1.0, {best}
    for _ in range(builds * _PATIENCE):
        program = next(rewriter.list_programs(best, None, 1.0, rng, is_first=False), best)
        if program not in built:
            built.add(program)
            yield program
            if (ratio := score(program)) > fastest:
                best, fastest = program, ratio


def search_template(cell: KernelCell, builds: int, score: Score) -> Iterator[str]:
    """Every program that is built, each once. Raises UsageError for a language without a template of the kernel."""
    template = read_template(cell.kernel, cell.language)
    domain = Domain((0.0,) * len(template.choices), (1.0,) * len(template.choices))
    arm, built = OPTIMISERS["tpe"](domain, seed_search("templates", cell.place)), set[str]()
    for _ in range(builds * _PATIENCE):
        point = arm.ask()
        assert isinstance(point, tuple)
        shares = zip(template.choices.items(), point, strict=True)
        program = template.write_program(
            {name: own[min(len(own) - 1, int(share * len(own)))] for (name, own), share in shares}
        )
        if program not in built:
            built.add(program)
            yield program
        arm.tell(-score(program))


TUNER, TEMPLATES = "tuner", "templates"
CONTROLS: Mapping[str, Callable[[KernelCell, int, Score], Iterator[str]]] = {
    TUNER: climb_by_rules,
    TEMPLATES: search_template,
}


def tune_kernel(arm: str, cell: KernelCell, builds: int, bench: Workbench) -> TunedKernel | None:
    """None: the language has nothing for this arm, or is not timed. A search ends where a program is not timed."""
    if not isinstance(get_target(cell.language), Timed) or (
        arm == TUNER and not isinstance(get_target(cell.language), Tuned)
    ):
        return None
    score = partial(_score_program, bench, cell)
    programs: list[str] = []
    with suppress(UntimedError):
        for program in CONTROLS[arm](cell, builds, score):
            score(program)
            programs.append(program)
            if len(programs) == builds:
                break
    if not programs:
        return None
    task = find_task(cell.kernel, cell.language)
    best = max([task.impl or "", *programs], key=lambda source: 1.0 if source == task.impl else score(source))
    ratio = bench.time_program(task, best, dict(cell.sizes), MeasuringGrade.FULL)
    return TunedKernel(arm, cell, len(programs), best, read_parameters(cell.language, best), ratio)


def _score_program(bench: Workbench, cell: KernelCell, source: str) -> float:
    task = find_task(cell.kernel, cell.language)
    if not bench.judge_programs(task, [source])[source].is_right:
        return 0.0
    speed = screen_program(bench, cell, source)
    if speed.is_left_out:
        raise UntimedError
    return speed.ratio or 0.0
