"""What the store's runs say about each arm: counts by task, rounds and tokens: what every analysis starts from."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opsmith.models.roles import shorten_model
from opsmith.records import Outcome, Task, Usage
from opsmith.results.counting import Count, count_best, deciding_tallies, group_of
from opsmith.results.result import RunResult
from opsmith.store import Store
from opsmith.store.queries import Tally
from opsmith.store.rows import FUNCTIONAL
from opsmith.store.spending import prompt_tokens_by_round, usage_by_round
from opsmith_lab.evaluation import measure
from opsmith_lab.evaluation.experiment import Arm, Experiment, Paper
from opsmith_lab.evaluation.measure import Marks, MeanEstimate
from opsmith_lab.evaluation.perform import PerformedRun

ALL = "all"  # the whole suite, beside its groups


@dataclass(frozen=True)
class ObservedRun:
    """One arm of one model and seed, from its run (or the first round of it)."""

    arm: Arm
    series: str
    seed: int
    result: RunResult
    tallies: tuple[Tally, ...]
    tokens: Mapping[int, Mapping[str, int]]  # of one prompt, by round and task
    usage: Usage
    settings: Mapping[str, Any]  # as the store has them
    further: int = 0  # judged samples that are in no tally: of optimisation rounds, of parts of plans

    @property
    def draw_seed(self) -> int:
        """The seed of its redrawn samples: another for every arm, model and seed."""
        return zlib.crc32(f"{self.series} {self.arm.name} {self.seed}".encode())

    @property
    def judged(self) -> int:
        """Its judged samples, of all rounds."""
        return self.further + sum(tally.judged for tally in self.tallies)

    def count_samples(self, tasks: Iterable[str], *, best: bool, last: int | None = None) -> list[Count]:
        """(n, c) of each task in the round that decided on it: the first with a right answer, or its last one.

        best: at the temperature with the highest rate (pass@1); else over all temperatures (pass@n).
        last: no round after this one.
        """
        count, tallies = count_best if best else _count_all, deciding_tallies(self.tallies, last)
        return [count(tallies.get(task, ())) for task in tasks]

    def mark_solved(self, tasks: Sequence[str], last: int | None = None) -> Marks:
        """1 for each of the tasks with a right program, else 0; `last`: no round after this one."""
        counts = self.count_samples(tasks, best=False, last=last)
        return {task: float(right > 0) for task, (_, right) in zip(tasks, counts, strict=True)}


@dataclass(frozen=True)
class Study:
    """An experiment with all that was observed."""

    experiment: Experiment
    store: Store
    tasks: tuple[Task, ...]  # with the authors' own programs, where the files have them
    observed: tuple[ObservedRun, ...]
    stopped: str = ""  # why it is not complete

    @cached_property
    def tasks_by_group(self) -> Mapping[str, tuple[str, ...]]:
        """The tasks by group, and all."""
        ids_by_group: dict[str, list[str]] = {}
        for task in self.tasks:
            ids_by_group.setdefault(group_of(task), []).append(task.id)
        return {**{name: tuple(ids) for name, ids in ids_by_group.items()}, ALL: tuple(task.id for task in self.tasks)}

    @property
    def judged(self) -> int:
        """The judged samples of all runs; an arm that is another's first round has none of its own."""
        return sum(run.judged for run in self.observed if not run.arm.first_round_of)

    @cached_property
    def series_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.series for run in self.observed))

    @cached_property
    def arm_names(self) -> tuple[str, ...]:
        """Those that were observed, in the order of the file."""
        names = {run.arm.name for run in self.observed}
        return tuple(arm.name for arm in self.experiment.arms if arm.name in names)

    @cached_property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """Each model with each of its arms that was observed."""
        pairs = ((series, arm) for series in self.series_names for arm in self.arm_names)
        return tuple(pair for pair in pairs if self.select_runs(*pair))

    def name_cell(self, series: str, arm: str) -> str:
        """The arm's name, with its model's where there are several models; of a single arm the model's alone."""
        if len(self.arm_names) == 1:
            return shorten_model(series)
        return arm if len(self.series_names) == 1 else f"{shorten_model(series)}, {arm}"

    def select_runs(self, series: str, arm: str) -> tuple[ObservedRun, ...]:
        """One arm of one model: an entry per seed."""
        return tuple(run for run in self.observed if (run.series, run.arm.name) == (series, arm))

    def share_solved(self, series: str, arm: str, tasks: Sequence[str]) -> MeanEstimate | None:
        """pass@n: the share of tasks solved, over tasks."""
        runs = self.select_runs(series, arm)
        samples = sum(n for run in runs for n, _ in run.count_samples(tasks, best=False))
        return measure.share_marks([run.mark_solved(tasks) for run in runs], samples)

    def estimate_pass_at(self, k: int, series: str, arm: str, tasks: Sequence[str]) -> MeanEstimate | None:
        """Over samples. None where a task has fewer than k."""
        seeds = [run.count_samples(tasks, best=True) for run in self.select_runs(series, arm)]
        has_fewer = any(max(n, 1) < k for counts in seeds for n, _ in counts)
        return None if has_fewer else measure.estimate_pass_at(seeds, k)

    def divide_solved(self, series: str, over: str, under: str) -> tuple[MeanEstimate | None, MeanEstimate | None]:
        """pass@n of an arm by that of another, of the seeds that both have: `measure.divide_solved`."""
        tops, bases = (
            [run.count_samples(self.tasks_by_group[ALL], best=False) for run in self.select_runs(series, arm)]
            for arm in (over, under)
        )
        size = min(len(tops), len(bases))
        return measure.divide_solved(tops[:size], bases[:size])

    def average_number(self, series: str, arm: str, number: Callable[[ObservedRun], float | None]) -> float | None:
        """A number's mean over seeds; None when one seed has none."""
        values = [number(run) for run in self.select_runs(series, arm)]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present and len(present) == len(values) else None

    def find_paper(self, name: str, arm: str, series: str, of: str = ALL) -> tuple[tuple[float, Paper], ...]:
        """What the paper says of the same: for this model, or for whatever one model it gives."""
        fits = [p for p in self.experiment.paper if (p.measure, p.arm) == (name, arm) and of in p.values]
        same_model = [paper for paper in fits if paper.model == series]
        chosen = same_model or (fits if len({paper.model for paper in fits}) == 1 else [])
        return tuple((paper.values[of], paper) for paper in chosen)


