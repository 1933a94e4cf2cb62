"""What a page shows of a whole run. The store's answers as plain records: nothing here knows of HTML.

All numbers that are estimates carry their interval. `run_view` reads counts only, never programs or prompts, so that
it stays usable on large stores; one task's attempts are read by `opsmith.report.attempts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from opsmith.records import Outcome, Usage, printable
from opsmith.report.conversations import describe_tool_use
from opsmith.report.fronts import FrontView, view_fronts
from opsmith.report.optimised import OptimisedView, view_optimisation
from opsmith.report.plans import PlannedView, summarise_plans, view_plans
from opsmith.report.speeds import SpeedRow, SpeedSummary, choose_kept, summarise_speeds, word_speed
from opsmith.report.tables import not_a_model
from opsmith.results.bests import list_best
from opsmith.results.by_model import ModelFigures, read_by_model
from opsmith.results.counting import Count, choose_best, count_best, deciding_tallies
from opsmith.results.course import CourseStep, read_course
from opsmith.results.intervals import Counts, Estimate, estimate_pass_at_k
from opsmith.results.metrics import GroupScore
from opsmith.results.optimisation import read_optimisation
from opsmith.results.refusals import name_failure
from opsmith.results.result import KnownResult, RunResult, TaskResult, result_of
from opsmith.results.settings_apart import list_settings
from opsmith.results.tool_use import ToolUse, read_tool_use
from opsmith.store import Store
from opsmith.store.attempts import RoundSpending, UnjudgedSample, list_unjudged, spent_by_round
from opsmith.store.endings import list_joins
from opsmith.store.notes import NO_REMARKS, Remarks
from opsmith.store.queries import Tally
from opsmith.store.rows import FUNCTIONAL, RoundInfo
from opsmith.targets.lookup import BUILT_IN, get_target


@dataclass(frozen=True)
class Cell:
    """One task in one round."""

    right: int
    judged: int
    solved: bool  # by this round

    @property
    def rate(self) -> float:
        return self.right / self.judged if self.judged else 0.0


@dataclass(frozen=True)
class TaskRow:
    id: str
    group: str
    state: str  # solved, unsolved, given (before the run began), known (given by people then) or untried
    round: int | None  # that solved it
    rate: float  # of that round
    right: int  # of all rounds
    judged: int
    input_tokens: int | None  # of one prompt
    contaminated: bool  # its solution equals an example of its own prompt
    cells: tuple[Cell | None, ...]  # by round; None: not tried in it
    cut_short: int = 0  # of the judged samples: out of tokens before a program


@dataclass(frozen=True)
class GroupRow:
    """Solved tasks of a group; `pass_at_1`, `pass_at_n` None: a task of it has no judged sample yet."""

    group: str
    tasks: int
    solved: int
    value_at_1: float | None  # mean success rate, as the closing table has it
    pass_at_1: Estimate | None
    pass_at_n: Estimate | None
    n: int  # samples of each task that pass@n counts
    unjudged: int = 0  # samples without a verdict at the temperatures that pass@1 counts

    @property
    def unjudged_note(self) -> str:
        """What stands beside pass@1."""
        return f" ({self.unjudged:,} unjudged)" if self.unjudged else ""


@dataclass(frozen=True)
class RoundRow:
    number: int
    cycle: int
    level: str
    demonstrations: tuple[str, ...]
    attempted: int
    nodes: int  # that plans split off, which were tried beside them
    planned: int
    spent: RoundSpending
    solved: tuple[str, ...]
    cumulative: int
    ended: bool
    input_tokens: int  # of all rounds up to this one


@dataclass(frozen=True)
class PassAt:
    """pass@k of one series of samples, with its interval."""

    series: str
    k: int
    estimate: Estimate


@dataclass(frozen=True)
class RunView:
    id: str
    model: str
    is_language_model: bool
    warning: str  # what marks results that are no language model's; "" for one
    target: str
    seed: int
    started: float  # seconds since 1970
    end: str
    finished: bool
    seconds: float
    overall: GroupRow
    groups: tuple[GroupRow, ...]
    rounds: tuple[RoundRow, ...]
    tasks: tuple[TaskRow, ...]
    solved_before: tuple[str, ...]
    usage: Usage
    guardian_usage: Usage
    guardian: Mapping[str, int]  # candidates by what it did to them; empty without one
    input_tokens: float | None  # mean over the tasks, of one prompt
    samples: int  # answered
    judged: int
    unjudged_reasons: tuple[tuple[str, int], ...]  # why samples have no verdict, and how many
    cut_short: int  # samples that ran out of tokens before a program; they are refused
    pass_at_k: tuple[PassAt, ...]
    solving: Mapping[str, tuple[int, int]]  # by task: (judged, right) of the samples that pass@1 counts
    first: Mapping[str, tuple[int, int]]  # the same of round 0
    speeds: tuple[SpeedRow, ...]  # of the kept programs
    speed_summary: SpeedSummary | None  # None: nothing was measured of them
    optimised: OptimisedView | None  # None: it has no rounds that make right programs better
    fronts: FrontView | None  # None: at most one figure of its programs is stored
    plans: tuple[PlannedView, ...]  # the tasks that were split
    models: tuple[ModelFigures, ...]  # (): it has one
    tool_use: ToolUse | None  # None: no tool was called
    remarks: Remarks = NO_REMARKS
    given_name: str = ""  # by people; "": none
    caveat: str = ""  # what verdicts in its language are not; "": nothing is to be said
    known: tuple[KnownResult, ...] = ()  # what it was given, right or not
    course: tuple[CourseStep, ...] = ()  # what it had come to at the end of each round, of both phases
    told: Mapping[str, str] = field(default_factory=dict)  # all settings as people write them, defaults too

    @property
    def name(self) -> str:
        """Short, for legends and columns: what people call it, else the model and the beginning of what names it."""
        short = self.given_name or f"{printable(self.model)} {self.id.rpartition('-')[2][:6]}"
        return short + ("" if self.is_language_model else " (no LM)")

    @property
    def tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens

    @property
    def gain(self) -> Estimate | None:
        """What may be published of its optimisation; None: nothing, or it has none."""
        return self.optimised.result.gain if self.optimised is not None else None

    @property
    def label(self) -> str:
        """What people call it: the name that they gave it, else its id."""
        return self.given_name or self.id

    @property
    def is_solving(self) -> bool:
        """Not one that only makes right programs better, of which rounds and rates say nothing."""
        return bool(self.overall.tasks) or self.optimised is None

    @property
    def plan_summary(self) -> str:
        """In words; "" where no task was split."""
        return str(summarise_plans(self.plans)) if self.plans else ""

    def list_joined(self) -> frozenset[str]:
        """The tasks that a joined program solved: no count of samples has their rates."""
        return frozenset(tree.task for tree in self.plans if tree.is_joined)

    @property
    def tool_lines(self) -> tuple[str, ...]:
        return tuple(describe_tool_use(self.tool_use)) if self.tool_use is not None else ()

    @property
    def unjudged(self) -> int:
        return self.samples - self.judged


_AS_THEY_ARE = ("end", "finished", "solved_before", "usage", "guardian_usage", "input_tokens", "cut_short", "known")


def run_view(store: Store, run: str) -> RunView:
    """Everything about a run but its samples. Raises UsageError for one that does not exist."""
    result, summary = result_of(store, run), store.summarise_run(store.find_run(run))
    run, tallies = result.run, store.read_tallies(result.run, with_children=True)
    every = list(result.per_task.values())
    optimised = view_optimisation(read_optimisation(store, run))
    rounds = [(info, solved) for info, solved in store.read_rounds(run) if info.phase == FUNCTIONAL]
    tried = {info.number: len(info.attempted) for info, _ in store.read_rounds(run, with_children=True)}
    first, info, models = store.find_optimisation(run), summary.info, read_by_model(store, run)
    spent = {
        number: spending
        for number, spending in spent_by_round(store, run, tallies).items()
        if first is None or number < first
    }
    joined = {join.task for join in list_joins(store, run) if join.outcome is Outcome.PASSED}
    counts, of_first = solving_counts(result, tallies, joined), _best_counts(result, tallies, last=0)
    rows, speeds = _view_rounds(rounds, spent, tried), store.read_speeds(run)
    unjudged = list_unjudged(store, run) if any(one.judged < one.samples for one in spent.values()) else []
    kept_speeds, beside = choose_kept(speeds, list_best(store, run)), count_beside(unjudged, tallies)
    return RunView(
        id=run,
        model=info.model,
        is_language_model=info.is_language_model,
        warning="" if summary.info.is_language_model else not_a_model(summary.info.model),
        target=info.target,
        seed=info.seed,
        started=summary.started,
        seconds=summary.seconds,
        overall=_view_group("all", list(result.per_task), result.overall, counts, beside),
        groups=tuple(
            _view_group(name, [own.task for own in every if own.group == name], score, counts, beside)
            for name, score in result.groups.items()
        ),
        rounds=rows,
        tasks=tuple(_view_tasks(result, tallies, [row.number for row in rows])),
        guardian=result.guardian if sum(result.guardian.values()) else {},
        samples=sum(spending.samples for spending in spent.values()),
        judged=sum(spending.judged for spending in spent.values()),
        unjudged_reasons=count_reasons(unjudged),
        pass_at_k=(
            *_estimate_curve("round 0", list(of_first.values())),
            *_estimate_curve("the round of each solution", list(counts.values()) if len(rows) > 1 else []),
        ),
        solving=counts,
        first=of_first,
        speeds=tuple(map(word_speed, kept_speeds)),
        speed_summary=summarise_speeds(kept_speeds) if kept_speeds else None,
        optimised=optimised,
        fronts=view_fronts(store, run, speeds),
        plans=view_plans(store, run),
        models=models if len(models) > 1 else (),
        tool_use=read_tool_use(store, run),
        remarks=store.read_remarks(run),
        given_name=info.name,
        caveat=getattr(get_target(info.target), "caveat", "") if info.target in BUILT_IN else "",
        course=read_course(store, run, optimised.result if optimised is not None else None),
        told=list_settings(info),
        **{name: getattr(result, name) for name in _AS_THEY_ARE},
    )


def solving_counts(
    result: RunResult, tallies: Iterable[Tally], joined: Set[str] = frozenset()
) -> dict[str, tuple[int, int]]:
    """(judged, right) by task: at the best temperature of the round that solved it, or of its last; as pass@1 counts.

    An unsolved task counts as wrong. A task without judged samples is left out, and so is one that a `joined` program
    solved: its rate is the product of those of its nodes, which no count of samples has.
    """
    best = _best_counts(result, tallies)
    return {
        name: (samples, right if result.per_task[name].solved else 0)
        for name, (samples, right) in best.items()
        if name not in joined
    }


def _best_counts(result: RunResult, tallies: Iterable[Tally], last: int | None = None) -> dict[str, Count]:
    """By task of the run's own: in the round that decided on it, none after `last`, at its best temperature."""
    deciding = deciding_tallies(tallies, last)
    return {name: count_best(deciding[name]) for name in deciding if name in result.per_task}


