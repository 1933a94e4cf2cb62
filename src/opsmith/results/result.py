"""What came of a run. Built from the store alone, so that a finished run's result can be shown again at any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opsmith.agents.guardian import Effect
from opsmith.agents.reply import CUT_SHORT, REPEATED
from opsmith.records import KNOWN, Experience, Task, Usage, to_json
from opsmith.results.counting import group_of
from opsmith.results.metrics import (
    GroupScore,
    mean_of,
    score_by_group,
    score_rates,
)
from opsmith.store import Store
from opsmith.store.queries import KeptExperience
from opsmith.store.refused import list_failed_samples, list_functional_rounds
from opsmith.store.rows import FUNCTIONAL, GUARDIAN
from opsmith.targets.capabilities import find_repaired_stage


@dataclass(frozen=True)
class RoundResult:
    round: int
    cycle: int
    level: str  # none, H, HM, HME ...
    demonstrations: int
    attempted: int  # tasks
    newly_solved: tuple[str, ...]
    cumulative: int  # tasks solved by the end of the round; those solved before the run apart


@dataclass(frozen=True)
class KnownResult:
    """A program that the run was given, and what became of it: none of a model's."""

    task: str
    author: str  # person, model or rules
    place: str  # where it came from
    state: str  # shown, refused, unjudged, kept (no round began since) or unused (the task had a program)
    round: int | None = None  # the first that shows it; None: none does
    message: str = field(default="", metadata={"left_out": ""})  # of the verdict on one that is not right


@dataclass(frozen=True)
class TaskResult:
    task: str
    group: str
    solved: bool
    round: int | None  # the round that solved it
    success_rate: float  # of that round; 0 when no round did
    samples: int  # judged, over all rounds
    input_tokens: int | None  # of one sample's prompt in the round that solved it, or in the last; None: never tried
    contaminated: bool  # the solution equals an example of its own prompt
    cut_short: int = field(default=0, metadata={"left_out": 0})  # samples that ran out of tokens before a program
    unjudged: int = field(default=0, metadata={"left_out": 0})  # samples without a verdict, whoever is charged
    repeated: int = field(
        default=0, metadata={"left_out": 0}
    )  # samples that went in circles until their limit of tokens


@dataclass(frozen=True)
class RunResult:
    """Tasks `solved_before` were solved before the run began (another run's, or imported): they count nowhere else. Nor
    do those that are `known` from the start; what is given later stays counted as unsolved by the model."""

    run: str
    model: str
    is_language_model: bool
    end: str  # why it ended, or why it stopped for now
    finished: bool  # False: the same command goes on from here
    rounds: tuple[RoundResult, ...]
    per_task: Mapping[str, TaskResult]
    solved_before: tuple[str, ...]
    overall: GroupScore
    groups: Mapping[str, GroupScore]
    usage: Usage  # all that was billed
    guardian_usage: Usage  # the guardian's part of it
    input_tokens: float | None  # as the paper counts them: mean over the tasks of `TaskResult.input_tokens`
    guardian: Mapping[str, int]  # candidates by what the guardian did to them
    wall_s: float  # of all sessions that ended in an orderly way
    experiences: tuple[Experience, ...] = field(repr=False)  # all, those given included
    name: str = ""  # that people gave the run; "": none
    known: tuple[KnownResult, ...] = ()  # what the run was given, right or not
    known_before: tuple[str, ...] = ()  # tasks of its own with such a program before any round

    @property
    def solved(self) -> int:
        return self.overall.solved

    @property
    def cut_short(self) -> int:
        """Samples whose reply the limit of tokens cut before it held a program; they count as refused."""
        return sum(task.cut_short for task in self.per_task.values())

    @property
    def repeated(self) -> int:
        """Samples whose reply said the same over and over, until the limit of tokens cut it; they count as refused."""
        return sum(task.repeated for task in self.per_task.values())

    @property
    def unjudged(self) -> int:
        """Samples without a verdict, which count nowhere else."""
        return sum(task.unjudged for task in self.per_task.values())

    def as_json(self) -> dict[str, Any]:
        """What `opsmith run --json` prints."""
        names = ("round", "cycle", "level", "demonstrations", "attempted", "cumulative")
        return {
            "run": self.run,
            **({"name": self.name} if self.name else {}),
            "model": self.model,
            "is_language_model": self.is_language_model,
            "end": self.end,
            "finished": self.finished,
            "solved": self.solved,
            "tasks": self.overall.tasks,
            "given": list(self.solved_before),
            **({"known": to_json(self.known)} if self.known else {}),
            "pass_at_1": self.overall.pass_at_1,
            "pass_at_n": self.overall.pass_at_n,
            "groups": to_json(self.groups),
            "rounds": [
                {**{name: getattr(row, name) for name in names}, "newly_solved": len(row.newly_solved)}
                for row in self.rounds
            ],
            "per_task": to_json(self.per_task),
            "input_tokens": self.input_tokens,
            "guardian": dict(self.guardian),
            "usage": to_json(self.usage),
            "wall_s": self.wall_s,
            **({"cut_short": self.cut_short} if self.cut_short else {}),
            **({"repeated": self.repeated} if self.repeated else {}),
            **({"unjudged": self.unjudged} if self.unjudged else {}),
        }


