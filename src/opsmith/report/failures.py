"""Why things fail, as plain records: where samples ended by task and round, groups of equal refusals, nearest misses.

Counts are of the rounds that solve tasks, with the parts of split tasks. Texts of programs and verdicts are read for
what is shown alone: one program a group, and the nearest miss of each task without a right sample.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from opsmith.records import Boundary, Stage, Task, Verdict
from opsmith.report.tables import count_noun
from opsmith.report.verdicts import label_of
from opsmith.results.refusals import (
    Miss,
    Place,
    RefusalGroup,
    RefusalGrouping,
    RunRefusals,
    UnjudgedGroup,
    describe_nearness,
)
from opsmith.store import Store
from opsmith.store.attempts import list_unjudged
from opsmith.store.queries import Tally
from opsmith.store.refused import list_failed_samples
from opsmith.store.rows import FUNCTIONAL, NOBODY
from opsmith.targets.capabilities import explain_message

GROUPS = 10  # of equal refusals that are shown
MISSES = 40  # tasks whose nearest miss is shown
ALIKE = (8, 4)  # samples and different programs of a task from which one reason for all of them says something
PASSED, UNJUDGED = "passed", "unjudged"
CHARGES: Mapping[str, tuple[str, str]] = {  # who is charged: in words, and what to do
    "program": ("the program", "the model wrote it: the groups below say what it does wrong"),
    "reply": ("the reply: no program in it", "look at a reply: was it cut short, or is the answer's form unclear?"),
    Boundary.PROVIDER: ("the provider: no reply came", "start the same command again; ask less at once (concurrency)"),
    Boundary.TASK: ("the task file", "check it: opsmith check FILE"),
    Boundary.TARGET: ("the language, by its author", "tell its author"),
    Boundary.SANDBOX: ("this machine", "look at its memory, tools and limits; then opsmith reverify RUN"),
    Boundary.OURS: ("opsmith itself", "report it, with the message below"),
    NOBODY: ("nobody: the model had nothing more to say", "a larger budget, or another model"),
    "waiting": ("nobody: being judged", "nothing; a run that was stopped goes on with the same command"),
}


@dataclass(frozen=True)
class EndsRow:
    """Samples of a task or of a round: by where they ended, and by the causes that are shown."""

    name: str
    ends: tuple[int, ...]  # in the order of the table's ends
    causes: tuple[int, ...]  # in the order of the causes that are listed, numbered from 1
    rarer: int  # refused for other causes
    unjudged: int
    note: str = ""

    @property
    def total(self) -> int:
        return sum(self.ends)

    @property
    def passed(self) -> int:
        return self.ends[0]

    @property
    def is_open(self) -> bool:
        """None of them is right."""
        return not self.passed


@dataclass(frozen=True)
class EndsTable:
    ends: tuple[str, ...]  # passed, MATCH, RUN ... FORMAT, unjudged: those that occur
    shades: tuple[str, ...]  # the class of each end's colour
    totals: tuple[int, ...]
    tasks: tuple[EndsRow, ...]  # those without a right sample first
    rounds: tuple[EndsRow, ...]

    @property
    def has_rarer(self) -> bool:
        return any(row.rarer for row in self.rounds)

    @property
    def has_unjudged(self) -> bool:
        return any(row.unjudged for row in self.rounds)


@dataclass(frozen=True)
class MissView:
    """A refused program with its verdict, shown for many others or as the nearest of a task."""

    miss: Miss
    label: str  # the stage
    nearness: str  # in words
    source: str | None  # None: the reply held no program
    error: str  # the first finding in full
    further: int  # findings beside it
    remedy: str  # of the first finding


@dataclass(frozen=True)
class CauseView:
    """A group of equal refusals."""

    group: RefusalGroup
    share: float  # of all refused samples
    view: MissView

    @property
    def title(self) -> str:
        return self.group.title


@dataclass(frozen=True)
class AlikeTask:
    """A task whose samples all failed for one reason, in several different programs."""

    task: str
    reason: str
    samples: int
    programs: int


@dataclass(frozen=True)
class FailureView:
    """Why samples of a run, or of one task of it, did not pass."""

    right: int
    refused: int
    unjudged: int
    ends: EndsTable
    charges: tuple[tuple[str, str, int], ...]  # who, what to do, samples
    causes: tuple[CauseView, ...]  # the most frequent first
    causes_left: int
    samples_left: int  # of the causes that are not shown
    unjudged_groups: tuple[UnjudgedGroup, ...]
    misses: tuple[MissView, ...]  # of tasks without a right sample, the nearest first
    misses_left: tuple[str, ...]  # tasks whose nearest miss is not shown
    alike: tuple[AlikeTask, ...]
    lacks: tuple[tuple[str, str], ...]  # tasks without a right sample, and the values of the reference that they lack

    @cached_property
    def judged(self) -> int:
        return self.right + self.refused

    @property
    def headline(self) -> str:
        """How it stands, in a sentence."""
        return write_headline(self.right, self.refused, self.unjudged, [not row.is_open for row in self.ends.tasks])

    def as_json(self) -> dict[str, Any]:
        """The numbers, for scripts."""
        return {
            "right": self.right,
            "refused": self.refused,
            "unjudged": self.unjudged,
            "ends": {
                "tasks": {row.name: dict(zip(self.ends.ends, row.ends, strict=True)) for row in self.ends.tasks},
                "rounds": {row.name: dict(zip(self.ends.ends, row.ends, strict=True)) for row in self.ends.rounds},
            },
            "causes": [_cause_json(cause) for cause in self.causes],
            "unjudged_causes": [
                {"charged_to": group.charged_to, "reason": group.reason, "samples": group.samples}
                for group in self.unjudged_groups
            ],
            "nearest": [_miss_json(view) for view in self.misses],
        }


class FailureReader:
    """What the views of a run (a whole id) and of its tasks are made of, read once.

    `ended`: the groups of rounds that have ended, by number; they are read where they are not there, and added.
    """

    def __init__(self, store: Store, run: str, ended: dict[int, RefusalGrouping] | None = None) -> None:
        self._store = store
        self._rounds = [info for info, _ in store.read_rounds(run, with_children=True) if info.phase == FUNCTIONAL]
        self._run, self._ended = run, {} if ended is None else ended
        self._failed = list_failed_samples(store, run, [info.number for info in self._rounds])
        self._tallies = store.read_tallies(run, with_children=True)
        unjudged = list_unjudged(store, run) if store.sample_count(run) > sum(t.judged for t in self._tallies) else []
        self._waiting = [(sample.task, sample.round) for sample in unjudged if not sample.message]

    @cached_property
    def _grouping(self) -> RefusalGrouping:
        return _read_grouping(self._store, self._run, self._ended)

    def write_headline(self) -> str:
        """That of the run's view, from counts alone: no verdict is read."""
        right, solved = sum(tally.right for tally in self._tallies), dict[str, bool]()
        for tally in self._tallies:
            solved[tally.task] = solved.get(tally.task, False) or tally.right > 0
        for name in (*(sample.task for sample in self._failed), *(task for task, _ in self._waiting)):
            solved.setdefault(name, False)
        refused = sum(tally.judged for tally in self._tallies) - right
        return write_headline(right, refused, len(self._failed) + len(self._waiting), list(solved.values()))

    def view_failures(self, task: str | None = None) -> FailureView:
        """Of the run, or of one of its tasks, whose groups begin with the nearest miss."""
        refusals = self._grouping.make_refusals(self._failed, task)
        tallies = [tally for tally in self._tallies if task in (None, tally.task)]
        waiting = [place for place in self._waiting if task in (None, place[0])]
        listed = (refusals.groups if task is None else refusals.sort_by_nearness())[:GROUPS]
        ends = tabulate_ends(refusals, listed, tallies, waiting, self._describe_rounds())
        unsolved = [row.name for row in ends.tasks if row.is_open and row.name in refusals.nearest]
        unsolved.sort(key=lambda name: refusals.nearest[name].nearness, reverse=True)
        misses = [refusals.nearest[name] for name in unsolved[:MISSES]]
        lacks = [(name, self._grouping.make_refusals((), name).lacks) for name in unsolved[:MISSES]]
        views = view_misses(self._store, self._run, [*(group.nearest for group in listed), *misses])
        return FailureView(
            right=sum(tally.right for tally in tallies),
            refused=refusals.refused,
            unjudged=refusals.unjudged_count + len(waiting),
            ends=ends,
            charges=tuple(_list_charges(refusals, len(waiting))),
            causes=tuple(CauseView(group, group.samples / refusals.refused, views[group.nearest]) for group in listed),
            causes_left=len(refusals.groups) - len(listed),
            samples_left=refusals.refused - sum(group.samples for group in listed),
            unjudged_groups=refusals.unjudged[:GROUPS],
            misses=tuple(views[miss] for miss in misses),
            misses_left=tuple(unsolved[MISSES:]),
            alike=tuple(_find_alike(refusals, unsolved)),
            lacks=tuple((name, words) for name, words in lacks if words),
        )

    def _describe_rounds(self) -> dict[str, str]:
        """By number: what a round showed."""
        return {
            str(info.number): f"{count_noun(len(info.demonstrations), 'demonstration')} ({info.level})"
            if info.demonstrations
            else "no demonstrations"
            for info in self._rounds
        }


