"""Hidden trials: the sizes at which a program must be right whose graph is not the same at all of them.

At sizes where its graph is another one, the smallest first, and at some that are drawn: odd, tiny, mixed, powers of
two, and each symbol larger than in any shape set of the task. A size at which the task makes no sense (its reference or
a function fails, a margin is out of reach) is left out. So is one at which a trial costs too much; where few graphs of
the program are left to be tried, a warning says which was not, and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np

from opsmith.problems.shape_sets import has_whole_dims
from opsmith.records import Scrutiny, Task
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.step.hidden.points import find_changing_sizes
from opsmith.targets.step.hidden.prepare import Preparation, Sizes, TooCostlyError, UnfitError, sizes_text
from opsmith.targets.step.hidden.variants import GraphVariant, depends_on_sizes, survey_sizes
from opsmith.targets.step.hidden.work import is_near
from opsmith.targets.step.language.check import Program
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.trial import Trial

MAX_CHANGED = 12  # other graphs of a program that are tried ...
MAX_FAR = 3  # ... of which so many at far sizes
ENOUGH = 3  # other graphs that were tried: then those that cost too much are not mentioned
PLACES = 4  # sizes at which a trial is looked for
ODD = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


def hidden_trials(task: Task, program: Program, scrutiny: Scrutiny) -> HiddenTrials | None:
    """Those of a program that is another one at other sizes; None for all others, which costs them nothing."""
    graph = program.report.graph
    if graph is None or not depends_on_sizes(graph, program.spec):
        return None
    warnings: list[str] = []
    seeds = [scrutiny.draw_number(task.digest, level) for level in scrutiny.levels]
    surveys = [(seed, survey_sizes(program.spec, program.source, seed)) for seed in seeds]
    flagged = [(seed, survey) for seed, survey in surveys if survey.is_flagged]
    if not flagged:
        return None
    choices = [(_Choice(Preparation(program, seed), warnings), survey.other_programs) for seed, survey in flagged]
    return HiddenTrials(chain.from_iterable(choice.choose_trials(others) for choice, others in choices), warnings)


@dataclass
class _Choice:
    """Chooses the trials of one program; `warnings` are whole when all have been asked for."""

    preparation: Preparation
    warnings: list[str] = field(default_factory=list)

    def choose_trials(self, variants: Sequence[GraphVariant]) -> Iterator[Trial]:
        yield from self._try_changed(variants)
        for kind in drawn_sizes(self.preparation.spec, self.preparation.seed):
            trial = self._first_of(kind, {})
            if trial is not None:
                yield trial

    def _try_changed(self, variants: Sequence[GraphVariant]) -> Iterator[Trial]:
        """A trial for each other graph. Where few could be tried, it is said which could not."""
        tried = far = 0
        costly: dict[str, TooCostlyError] = {}
        for variant in variants:
            places = [sizes for sizes in variant.list_places(PLACES) if is_near(sizes) or far < MAX_FAR]
            trial = self._first_of(places, costly)
            if trial is not None:
                tried, far = tried + 1, far + (not is_near(trial.data.draws[0].overrides))
                yield trial
            if tried == MAX_CHANGED:
                return
        if costly and tried < ENOUGH:
            where, reason = next(iter(costly.items()))
            self.warnings.append(f"at {where} this is another program, which was not tried there: {reason}")

    def _first_of(self, places: Iterable[Sizes], costly: dict[str, TooCostlyError]) -> Trial | None:
        """A trial at the first of these sizes that allow one."""
        for sizes in places:
            try:
                return self.preparation.make_trial(sizes)
            except TooCostlyError as error:
                costly.setdefault(sizes_text(sizes), error)
            except UnfitError:
                continue
        return None


def drawn_sizes(spec: TaskSpec, seed: int) -> Iterator[Iterator[dict[str, int]]]:
    """Kinds of sizes, of each some that the task's dims allow."""
    draw, largest = np.random.default_rng(seed), find_changing_sizes(spec)
    kinds: list[_Kind] = [
        lambda name: int(draw.choice(ODD)),
        lambda name: int(draw.integers(1, 4)),
        lambda name: int(draw.integers(1, 41)),
        lambda name: 2 ** int(draw.integers(0, 6)),
    ]
    for large, size in largest.items():
        kinds += [_one_large(draw, large, low * size, high * size) for low, high in ((1, 1.08), (1.3, 2), (2, 8))]
    return (_choose_allowed(spec, kind) for kind in kinds)


_Kind = Callable[[str], int]  # the size of a symbol


def _one_large(draw: np.random.Generator, large: str, low: float, high: float) -> _Kind:
    """One symbol larger than in any shape set, all others small."""

    def choose_size(name: str) -> int:
        if name != large:
            return int(draw.integers(2, 6))
        return int(math.exp(draw.uniform(math.log(low), math.log(high)))) + 1

    return choose_size


def _choose_allowed(spec: TaskSpec, kind: _Kind) -> Iterator[dict[str, int]]:
    """At most PLACES sizes at which every dim of the task is whole."""
    base, names = spec.problem.base_sizes, find_changing_sizes(spec)
    candidates = ({name: kind(name) for name in names} for _ in range(10 * PLACES))
    return islice((sizes for sizes in candidates if has_whole_dims(spec.problem, {**base, **sizes})), PLACES)
