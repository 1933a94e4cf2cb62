"""What a run found, judged by today's verifier. Its candidates are judged again, each different program once.

The new verdicts are kept beside the old ones, so that a second call judges only what is missing. A program that could
not be judged keeps its old verdict, and is tried again by the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.records import Candidate, Outcome, Stage, Task, Verdict, to_json
from opsmith.report.tables import count_noun
from opsmith.results.counting import deciding_tallies, success_rate
from opsmith.store import Store
from opsmith.store.database import Row
from opsmith.store.queries import KeptExperience, Tally
from opsmith.store.verdicts import Judgement, list_judgements, read_programs, reverdict_rows, verdict_of
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier

Judge = Callable[[Task, Sequence[str]], list[Verdict]]  # the verdicts on programs of one task, in order
Told = Callable[[str], None]


@dataclass(frozen=True)
class Flip:
    """A sample whose candidate is right by one verifier and wrong by the other."""

    task: str
    sample: str
    candidate: str
    before: tuple[Stage, Outcome]
    after: tuple[Stage, Outcome]
    message: str  # of the later verdict
    kept: bool  # it is the program that the run kept for its task


@dataclass(frozen=True)
class TaskChange:
    """A task by the old verdicts and by the new ones. The success rate is that of the round that solved it."""

    task: str
    judged: int  # samples
    right: tuple[int, int]  # before, after
    success_rate: tuple[float, float]
    kept: tuple[Outcome, Outcome] | None  # the solution that the run kept, before and after; None: there is none

    @property
    def lost(self) -> bool:
        """Whether today's verifier refuses what the run kept."""
        return self.kept is not None and self.kept[1] is Outcome.REFUSED

    @property
    def solved(self) -> tuple[bool, bool]:
        """Whether a sample or the kept solution is right: before, after."""
        before, after = self.kept or (Outcome.REFUSED, Outcome.REFUSED)
        return self.right[0] > 0 or before is Outcome.PASSED, self.right[1] > 0 or after is Outcome.PASSED


@dataclass(frozen=True)
class Reverified:
    """What judging a run again showed."""

    run: str
    verifier: tuple[str, str]  # of the run, and of today
    candidates: int
    programs: int  # different ones that were judged by this call
    flips: tuple[Flip, ...]
    tasks: tuple[TaskChange, ...]
    unjudged: tuple[tuple[str, str], ...]  # (task, why), of programs that could not be judged now

    @property
    def lost(self) -> list[str]:
        """The tasks whose kept solution is wrong by today's verifier."""
        return [change.task for change in self.tasks if change.lost]

    @property
    def exit_code(self) -> int:
        """0: every kept solution passes; 1: one does not; 2: something could not be judged."""
        return 1 if self.lost else 2 if self.unjudged else 0


def reverify_run(store: Store, run: str, judge: Judge, report: Told = lambda _: None) -> Reverified:
    """Judge a run's candidates that today's verifier has not seen. `report` hears of each task that is judged."""
    info = store.summarise_run(store.find_run(run)).info
    today = name_verifier(get_target(store.target_name(info.id)))
    missing = _find_missing(list_judgements(store, info.id, today))
    unjudged = list(_judge_missing(store, info.id, missing, judge, report))
    now, solutions = list_judgements(store, info.id, today), store.read_experiences(info.id)
    rejudged = {
        solution.experience.task.digest: judge(solution.experience.task, [solution.experience.source])[0]
        for solution in solutions
        if solution.sample is None
    }
    unjudged += [
        (solution.experience.task.id, verdict.message) for solution, verdict in _unjudged_solutions(solutions, rejudged)
    ]
    return Reverified(
        run=info.id,
        verifier=(str(info.versions.get("verifier", "")), today),
        candidates=len(now),
        programs=sum(map(len, missing.values())),
        flips=tuple(
            _find_flips(
                store, now, {solution.sample: Candidate(solution.experience.source).id for solution in solutions}
            )
        ),
        tasks=tuple(_compare_tasks(store.read_tasks(info.id), now, solutions, rejudged)),
        unjudged=tuple(unjudged),
    )


Missing = dict[str, dict[str, list[Judgement]]]  # task -> candidate -> where it was judged


def _find_missing(judgements: Sequence[Judgement]) -> Missing:
    missing: Missing = {}
    for judgement in judgements:
        if judgement.after is None:
            missing.setdefault(judgement.task, {}).setdefault(judgement.candidate, []).append(judgement)
    return missing