def _estimate_curve(series: str, counts: Counts) -> list[PassAt]:
    """pass@1, 2, 4 ... up to as many samples as every task has."""
    largest = min((n for n, _ in counts), default=0)
    ks = sorted({2**power for power in range(12) if 2**power <= largest} | ({largest} if largest else set()))
    estimates = [(k, estimate_pass_at_k(counts, k)) for k in ks]
    return [PassAt(series, k, value) for k, value in estimates if value is not None]


def _view_group(
    name: str,
    tasks: Sequence[str],
    score: GroupScore,
    counts: Mapping[str, tuple[int, int]],
    beside: Mapping[str, int],
) -> GroupRow:
    unjudged = sum(beside.get(task, 0) for task in tasks)
    own = [counts[task] for task in tasks if task in counts]
    if len(own) < len(tasks) or not own:
        return GroupRow(name, score.tasks, score.solved, score.pass_at_1, None, None, 0, unjudged)
    n = min(samples for samples, _ in own)
    estimates = (estimate_pass_at_k(own, 1), estimate_pass_at_k(own, n))
    return GroupRow(name, score.tasks, score.solved, score.pass_at_1, *estimates, n, unjudged)


def _view_rounds(
    rounds: Sequence[tuple[RoundInfo, tuple[str, ...] | None]],
    spent: Mapping[int, RoundSpending],
    tried: Mapping[int, int],
) -> tuple[RoundRow, ...]:
    rows, cumulative, tokens = [], 0, 0
    for info, solved in rounds:
        spending = spent.get(info.number, RoundSpending(0, 0, 0, Usage()))
        cumulative += len(solved or ())
        tokens += spending.usage.input_tokens
        demonstrations = tuple(task for task, _ in info.demonstrations)
        own = len(info.attempted)
        counts = (
            own,
            tried[info.number] - own,
            info.planned,
            spending,
            solved or (),
            cumulative,
            solved is not None,
            tokens,
        )
        rows.append(RoundRow(info.number, info.cycle, info.level, demonstrations, *counts))
    return tuple(rows)


