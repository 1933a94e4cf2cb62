"""Hidden trials: the sizes at which a program must be right whose graph is not the same at all of them.

At sizes where its graph is another one, the smallest first, and at some that are drawn: of the kinds that programs in
other languages are tried at (`problems.size_kinds`), and each symbol far larger than in any shape set. A size at which
the task makes no sense (its reference or a function fails, a margin is out of reach) is left out. So is one at which a
trial costs too much; where few graphs of the program are left to be tried, a warning says which was not, and why.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from opsmith.problems.shape_sets import has_whole_dims
from opsmith.problems.size_kinds import GROWTH, REACH, SizeKind, SizeRange, list_kinds
from opsmith.records import Level, Scrutiny, Task
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
FAR = 8.0  # times its largest size in a shape set: as far as one symbol is drawn


def hidden_trials(task: Task, program: Program, scrutiny: Scrutiny) -> HiddenTrials | None:
    """Those of a program that is another one at other sizes; None for all others, which costs them nothing."""
    graph = program.report.graph
    if graph is None or not depends_on_sizes(graph, program.spec):
        return None
    warnings: list[str] = []
    seeds = [(level, scrutiny.draw_number(task.digest, level)) for level in scrutiny.levels]
    surveys = [(level, seed, survey_sizes(program.spec, program.source, seed)) for level, seed in seeds]
    flagged = [(level, seed, survey) for level, seed, survey in surveys if survey.is_flagged]
    if not flagged:
        return None
    choices = [
        (_Choice(Preparation(program, seed), level, warnings), survey.other_programs) for level, seed, survey in flagged
    ]
    return HiddenTrials(chain.from_iterable(choice.choose_trials(others) for choice, others in choices), warnings)


@dataclass
class _Choice:
    """Chooses the trials of one program; `warnings` are whole when all have been asked for."""

    preparation: Preparation
    level: Level
    warnings: list[str] = field(default_factory=list)

    def choose_trials(self, variants: Sequence[GraphVariant]) -> Iterator[Trial]:
        yield from self._try_changed(variants)
        for kind in drawn_sizes(self.preparation.spec, self.preparation.seed, self.level):
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


def drawn_sizes(spec: TaskSpec, seed: int, level: Level) -> Iterator[Iterator[dict[str, int]]]:
    """Kinds of sizes, of each some that the task's dims allow. Parts of magnitudes are not drawn: `survey_sizes` has
    looked at every size."""
    source = random.Random(seed)
    for kind in list_kinds(spec.problem, level):
        if not kind.name.startswith("step "):
            yield _choose_allowed(spec, kind, source)
    far = find_changing_sizes(spec).items() if level is Level.CHEAP else ()
    for name, size in far:
        for low, high in ((GROWTH, REACH), (REACH, FAR)):
            ranges = {other: (SizeRange(2, 5),) for other in find_changing_sizes(spec)}
            large = SizeRange(math.ceil(low * size) + 1, math.ceil(high * size) + 1)
            yield _choose_allowed(spec, SizeKind(f"far {name}", {**ranges, name: (large,)}, name), source)


def _choose_allowed(spec: TaskSpec, kind: SizeKind, source: random.Random) -> Iterator[dict[str, int]]:
    """At most PLACES sizes at which every dim of the task is whole."""
    base, names = spec.problem.base_sizes, find_changing_sizes(spec)
    drawn = (kind.draw_sizes(source, 1) or {} for _ in range(10 * PLACES))
    candidates = ({name: sizes.get(name, base[name]) for name in names} for sizes in drawn)
    return islice((sizes for sizes in candidates if has_whole_dims(spec.problem, {**base, **sizes})), PLACES)