def _read_grouping(store: Store, run: str, ended: dict[int, RefusalGrouping]) -> RefusalGrouping:
    merged = RefusalGrouping()
    for info, solved in store.read_rounds(run, with_children=True):
        if info.phase != FUNCTIONAL:
            continue
        grouping = ended.get(info.number)
        if grouping is None:
            grouping = RefusalGrouping()
            grouping.add_round(store, run, info.number)
        if solved is not None:
            ended[info.number] = grouping
        merged.merge_grouping(grouping)
    return merged


def view_misses(store: Store, run: str, misses: Iterable[Miss]) -> dict[Miss, MissView]:
    """Each with its program and its first finding."""
    tasks = {task.id: task for task in (*store.read_tasks(run), *store.read_children(run))}
    distinct = list(dict.fromkeys(misses))
    candidates = store.read_candidates([miss.sample for miss in distinct])
    counted = {sample: rows[-1] for sample, rows in candidates.items()}  # what a sample counts by stands last
    return {
        miss: _view_miss(miss, counted[miss.sample].verdict, counted[miss.sample].source, tasks.get(miss.task))
        for miss in distinct
        if miss.sample in counted
    }


Counts = Mapping[Place, Counter[str | int]]  # samples by where they ended, and by the number of their cause


def tabulate_ends(
    refusals: RunRefusals,
    listed: Sequence[RefusalGroup],
    tallies: Sequence[Tally],
    waiting: Iterable[Place] = (),
    notes: Mapping[str, str] | None = None,
) -> EndsTable:
    """Samples by task, by round, by where they ended and by cause.

    `waiting`: places of those that are being judged; `notes`: what is said of rounds, by number.
    """
    counts = _count_places(refusals, listed, tallies, waiting)
    totals = sum(counts.values(), Counter[str | int]())
    stages = sorted({group.stage for group in refusals.groups}, reverse=True)
    possible = (PASSED, *(stage.name for stage in stages), UNJUDGED)
    ends = tuple(name for name in possible if totals[name] or name == PASSED)
    tasks = _sum_rows(((task, counter) for (task, _), counter in counts.items()), ends, len(listed))
    by_round = sorted(counts.items(), key=lambda entry: entry[0][1])
    rounds = _sum_rows(((str(number), counter) for (_, number), counter in by_round), ends, len(listed))
    tasks.sort(key=lambda row: (not row.is_open, -(row.total - row.passed), row.name))
    rounds = [replace(row, note=(notes or {}).get(row.name, "")) for row in rounds]
    shades, sums = tuple(map(_choose_shade, ends)), tuple(totals[name] for name in ends)
    return EndsTable(ends, shades, sums, tuple(tasks), tuple(rounds))