def _view_tasks(result: RunResult, tallies: Iterable[Tally], numbers: Sequence[int]) -> Iterable[TaskRow]:
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for tally in tallies:
        right, samples = counts.get((tally.task, tally.round), (0, 0))
        counts[tally.task, tally.round] = (right + tally.right, samples + tally.judged)
    for task in result.per_task.values():
        yield _view_task(task, [counts.get((task.task, number)) for number in numbers], numbers)
    apart = dict.fromkeys(result.solved_before, "given") | dict.fromkeys(result.known_before, "known")
    for name, state in apart.items():
        yield TaskRow(name, "", state, None, 0.0, 0, 0, None, False, (None,) * len(numbers))


def _view_task(task: TaskResult, counts: Sequence[tuple[int, int] | None], numbers: Sequence[int]) -> TaskRow:
    cells = tuple(
        cell and Cell(*cell, solved=task.round == number) for cell, number in zip(counts, numbers, strict=True)
    )
    samples = sum(cell.judged for cell in cells if cell)
    state = "solved" if task.solved else "unsolved" if samples else "untried"
    right = sum(cell.right for cell in cells if cell)
    figures = (task.round, task.success_rate, right, samples, task.input_tokens, task.contaminated)
    return TaskRow(task.task, task.group, state, *figures, cells, task.cut_short)


REASONS = 5  # that are shown, the most frequent ones
BEING_JUDGED = "being judged"


def count_reasons(samples: Iterable[UnjudgedSample]) -> tuple[tuple[str, int], ...]:
    """Why samples have no verdict and how many of them, the most frequent reason first; lines of programs are left out.

    >>> count_reasons([UnjudgedSample(0, "a", 1.0, "not emulated: line 2: <mma.h>"), UnjudgedSample(0, "a", 1.0, "")])
    (('being judged', 1), ('not emulated: <mma.h>', 1))
    """
    counts = Counter(name_failure(sample.message) if sample.message else BEING_JUDGED for sample in samples)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(count for _, count in ordered[REASONS:])
    return (*ordered[:REASONS], *((("other reasons", rest),) if rest else ()))


def count_beside(samples: Sequence[UnjudgedSample], tallies: Iterable[Tally]) -> Mapping[str, int]:
    """By task, the samples without a verdict of the round and the temperature that its pass@1 counts."""
    counts = Counter((sample.round, sample.task, sample.temperature) for sample in samples)
    best = map(choose_best, deciding_tallies(tallies).values())
    return {tally.task: counts[tally.round, tally.task, tally.temperature] for tally in best if tally is not None}