def result_of(store: Store, run: str) -> RunResult:
    """The result of a run as far as it has come. Raises UsageError for a run that does not exist."""
    summary = store.summarise_run(store.find_run(run))
    run = summary.info.id
    solutions = store.read_experiences(run)
    earned = {row.experience.task.id: row for row in solutions if row.sample is not None}
    before = {row.experience.task.digest for row in solutions if row.is_earlier}
    known = {row.experience.task.digest for row in solutions if row.experience.is_known}
    tasks = [task for task in store.read_tasks(run) if task.digest not in before]
    failed = list_failed_samples(store, run, list_functional_rounds(store, run))
    unjudged = Counter(sample.task for sample in failed)
    # no other has a limit of tokens to run into
    blamed = [store.count_blamed(run, where) for where in (CUT_SHORT, REPEATED) if summary.info.is_language_model]
    cut, repeated = blamed or (Counter[str](), Counter[str]())
    per_task = {
        name: replace(row, unjudged=unjudged[name], cut_short=cut[name], repeated=repeated[name])
        for name, row in _per_task(store, run, tasks, earned).items()
    }
    rates = {name: row.success_rate for name, row in per_task.items()}
    tokens = [float(row.input_tokens) for row in per_task.values() if row.input_tokens is not None]
    return RunResult(
        run=run,
        model=summary.info.model,
        is_language_model=summary.info.is_language_model,
        end=summary.end or "unfinished",
        finished=summary.finished,
        rounds=_read_rounds(store, run),
        per_task=per_task,
        solved_before=tuple(task.id for task in store.read_tasks(run) if task.digest in before - known),
        overall=score_rates(list(rates.values())),
        groups=score_by_group(rates, {name: row.group for name, row in per_task.items()}),
        usage=summary.usage,
        guardian_usage=store.sum_usage(run, GUARDIAN),
        input_tokens=mean_of(tokens),
        guardian=guardian_effects(store, run),
        wall_s=summary.seconds,
        experiences=tuple(row.experience for row in solutions),
        name=summary.info.name,
        known=tuple(list_known(store, run)),
        known_before=tuple(task.id for task in store.read_tasks(run) if task.digest in before & known),
    )


def list_known(store: Store, run: str) -> Iterator[KnownResult]:
    """What the run was given, in the order in which it came, then what the run that it began with had been given."""
    kept = {row.experience.task.digest: row.experience for row in store.read_experiences(run)}
    listed, last = set[str](), max((info.number for info, _ in store.read_rounds(run)), default=-1)
    for entry in store.read_known(run):
        program, own, verdict = entry.program, kept.get(entry.key[0]), entry.verdict
        about = (program.task.id, program.author, program.place)
        if not verdict.passed:
            yield KnownResult(*about, verdict.outcome.value, message=verdict.message)
        elif own is not None and not (own.is_known and own.source == program.source):
            yield KnownResult(*about, "unused")
        elif own is None or own.round > last:
            yield KnownResult(*about, "kept")
        else:
            yield KnownResult(*about, "shown", max(own.round, 0))
        listed |= {entry.key[0]} if verdict.passed else set()
    for experience in kept.values():
        if experience.is_known and experience.task.digest not in listed:
            yield KnownResult(experience.task.id, experience.origin.removeprefix(KNOWN), "--from", "shown", 0)


def guardian_effects(store: Store, run: str) -> dict[str, int]:
    """How many candidates the guardian repaired, corrupted, changed without either effect, and left alone."""
    counts = dict.fromkeys(Effect, 0)
    for (before, after), samples in store.guardian_pairs(run).items():
        counts[Effect.REPAIRED if after > before else Effect.CORRUPTED if before > after else Effect.CHANGED] += samples
    counts[Effect.LEFT_ALONE] = max(0, _shown_to_guardian(store, run) - sum(counts.values()))
    return {effect.value: count for effect, count in counts.items()}


def _shown_to_guardian(store: Store, run: str) -> int:
    info = store.read_info(run)
    settings = info.settings if info else {}
    if settings.get("agents") != "agent":
        return 0
    if settings["guardian"] == "llm":
        return store.count_functional(run, GUARDIAN)
    stage = find_repaired_stage(store.target_name(run))
    return store.count_refused(run, stage) if stage else 0


def _per_task(store: Store, run: str, tasks: list[Task], earned: Mapping[str, KeptExperience]) -> dict[str, TaskResult]:
    samples: dict[str, int] = {}
    for tally in store.read_tallies(run):
        samples[tally.task] = samples.get(tally.task, 0) + tally.judged
    tokens = store.prompt_tokens(run)
    return {
        task.id: _read_task_result(task, earned.get(task.id), samples.get(task.id, 0), tokens.get(task.id))
        for task in tasks
    }


def _read_task_result(task: Task, solution: KeptExperience | None, samples: int, tokens: int | None) -> TaskResult:
    group = group_of(task)
    if solution is None:
        return TaskResult(task.id, group, False, None, 0.0, samples, tokens, False)
    experience = solution.experience
    return TaskResult(
        task.id, group, True, experience.round, experience.success_rate, samples, tokens, solution.contaminated
    )


def _read_rounds(store: Store, run: str) -> tuple[RoundResult, ...]:
    rows: list[RoundResult] = []
    cumulative = 0
    for info, solved in store.read_rounds(run):
        if solved is not None and info.phase == FUNCTIONAL:
            cumulative += len(solved)
            counts = len(info.demonstrations), len(info.attempted)
            rows.append(RoundResult(info.number, info.cycle, info.level, *counts, solved, cumulative))
    return tuple(rows)
