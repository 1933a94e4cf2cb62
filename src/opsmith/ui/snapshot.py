"""A run as it stands just now: state, progress, tasks, rounds, spending, last verdicts, in one record."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from opsmith.records import Outcome, Task
from opsmith.report.plans import PlannedView, summarise_plans, view_plans
from opsmith.results.counting import group_of
from opsmith.results.precedents import Outlook, Precedent, expect_rest, guess_rounds, read_precedents
from opsmith.store import Store
from opsmith.store.pages import (
    SampleKind,
    SampleLine,
    SolvedTask,
    count_kinds,
    judged_since,
    last_failures,
    last_verdicts,
    list_solutions,
    session_settings,
)
from opsmith.store.queries import RunSummary
from opsmith.store.rows import FUNCTIONAL, RoundInfo
from opsmith.ui.reasons import read_reasons

LAST = 12  # verdicts that are listed
RATE_S = 300.0  # over which the speed is taken


class RunState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"  # a process works on it, and waits
    STOPPED = "stopped"  # no process works on it; the same command goes on
    FINISHED = "finished"


@dataclass(frozen=True)
class RoundLine:
    number: int
    level: str  # of its demonstrations; of a round that is not functional its phase
    demonstrations: tuple[str, ...]  # their tasks; of a round that is not functional none
    tasks: int  # attempted
    nodes: int  # that plans split off, which were tried beside them
    planned: int  # samples
    judged_count: int
    right: int
    solved: tuple[str, ...] | None  # None: it goes on
    is_functional: bool = True  # it solves tasks; others make programs faster


@dataclass(frozen=True)
class TaskCell:
    """A task with what is known of it; `right` of `judged_count` samples are of all rounds."""

    id: str
    group: str
    right: int
    judged_count: int
    solution: SolvedTask | None

    @property
    def was_given(self) -> bool:
        """The model has not solved it, and yet there is a program."""
        return self.solution is not None and self.solution.sample is None

    @property
    def given_as(self) -> str:
        """`known`: people gave its program; `given`: the run that this one began with, or an import."""
        return "known" if self.solution is not None and self.solution.is_known else "given"


@dataclass(frozen=True)
class RunSnapshot:
    summary: RunSummary
    state: RunState
    wish_paused: bool  # somebody asked for a pause, whether or not a process is there to obey
    rounds: tuple[RoundLine, ...]
    groups: Mapping[str, tuple[TaskCell, ...]]
    nodes: tuple[TaskCell, ...]  # tasks that plans split off: none of the run's own
    plans: tuple[PlannedView, ...]  # of the tasks that were split
    counts: Counter[SampleKind]
    functional: Counter[SampleKind]  # those of rounds that solve tasks
    last: tuple[SampleLine, ...]
    reasons: Mapping[str, str]  # why they did not pass, by sample
    problems: tuple[tuple[int, str, str, str], ...]  # round, task, charged to, message
    per_minute: float | None  # samples judged, of late; None: no process works on it, or it is not known
    max_cost: float | None  # USD
    max_rounds: int | None
    outlook: Outlook | None  # what is expected of it yet; None: it is finished, not known, or makes programs better

    @property
    def id(self) -> str:
        return self.summary.info.id

    @property
    def solved_count(self) -> int:
        """Tasks that the run solved itself; those given at its start apart."""
        return sum(cell.solution is not None and not cell.was_given for cell in self.task_cells)

    @property
    def pending_count(self) -> int:
        """Tasks with a right answer in the round that goes on; its end makes them solved."""
        return sum(cell.right > 0 and cell.solution is None for cell in self.task_cells) if self.current_round else 0

    @property
    def task_count(self) -> int:
        return sum(cell.solution is None or not cell.solution.is_earlier for cell in self.task_cells)

    @property
    def plan_summary(self) -> str:
        """In words; "" where no task was split."""
        return str(summarise_plans(self.plans)) if self.plans else ""

    @property
    def task_cells(self) -> list[TaskCell]:
        return [cell for cells in self.groups.values() for cell in cells]

    @property
    def current_round(self) -> RoundLine | None:
        """The round that goes on."""
        return self.rounds[-1] if self.rounds and self.rounds[-1].solved is None else None

    @property
    def left_s(self) -> float | None:
        """About how long the round still takes, if samples go on being judged as of late; None: not known."""
        if self.current_round is None or not self.per_minute or self.state is not RunState.RUNNING:
            return None
        return max(0, self.current_round.planned - self.current_round.judged_count) / self.per_minute * 60


class SnapshotReader:
    """Makes snapshots; what cannot change any more (a run's tasks, rounds that have ended) is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[str, list[Task]] = {}
        self._ended: dict[tuple[str, int], Counter[SampleKind]] = {}
        self._finished: dict[str, RunSummary] = {}
        self._precedents: dict[str, tuple[Precedent, ...]] = {}

    def list_tasks(self, run: str) -> list[Task]:
        if run not in self._tasks:
            self._tasks[run] = sorted(self._store.read_tasks(run), key=lambda task: task.id)
        return self._tasks[run]

    def read_summary(self, run: str) -> RunSummary:
        summary = self._finished.get(run) or self._store.summarise_run(run)
        if summary.finished:
            self._finished[run] = summary
        return summary

    def forget_run(self, run: str) -> None:
        """Read all of it again, should it be asked for."""
        self._tasks.pop(run, None)
        self._finished.pop(run, None)
        self._precedents.pop(run, None)
        for key in [key for key in self._ended if key[0] == run]:
            self._ended.pop(key, None)

    def read_state(self, run: str) -> tuple[RunState, bool]:
        """How a run stands just now, and whether somebody wished that it pauses."""
        if self._store.end_reason(run) is not None:
            return RunState.FINISHED, False
        wish = self._store.is_paused(run)
        if not self._store.is_held(run):
            return RunState.STOPPED, wish
        return RunState.PAUSED if wish else RunState.RUNNING, wish

    def read_snapshot(self, run: str) -> RunSnapshot:
        """Raises UsageError when there is no such run."""
        store, summary = self._store, self.read_summary(run)
        rounds = store.read_rounds(run)
        tried = {info.number: len(info.attempted) for info, _ in store.read_rounds(run, with_children=True)}
        counts = self._count_samples(run, rounds)
        functional = _keep_functional(counts, rounds)
        by_round, by_task = _tally_kinds(counts)[0], _tally_kinds(functional)[1]
        state, wish = self.read_state(run)
        settings, last = session_settings(store, run), tuple(last_verdicts(store, run, LAST))
        return RunSnapshot(
            summary=summary,
            state=state,
            wish_paused=wish,
            rounds=tuple(
                _make_line(info, solved, by_round[info.number], tried[info.number]) for info, solved in rounds
            ),
            groups=_group_cells(self.list_tasks(run), list_solutions(store, run), by_task),
            nodes=self._read_nodes(run, by_task),
            plans=view_plans(store, run),
            counts=counts,
            functional=functional,
            last=last,
            reasons=read_reasons(store, last),
            problems=tuple(last_failures(store, run, 3)),
            per_minute=self._read_rate(run) if state is RunState.RUNNING else None,
            max_cost=settings.get("max_cost"),
            max_rounds=settings.get("max_rounds"),
            outlook=None
            if state is RunState.FINISHED
            else self._expect_rest(
                summary, settings, [info for info, _ in rounds], sum(tally.judged_count for tally in by_round.values())
            ),
        )

    def _expect_rest(
        self, summary: RunSummary, settings: Mapping[str, Any], rounds: Sequence[RoundInfo], judged: int
    ) -> Outlook | None:
        """What a run that solves tasks asks for yet. Which runs tell so is looked up once."""
        if not rounds or settings.get("optimise"):
            return None
        run, info = summary.info.id, summary.info
        if run not in self._precedents:
            alike = {**settings, "model": info.model}
            stored = read_precedents(self._store, alike, info.target, [task.id for task in self.list_tasks(run)])
            self._precedents[run] = stored or (guess_rounds(settings.get("levels", 3), 0),)
        return expect_rest(self._precedents[run], rounds, judged, summary.usage, settings.get("max_rounds"))

    def _read_rate(self, run: str) -> float | None:
        """Samples judged in a minute, since the first of the last minutes; None: there are fewer than two."""
        now = time.time()
        samples, first = judged_since(self._store, run, now - RATE_S)
        return 60 * (samples - 1) / (now - first) if first is not None and samples > 1 and now > first else None

    def _read_nodes(self, run: str, tallies: Mapping[str, _Tally]) -> tuple[TaskCell, ...]:
        """By name; a node that several plans share once."""
        children = {task.id: task for task in self._store.read_children(run)}
        solved = list_solutions(self._store, run, with_children=True) if children else []
        groups = _group_cells(sorted(children.values(), key=lambda task: task.id), solved, tallies)
        return tuple(cell for cells in groups.values() for cell in cells)

    def _count_samples(
        self, run: str, rounds: Iterable[tuple[RoundInfo, tuple[str, ...] | None]]
    ) -> Counter[SampleKind]:
        total: Counter[SampleKind] = Counter()
        for info, solved in rounds:
            counts = self._ended.get((run, info.number)) or count_kinds(self._store, run, info.number)
            if solved is not None:
                self._ended[run, info.number] = counts
            total.update(counts)
        return total


@dataclass
class _Tally:
    judged_count: int = 0
    right: int = 0


def _keep_functional(
    counts: Counter[SampleKind], rounds: Iterable[tuple[RoundInfo, tuple[str, ...] | None]]
) -> Counter[SampleKind]:
    """The counts of rounds that solve tasks; all of them where a run has no others."""
    later = {info.number for info, _ in rounds if info.phase != FUNCTIONAL}
    return Counter({kind: samples for kind, samples in counts.items() if kind.round not in later}) if later else counts


def _tally_kinds(counts: Mapping[SampleKind, int]) -> tuple[dict[int, _Tally], dict[str, _Tally]]:
    """Judged samples and right ones, by round and by task."""
    rounds: dict[int, _Tally] = defaultdict(_Tally)
    tasks: dict[str, _Tally] = defaultdict(_Tally)
    for kind, samples in counts.items():
        for tally in (rounds[kind.round], tasks[kind.task]) if kind.outcome is not None else ():
            tally.judged_count += samples
            tally.right += samples if kind.outcome is Outcome.PASSED else 0
    return rounds, tasks


def _make_line(info: RoundInfo, solved: tuple[str, ...] | None, tally: _Tally, tried: int) -> RoundLine:
    own = len(info.attempted)
    is_functional = info.phase == FUNCTIONAL
    shown = tuple(task for task, _ in info.demonstrations) if is_functional else ()
    sizes, what = (own, tried - own, info.planned), info.level if is_functional else info.phase
    return RoundLine(info.number, what, shown, *sizes, tally.judged_count, tally.right, solved, is_functional)


def _group_cells(
    tasks: Iterable[Task], solved: Iterable[SolvedTask], tallies: Mapping[str, _Tally]
) -> dict[str, tuple[TaskCell, ...]]:
    by_digest = {solution.digest: solution for solution in solved}
    groups: dict[str, list[TaskCell]] = {}
    for task in tasks:
        tally = tallies.get(task.id, _Tally())
        cell = TaskCell(task.id, group_of(task), tally.right, tally.judged_count, by_digest.get(task.digest))
        groups.setdefault(cell.group, []).append(cell)
    return {group: tuple(cells) for group, cells in groups.items()}
