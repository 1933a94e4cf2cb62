"""Rules that every count of a run's samples follows: the group of a task, its deciding round, its best temperature.

A count is (judged samples, right ones) of one task. Not covered: what the counts are made into (`metrics`,
`intervals`).
"""

from __future__ import annotations

from collections.abc import Iterable

from opsmith.records import Task, strip_number
from opsmith.store.queries import Tally

Count = tuple[int, int]  # judged samples, right ones


def group_of(task: Task) -> str:
    """What the task's results are counted with: its group, else its id without its number."""
    return task.group or strip_number(task.id)


def success_rate(tallies: Iterable[Tally]) -> float:
    """The share of right samples at the best temperature; samples left unjudged count nowhere."""
    samples, right = count_best(tallies)
    return right / samples if samples else 0.0


def count_best(tallies: Iterable[Tally]) -> Count:
    """Of one task's tallies, the count at the temperature with the largest share of right samples; the first of equals.

    >>> count_best([Tally(0, "a", 0.4, right=1, judged=4), Tally(0, "a", 1.0, right=2, judged=4)])
    (4, 2)
    """
    best = choose_best(tallies)
    return (best.judged, best.right) if best is not None else (0, 0)


def choose_best(tallies: Iterable[Tally]) -> Tally | None:
    """Of one task's tallies, that with the largest share of right samples; the first of equals."""
    return max(tallies, key=lambda tally: tally.right / max(tally.judged, 1), default=None)


def deciding_tallies(tallies: Iterable[Tally], last: int | None = None) -> dict[str, list[Tally]]:
    """By task, its tallies of the round that decided on it: the first with a right answer, or else its last one.

    In the order of these rounds. `last`: no round after this one counts.
    """
    rounds: dict[str, dict[int, list[Tally]]] = {}
    for tally in tallies:
        if last is None or tally.round <= last:
            rounds.setdefault(tally.task, {}).setdefault(tally.round, []).append(tally)
    solving = {
        task: [number for number, own in by_round.items() if any(tally.right for tally in own)]
        for task, by_round in rounds.items()
    }
    deciding = {task: own[min(solving[task]) if solving[task] else max(own)] for task, own in rounds.items()}
    return dict(sorted(deciding.items(), key=lambda pair: pair[1][0].round))
