"""What do the store's runs say about each arm? Counts by task, rounds and tokens: what every analysis starts from."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opsmith.evaluation import measure
from opsmith.evaluation.experiment import Arm, Experiment, Paper
from opsmith.evaluation.measure import Drawn, Measured, Statistic
from opsmith.evaluation.perform import Done
from opsmith.learn.result import RunResult, group_of
from opsmith.records import Task, Usage
from opsmith.store import Store
from opsmith.store.queries import Tally
from opsmith.store.spending import prompt_tokens_by_round, usage_by_round

ALL = "all"  # the whole benchmark, beside its groups
Count = tuple[int, int]  # judged samples, right ones


@dataclass(frozen=True)
class Observed:
    """One arm of one model and seed, from its run (or the first round of it)."""

    arm: Arm
    series: str
    seed: int
    result: RunResult
    tallies: tuple[Tally, ...]
    tokens: Mapping[int, Mapping[str, int]]  # of one prompt, by round and task
    usage: Usage
    settings: Mapping[str, Any]  # as the store has them

    @property
    def draw(self) -> int:
        """The seed of its redrawn samples: another for every arm, model and seed."""
        return zlib.crc32(f"{self.series} {self.arm.name} {self.seed}".encode())

    def counts(self, tasks: Iterable[str], *, best: bool, last: int | None = None) -> list[Count]:
        """(n, c) of each task in the round that decided on it: the first with a right answer, or its last one.

        best: at the temperature with the highest rate (pass@1); else over all temperatures (pass@n).
        last: no round after this one.
        """
        found = self._by_task(last)
        return [_best(found.get(task, ())) if best else _sum(found.get(task, ())) for task in tasks]

    def _by_task(self, last: int | None) -> Mapping[str, Sequence[Tally]]:
        rounds: dict[str, dict[int, list[Tally]]] = {}
        for tally in self.tallies:
            if last is None or tally.round <= last:
                rounds.setdefault(tally.task, {}).setdefault(tally.round, []).append(tally)
        return {task: found[_deciding(found)] for task, found in rounds.items()}


@dataclass(frozen=True)
class Study:
    """An experiment with all that was observed."""

    experiment: Experiment
    store: Store
    tasks: tuple[Task, ...]  # with the authors' own programs, where the files have them
    observed: tuple[Observed, ...]
    stopped: str = ""  # why it is not complete

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The tasks by group, and all."""
        found: dict[str, list[str]] = {}
        for task in self.tasks:
            found.setdefault(group_of(task), []).append(task.id)
        return {**{name: tuple(ids) for name, ids in found.items()}, ALL: tuple(task.id for task in self.tasks)}

    @cached_property
    def series(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.series for item in self.observed))

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """Those that were observed, in the order of the file."""
        seen = {item.arm.name for item in self.observed}
        return tuple(arm.name for arm in self.experiment.arms if arm.name in seen)

    def cell(self, series: str, arm: str) -> tuple[Observed, ...]:
        """One arm of one model: an entry per seed."""
        return tuple(item for item in self.observed if (item.series, item.arm.name) == (series, arm))

    def pass_at_1(self, series: str, arm: str, tasks: Sequence[str]) -> Measured | None:
        return measure.over_seeds(self.drawn(series, arm, tasks, measure.rate, best=True))

    def pass_at_n(self, series: str, arm: str, tasks: Sequence[str]) -> Measured | None:
        return measure.over_seeds(self.drawn(series, arm, tasks, measure.solved))

    def pass_at(self, k: int, series: str, arm: str, tasks: Sequence[str]) -> Measured | None:
        """None where a task has fewer than k samples."""
        cell = self.cell(series, arm)
        if any(n < k for item in cell for n, _ in item.counts(tasks, best=True)):
            return None
        return measure.over_seeds(self.drawn(series, arm, tasks, measure.at(k), best=True))

    def drawn(
        self, series: str, arm: str, tasks: Sequence[str], statistic: Statistic, *, best: bool = False
    ) -> list[Drawn | None]:
        """A statistic of each seed."""
        cell = self.cell(series, arm)
        return [measure.drawn(item.counts(tasks, best=best), statistic, item.draw) for item in cell]

    def mean(self, series: str, arm: str, number: Callable[[Observed], float | None]) -> float | None:
        """A number's mean over seeds; None when one seed has none."""
        found = [number(item) for item in self.cell(series, arm)]
        known = [value for value in found if value is not None]
        return sum(known) / len(known) if known and len(known) == len(found) else None

    def paper(self, name: str, arm: str, series: str, of: str = ALL) -> tuple[tuple[float, Paper], ...]:
        """What the paper says of the same: for this model, or for whatever one model it gives."""
        fits = [item for item in self.experiment.paper if (item.measure, item.arm) == (name, arm) and of in item.values]
        same = [item for item in fits if item.model == series]
        chosen = same or (fits if len({item.model for item in fits}) == 1 else [])
        return tuple((item.values[of], item) for item in chosen)


def study_of(
    experiment: Experiment, store: Store, tasks: Sequence[Task], done: Sequence[Done], stopped: str = ""
) -> Study:
    """Read from the store what the runs left there."""
    observed = []
    for item in done:
        observed.append(_observed(store, item, item.planned.arm))
        parts = [arm for arm in experiment.arms if arm.first_round_of == item.planned.arm.name]
        observed += [_observed(store, item, arm, first=True) for arm in parts]
    order = {arm.name: at for at, arm in enumerate(experiment.arms)}
    places = {name: at for at, name in enumerate(dict.fromkeys(item.series for item in observed))}
    observed.sort(key=lambda item: (places[item.series], order[item.arm.name]))
    return Study(experiment, store, tuple(tasks), tuple(observed), stopped)


def _observed(store: Store, item: Done, arm: Arm, first: bool = False) -> Observed:
    run = item.result.run
    tallies = store.tallies(run, 0 if first else None)
    tokens = {number: found for number, found in prompt_tokens_by_round(store, run).items() if not first or number == 0}
    usage = usage_by_round(store, run).get(0, Usage()) if first else item.result.usage
    info = store.info(run)
    settings = {} if info is None else info.settings
    seed = item.planned.settings.seed
    return Observed(arm, item.planned.series, seed, item.result, tuple(tallies), tokens, usage, settings)


def _deciding(rounds: Mapping[int, Sequence[Tally]]) -> int:
    solved = [number for number, found in rounds.items() if any(tally.right for tally in found)]
    return min(solved) if solved else max(rounds)


def _sum(tallies: Sequence[Tally]) -> Count:
    return sum(tally.judged for tally in tallies), sum(tally.right for tally in tallies)


def _best(tallies: Sequence[Tally]) -> Count:
    return max(((t.judged, t.right) for t in tallies), key=lambda count: count[1] / max(count[0], 1), default=(0, 0))