def _judge_missing(store: Store, run: str, missing: Missing, judge: Judge, report: Told) -> Iterator[tuple[str, str]]:
    """Judge and keep the verdicts, task by task; gives what could not be judged."""
    tasks = {task.id: task for task in (*store.read_children(run), *store.read_tasks(run))}
    texts = read_programs(store, run, {name for names in missing.values() for name in names})
    for name, candidates in missing.items():
        report(f"{name}: {count_noun(len(candidates), 'program')}")
        verdicts = judge(tasks[name], [texts[candidate] for candidate in candidates])
        rows: list[Row] = []
        for places, verdict in zip(candidates.values(), verdicts, strict=True):
            if verdict.outcome is Outcome.UNJUDGED:
                yield name, verdict.message
            else:
                rows += [row for place in places for row in reverdict_rows(run, place.sample, verdict)]
        store.put(rows).result()


def _unjudged_solutions(
    solutions: Sequence[KeptExperience], verdicts: Mapping[str, Verdict]
) -> Iterator[tuple[KeptExperience, Verdict]]:
    for solution in solutions:
        verdict = verdicts.get(solution.experience.task.digest)
        if verdict is not None and verdict.outcome is Outcome.UNJUDGED:
            yield solution, verdict


def _find_flips(store: Store, judgements: Sequence[Judgement], programs: Mapping[str | None, str]) -> Iterator[Flip]:
    messages: dict[str, str] = {}
    for judgement in judgements:
        if (
            judgement.after is None
            or judgement.body is None
            or _is_right(judgement.before) == _is_right(judgement.after)
        ):
            continue
        if judgement.body not in messages:
            messages[judgement.body] = verdict_of(store, judgement.body).message
        place = (judgement.task, judgement.sample, judgement.candidate, judgement.before, judgement.after)
        yield Flip(*place, messages[judgement.body], programs.get(judgement.sample) == judgement.candidate)


def _compare_tasks(
    tasks: Sequence[Task],
    judgements: Sequence[Judgement],
    solved: Sequence[KeptExperience],
    rejudged: Mapping[str, Verdict],
) -> Iterator[TaskChange]:
    own, solutions = (
        {task.digest for task in tasks},
        {judgement.experience.task.digest: judgement for judgement in solved},
    )
    every = {task.digest: task for task in (*tasks, *(judgement.experience.task for judgement in solved))}
    for task in sorted(every.values(), key=lambda task: task.id):
        finals = [
            judgement
            for judgement in judgements
            if judgement.task == task.id and judgement.final and task.digest in own
        ]
        solution = solutions.get(task.digest)
        right = (
            sum(_is_right(judgement.before) for judgement in finals),
            sum(_is_right(_latest_outcome(judgement)) for judgement in finals),
        )
        outcomes = None if solution is None else (Outcome.PASSED, _outcome_of_today(solution, judgements, rejudged))
        rates = _success_rate(finals, lambda judgement: judgement.before), _success_rate(finals, _latest_outcome)
        yield TaskChange(task.id, len(finals), right, rates, outcomes)


def _outcome_of_today(
    solution: KeptExperience, judgements: Sequence[Judgement], rejudged: Mapping[str, Verdict]
) -> Outcome:
    """What today's verifier says of a kept solution."""
    if solution.sample is None:
        return rejudged[solution.experience.task.digest].outcome
    name = Candidate(solution.experience.source).id
    after = [
        judgement.after
        for judgement in judgements
        if judgement.sample == solution.sample and judgement.candidate == name
    ]
    return after[0][1] if after and after[0] is not None else Outcome.UNJUDGED


def _success_rate(finals: Sequence[Judgement], read_outcome: Callable[[Judgement], tuple[Stage, Outcome]]) -> float:
    places: dict[tuple[int, str, float], list[bool]] = {}
    for final in finals:
        places.setdefault((final.round, final.task, final.temperature), []).append(_is_right(read_outcome(final)))
    tallies = [Tally(*place, sum(right), len(right)) for place, right in places.items()]
    return success_rate(deciding_tallies(tallies).get(finals[0].task, ()) if finals else ())


def _latest_outcome(judgement: Judgement) -> tuple[Stage, Outcome]:
    return judgement.after or judgement.before


def _is_right(outcome: tuple[Stage, Outcome]) -> bool:
    return outcome[1] is Outcome.PASSED


def as_json(result: Reverified) -> dict[str, Any]:
    """What `opsmith reverify --json` prints."""
    solved = [sum(change.solved[index] for change in result.tasks) for index in (0, 1)]
    return {**to_json(result), "solved": solved, "lost": result.lost, "exit_code": result.exit_code}
