"""Is what a run found right by today's verifier? Its candidates are judged again, each different program once.

The new verdicts are kept beside the old ones, so that a second call judges only what is missing. A program that could
not be judged keeps its old verdict, and is tried again by the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.learn.filter import success_rate
from opsmith.records import Candidate, Outcome, Stage, Task, Verdict, to_json
from opsmith.store import Store
from opsmith.store.database import Row
from opsmith.store.queries import Kept, Tally
from opsmith.store.verdicts import Judgement, judgements, programs, reverdict_rows, verdict_of
from opsmith.targets import get_target

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


def reverify(store: Store, run: str, judge: Judge, told: Told = lambda _: None) -> Reverified:
    """Judge a run's candidates that today's verifier has not seen. `told` hears of each task that is judged."""
    info = store.summary(store.find_run(run)).info
    today = get_target(info.target).verifier
    missing = _missing(judgements(store, info.id, today))
    unjudged = list(_judge_missing(store, info.id, missing, judge, told))
    now, kept = judgements(store, info.id, today), store.experiences(info.id)
    given = {item.experience.task.digest: _again(item, judge) for item in kept if item.sample is None}
    unjudged += [(item.experience.task.id, found.message) for item, found in _left(kept, given)]
    return Reverified(
        run=info.id,
        verifier=(str(info.versions.get("verifier", "")), today),
        candidates=len(now),
        programs=sum(map(len, missing.values())),
        flips=tuple(_flips(store, now, {item.sample: Candidate(item.experience.source).id for item in kept})),
        tasks=tuple(_changes(store.tasks(info.id), now, kept, given)),
        unjudged=tuple(unjudged),
    )


Missing = dict[str, dict[str, list[Judgement]]]  # task -> candidate -> where it was judged


def _missing(found: Sequence[Judgement]) -> Missing:
    missing: Missing = {}
    for item in found:
        if item.after is None:
            missing.setdefault(item.task, {}).setdefault(item.candidate, []).append(item)
    return missing


def _judge_missing(store: Store, run: str, missing: Missing, judge: Judge, told: Told) -> Iterator[tuple[str, str]]:
    """Judge and keep the verdicts, task by task; gives what could not be judged."""
    tasks = {task.id: task for task in store.tasks(run)}
    texts = programs(store, run, {name for names in missing.values() for name in names})
    for name, candidates in missing.items():
        told(f"{name}: {len(candidates)} programs")
        verdicts = judge(tasks[name], [texts[candidate] for candidate in candidates])
        rows: list[Row] = []
        for places, verdict in zip(candidates.values(), verdicts, strict=True):
            if verdict.outcome is Outcome.UNJUDGED:
                yield name, verdict.message
            else:
                rows += [row for place in places for row in reverdict_rows(run, place.sample, verdict)]
        store.put(rows).result()


def _again(item: Kept, judge: Judge) -> Verdict:
    """The verdict on a solution that the run was given: it belongs to no sample, so that it is kept nowhere."""
    return judge(item.experience.task, [item.experience.source])[0]


def _left(kept: Sequence[Kept], given: Mapping[str, Verdict]) -> Iterator[tuple[Kept, Verdict]]:
    for item in kept:
        found = given.get(item.experience.task.digest)
        if found is not None and found.outcome is Outcome.UNJUDGED:
            yield item, found


def _flips(store: Store, found: Sequence[Judgement], kept: Mapping[str | None, str]) -> Iterator[Flip]:
    messages: dict[str, str] = {}
    for item in found:
        if item.after is None or item.body is None or _is_right(item.before) == _is_right(item.after):
            continue
        if item.body not in messages:
            messages[item.body] = verdict_of(store, item.body).message
        place = (item.task, item.sample, item.candidate, item.before, item.after)
        yield Flip(*place, messages[item.body], kept.get(item.sample) == item.candidate)


def _changes(
    tasks: Sequence[Task], found: Sequence[Judgement], kept: Sequence[Kept], given: Mapping[str, Verdict]
) -> Iterator[TaskChange]:
    own, solutions = {task.digest for task in tasks}, {item.experience.task.digest: item for item in kept}
    every = {task.digest: task for task in (*tasks, *(item.experience.task for item in kept))}
    for task in sorted(every.values(), key=lambda task: task.id):
        finals = [item for item in found if item.task == task.id and item.final and task.digest in own]
        solution = solutions.get(task.digest)
        right = sum(_is_right(item.before) for item in finals), sum(_is_right(_now(item)) for item in finals)
        outcomes = None if solution is None else (Outcome.PASSED, _outcome(solution, found, given))
        yield TaskChange(task.id, len(finals), right, _rates(finals), outcomes)


def _outcome(solution: Kept, found: Sequence[Judgement], given: Mapping[str, Verdict]) -> Outcome:
    """What today's verifier says of a kept solution."""
    if solution.sample is None:
        return given[solution.experience.task.digest].outcome
    name = Candidate(solution.experience.source).id
    after = [item.after for item in found if item.sample == solution.sample and item.candidate == name]
    return after[0][1] if after and after[0] is not None else Outcome.UNJUDGED


def _rates(finals: Sequence[Judgement]) -> tuple[float, float]:
    """Success rates before and after, each of the first round with a right sample."""
    return _rate(finals, lambda item: item.before), _rate(finals, _now)


def _rate(finals: Sequence[Judgement], seen: Callable[[Judgement], tuple[Stage, Outcome]]) -> float:
    rounds = sorted({item.round for item in finals if _is_right(seen(item))})
    first = [item for item in finals if rounds and item.round == rounds[0]]
    tallies = []
    for temperature in {item.temperature for item in first}:
        right = [_is_right(seen(item)) for item in first if item.temperature == temperature]
        tallies.append(Tally(rounds[0], first[0].task, temperature, sum(right), len(right)))
    return success_rate(tallies)


def _now(item: Judgement) -> tuple[Stage, Outcome]:
    return item.after or item.before


def _is_right(seen: tuple[Stage, Outcome]) -> bool:
    return seen[1] is Outcome.PASSED


def as_json(found: Reverified) -> dict[str, Any]:
    """What `opsmith reverify --json` prints."""
    solved = [sum(change.solved[at] for change in found.tasks) for at in (0, 1)]
    return {**to_json(found), "solved": solved, "lost": found.lost, "exit_code": found.exit_code}
