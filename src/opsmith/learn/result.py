"""What came of a run? Built from the store alone, so that a finished run's result can be shown again at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opsmith.agents.guardian import Effect
from opsmith.learn.metrics import Diversity, Score, diversity, mean, mean_pass_at_k, score, score_by_group
from opsmith.records import Experience, Task, Usage, to_json
from opsmith.store import Store
from opsmith.store.queries import Kept, Tally
from opsmith.store.rows import GUARDIAN
from opsmith.verification.verifier import canonical


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
class TaskResult:
    task: str
    group: str
    solved: bool
    round: int | None  # the round that solved it
    success_rate: float  # of that round; 0 when no round did
    samples: int  # judged, over all rounds
    input_tokens: int | None  # of one sample's prompt in the round that solved it, or in the last; None: never tried
    contaminated: bool  # the solution equals an example of its own prompt


@dataclass(frozen=True)
class RunResult:
    """`given` tasks were solved before the run began (another run's, or imported): they count nowhere else."""

    run: str
    model: str
    is_language_model: bool
    end: str  # why it ended, or why it stopped for now
    finished: bool  # False: the same command goes on from here
    rounds: tuple[RoundResult, ...]
    per_task: Mapping[str, TaskResult]
    given: tuple[str, ...]
    overall: Score
    groups: Mapping[str, Score]
    usage: Usage  # all that was billed
    guardian_usage: Usage  # the guardian's part of it
    input_tokens: float | None  # as the paper counts them: mean over the tasks of `TaskResult.input_tokens`
    guardian: Mapping[str, int]  # candidates by what the guardian did to them
    wall_s: float  # of all sessions that ended in an orderly way
    experiences: tuple[Experience, ...] = field(repr=False)  # all, those given included

    @property
    def solved(self) -> int:
        return self.overall.solved

    def as_json(self) -> dict[str, Any]:
        """What `opsmith run --json` prints."""
        names = ("round", "cycle", "level", "demonstrations", "attempted", "cumulative")
        return {
            "run": self.run,
            "model": self.model,
            "is_language_model": self.is_language_model,
            "end": self.end,
            "finished": self.finished,
            "solved": self.solved,
            "tasks": self.overall.tasks,
            "given": list(self.given),
            "pass_at_1": self.overall.pass_at_1,
            "pass_at_n": self.overall.pass_at_n,
            "groups": to_json(self.groups),
            "rounds": [
                {**{name: getattr(item, name) for name in names}, "newly_solved": len(item.newly_solved)}
                for item in self.rounds
            ],
            "per_task": to_json(self.per_task),
            "input_tokens": self.input_tokens,
            "guardian": dict(self.guardian),
            "usage": to_json(self.usage),
            "wall_s": self.wall_s,
        }


def result_of(store: Store, run: str) -> RunResult:
    """The result of a run as far as it has come. Raises UsageError for a run that does not exist."""
    summary = store.summary(store.find_run(run))
    run = summary.info.id
    kept = store.experiences(run)
    earned = {item.experience.task.id: item for item in kept if item.sample is not None}
    before = {item.experience.task.digest for item in kept if item.sample is None}
    tasks = [task for task in store.tasks(run) if task.digest not in before]
    per_task = _per_task(store, run, tasks, earned)
    rates = {name: item.success_rate for name, item in per_task.items()}
    tokens = [float(item.input_tokens) for item in per_task.values() if item.input_tokens is not None]
    return RunResult(
        run=run,
        model=summary.info.model,
        is_language_model=summary.info.is_language_model,
        end=summary.end or "unfinished",
        finished=summary.finished,
        rounds=_rounds(store, run),
        per_task=per_task,
        given=tuple(task.id for task in store.tasks(run) if task.digest in before),
        overall=score(list(rates.values())),
        groups=score_by_group(rates, {name: item.group for name, item in per_task.items()}),
        usage=summary.usage,
        guardian_usage=store.usage(run, GUARDIAN),
        input_tokens=mean(tokens),
        guardian=guardian_effects(store, run),
        wall_s=summary.seconds,
        experiences=tuple(item.experience for item in kept),
    )


def group_of(task: Task) -> str:
    return task.group or task.id.rpartition("_")[0] or task.id


def diversity_of(store: Store, run: str) -> Diversity:
    """Over all samples of a run that held a program. Reads every program: seconds for a large run."""
    tasks = {task.id: task for task in store.tasks(run)}
    return diversity(store.programs(run), lambda task, program: canonical(tasks[task], program))


def pass_at_k_of(store: Store, run: str, k: int, number: int = 0) -> float | None:
    """pass@k over the tasks tried in one round, each at its best temperature; None when one has fewer than k samples.

    Round 0 of a run without experiences measures the agents alone.
    """
    best: dict[str, Tally] = {}
    for tally in store.tallies(run, number):
        other = best.get(tally.task)
        if other is None or tally.right * other.judged > other.right * tally.judged:
            best[tally.task] = tally
    counts = [(tally.judged, tally.right) for tally in best.values()]
    return mean_pass_at_k(counts, k) if all(n >= k for n, _ in counts) else None


def guardian_effects(store: Store, run: str) -> dict[str, int]:
    """How many candidates the guardian repaired, corrupted, changed without either effect, and left alone."""
    counts = dict.fromkeys(Effect, 0)
    for (before, after), samples in store.guardian_pairs(run).items():
        counts[Effect.REPAIRED if after > before else Effect.CORRUPTED if before > after else Effect.CHANGED] += samples
    counts[Effect.LEFT_ALONE] = max(0, _shown_to_guardian(store, run) - sum(counts.values()))
    return {effect.value: count for effect, count in counts.items()}


def _shown_to_guardian(store: Store, run: str) -> int:
    info = store.info(run)
    settings = info.settings if info else {}
    if settings.get("agents") != "agent":
        return 0
    return store.unaffine(run) if settings["guardian"] == "static" else store.usage(run, GUARDIAN).requests


def _per_task(store: Store, run: str, tasks: list[Task], earned: Mapping[str, Kept]) -> dict[str, TaskResult]:
    samples: dict[str, int] = {}
    for tally in store.tallies(run):
        samples[tally.task] = samples.get(tally.task, 0) + tally.judged
    tokens = store.prompt_tokens(run)
    return {task.id: _task(task, earned.get(task.id), samples.get(task.id, 0), tokens.get(task.id)) for task in tasks}


def _task(task: Task, found: Kept | None, samples: int, tokens: int | None) -> TaskResult:
    group = group_of(task)
    if found is None:
        return TaskResult(task.id, group, False, None, 0.0, samples, tokens, False)
    one = found.experience
    return TaskResult(task.id, group, True, one.round, one.success_rate, samples, tokens, found.contaminated)


def _rounds(store: Store, run: str) -> tuple[RoundResult, ...]:
    found: list[RoundResult] = []
    cumulative = 0
    for info, solved in store.rounds(run):
        if solved is not None:
            cumulative += len(solved)
            counts = len(info.demonstrations), len(info.attempted)
            found.append(RoundResult(info.number, info.cycle, info.level, *counts, solved, cumulative))
    return tuple(found)