def _count_places(
    refusals: RunRefusals, listed: Sequence[RefusalGroup], tallies: Sequence[Tally], waiting: Iterable[Place]
) -> Counts:
    counts: defaultdict[Place, Counter[str | int]] = defaultdict(Counter)
    numbers = {id(group): number for number, group in enumerate(listed)}
    for tally in tallies:
        counts[tally.task, tally.round][PASSED] += tally.right
    for group in refusals.groups:
        for place, samples in group.places.items():
            counts[place][group.stage.name] += samples
            counts[place][numbers.get(id(group), -1)] += samples
    for unjudged in refusals.unjudged:
        for place, samples in unjudged.places.items():
            counts[place][UNJUDGED] += samples
    for place in waiting:
        counts[place][UNJUDGED] += 1
    return counts


def _sum_rows(entries: Iterable[tuple[str, Counter[str | int]]], ends: Sequence[str], causes: int) -> list[EndsRow]:
    sums: dict[str, Counter[str | int]] = {}
    for name, counter in entries:
        sums.setdefault(name, Counter()).update(counter)
    return [
        EndsRow(
            name,
            tuple(counter[end] for end in ends),
            tuple(counter[number] for number in range(causes)),
            counter[-1],
            counter[UNJUDGED],
        )
        for name, counter in sums.items()
    ]