def read_study(
    experiment: Experiment, store: Store, tasks: Sequence[Task], performed: Sequence[PerformedRun], stopped: str = ""
) -> Study:
    """Read from the store what the runs left there."""
    observed = []
    for performed_run in performed:
        observed.append(_observe_run(store, performed_run, performed_run.planned.arm))
        first_arms = [arm for arm in experiment.arms if arm.first_round_of == performed_run.planned.arm.name]
        observed += [_observe_run(store, performed_run, arm, first=True) for arm in first_arms]
    order = {arm.name: i for i, arm in enumerate(experiment.arms)}
    places = {name: i for i, name in enumerate(dict.fromkeys(run.series for run in observed))}
    observed.sort(key=lambda run: (places[run.series], order[run.arm.name]))
    return Study(experiment, store, tuple(tasks), tuple(observed), stopped)


def _observe_run(store: Store, performed: PerformedRun, arm: Arm, first: bool = False) -> ObservedRun:
    run = performed.result.run
    tallies = store.read_tallies(run, 0 if first else None)
    functional = {info.number for info, _ in store.read_rounds(run) if info.phase == FUNCTIONAL}
    tokens = {
        number: tokens_by_task
        for number, tokens_by_task in prompt_tokens_by_round(store, run).items()
        if number in functional and (not first or number == 0)
    }
    usage = usage_by_round(store, run).get(0, Usage()) if first else performed.result.usage
    info = store.read_info(run)
    settings = {} if info is None else info.settings
    seed = performed.planned.settings.seed
    steps = sum(step.outcome in (Outcome.PASSED, Outcome.REFUSED) for step in store.read_steps(run))
    further = 0 if first else steps + count_parts(store, run, tallies)
    return ObservedRun(
        arm, performed.planned.series, seed, performed.result, tuple(tallies), tokens, usage, settings, further
    )


def count_parts(store: Store, run: str, own: Sequence[Tally]) -> int:
    """The judged samples of the children of plans."""
    every = store.read_tallies(run, with_children=True) if store.has_plans(run) else own
    return sum(tally.judged for tally in every) - sum(tally.judged for tally in own)


def _count_all(tallies: Iterable[Tally]) -> Count:
    """Of one task's tallies, the count over all temperatures."""
    counts = [(tally.judged, tally.right) for tally in tallies]
    return sum(samples for samples, _ in counts), sum(right for _, right in counts)