_SHADES = {PASSED: "passed", "MATCH": "match", "RUN": "run", "FORMAT": "format", UNJUDGED: "none"}
_EARLIER = {"PARSE": "parse", "TYPE": "type", "AFFINE": "affine", "COMPILE": "affine"}


def _choose_shade(end: str) -> str:
    """The class of an end's colour; stages that a target names itself share one."""
    return f"end-{_SHADES.get(end) or _EARLIER.get(end, 'type')}"


def _view_miss(miss: Miss, verdict: Verdict, source: str | None, task: Task | None) -> MissView:
    finding = verdict.errors[0] if verdict.errors else None
    error = finding.block() if finding is not None else verdict.message
    error = explain_message(task, error) if task is not None else error
    further, remedy = max(0, len(verdict.errors) - 1), finding.remedy if finding is not None else ""
    label = label_of(verdict.stage, verdict.outcome)
    return MissView(miss, label, describe_nearness(miss.nearness), source, error, further, remedy)


def _list_charges(refusals: RunRefusals, waiting: int) -> Iterable[tuple[str, str, int]]:
    """Who is charged with how many samples that did not pass, the most frequent first."""
    counts = Counter[str]()
    for group in refusals.groups:
        counts["reply" if group.stage == Stage.FORMAT else "program"] += group.samples
    for unjudged in refusals.unjudged:
        counts[unjudged.charged_to] += unjudged.samples
    counts["waiting"] += waiting
    for charge, samples in counts.most_common():
        if samples:
            yield (*CHARGES.get(charge, (charge, "")), samples)


def _find_alike(refusals: RunRefusals, unsolved: Iterable[str]) -> Iterable[AlikeTask]:
    """Unsolved tasks whose programs all fail for one reason."""
    by_task: dict[str, list[RefusalGroup]] = {}
    for group in refusals.groups:
        for task in group.tasks:
            by_task.setdefault(task, []).append(group)
    for task in unsolved:
        groups = by_task[task]
        samples = groups[0].tasks[task]
        if len(groups) == 1 and samples >= ALIKE[0] and groups[0].programs >= ALIKE[1]:
            yield AlikeTask(task, groups[0].title, samples, groups[0].programs)


def _cause_json(cause: CauseView) -> dict[str, Any]:
    group = cause.group
    return {
        "stage": group.stage.name,
        "kind": group.kind,
        "reason": group.reason,
        "samples": group.samples,
        "programs": group.programs,
        "tasks": dict(group.tasks),
        "rounds": {str(number): samples for number, samples in group.rounds.items()},
        "nearest": group.nearest.sample,
    }


def _miss_json(view: MissView) -> dict[str, Any]:
    miss = view.miss
    return {
        "task": miss.task,
        "sample": miss.sample,
        "round": miss.round,
        "stage": view.label,
        "reason": miss.reason,
        "nearness": view.nearness,
    }


def write_headline(right: int, refused: int, unjudged: int, solved: Sequence[bool]) -> str:
    """How samples ended, in a sentence. `solved`: of each task that was tried, whether it has a right sample."""
    if not right + refused + unjudged:
        return "No sample that was to solve a task has a verdict so far."
    if not refused + unjudged:
        return f"Nothing failed: {_count_samples(right)}, all right."
    ended = [f"{refused:,} of {_count_samples(right + refused)} with a verdict {_verb(refused)} refused"]
    ended += [f"{unjudged:,} {_verb(unjudged)} left without a verdict"] if unjudged else []
    tasks = solved.count(False)
    unsolved = f"{count_noun(tasks, 'task')} without a right sample"
    unsolved = unsolved if tasks else "every task that was tried has a right sample"
    return f"{'; '.join([*ended, unsolved] if len(solved) > 1 else ended)}."


def _count_samples(number: int) -> str:
    return count_noun(number, "sample")


def _verb(number: int) -> str:
    return "is" if number == 1 else "are"
