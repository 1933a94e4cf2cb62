"""What differs between two runs, task by task? Paired: only tasks that both runs have, the same to the letter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opsmith.learn.intervals import Estimate, difference
from opsmith.records import to_json
from opsmith.report.views import RunView, TaskRow, run_view
from opsmith.store import Store


@dataclass(frozen=True)
class Pair:
    """One task in both runs."""

    task: str
    one: TaskRow
    other: TaskRow

    @property
    def differs(self) -> bool:
        return (self.one.state == "solved") != (self.other.state == "solved")


@dataclass(frozen=True)
class Comparison:
    one: RunView
    other: RunView
    pairs: tuple[Pair, ...]
    unpaired: tuple[str, ...]  # tasks of one run only, or of the same id and another text, or given to one
    settings: tuple[tuple[str, str, str], ...]  # (name, of the one, of the other) where they differ
    first_round: Estimate | None  # pass@1 of the first round: the one's less the other's
    solving_round: Estimate | None  # the same as the closing table counts it

    @property
    def both(self) -> int:
        return sum(pair.one.state == pair.other.state == "solved" for pair in self.pairs)

    @property
    def only_one(self) -> int:
        return sum(pair.differs and pair.one.state == "solved" for pair in self.pairs)

    @property
    def only_other(self) -> int:
        return sum(pair.differs and pair.other.state == "solved" for pair in self.pairs)

    @property
    def p_value(self) -> float:
        return mcnemar(self.only_one, self.only_other)

    def as_json(self) -> dict[str, Any]:
        """What `opsmith compare --json` prints."""
        return {
            "runs": [_run_json(self.one), _run_json(self.other)],
            "tasks": len(self.pairs),
            "solved": {"both": self.both, "only_first": self.only_one, "only_second": self.only_other},
            "p_value": self.p_value,
            "pass_at_1_difference": {
                "first_round": to_json(self.first_round),
                "solving_round": to_json(self.solving_round),
            },
            "differing_tasks": [
                {"task": pair.task, "first": _task_json(pair.one), "second": _task_json(pair.other)}
                for pair in self.pairs
                if pair.differs
            ],
            "unpaired_tasks": list(self.unpaired),
            "differing_settings": {name: [one, other] for name, one, other in self.settings},
        }


def compare(store: Store, one: str, other: str) -> Comparison:
    """Two runs of a store, by their ids or the beginnings of them. Raises UsageError for one that does not exist."""
    views = run_view(store, one), run_view(store, other)
    digests = [{task.id: task.digest for task in store.tasks(view.id)} for view in views]
    rows = [{row.id: row for row in view.tasks if row.state != "given"} for view in views]
    shared = [name for name in rows[0] if name in rows[1] and digests[0][name] == digests[1][name]]
    names = dict.fromkeys(name for view in views for name in (row.id for row in view.tasks))
    settings = [dict((*view.settings, *view.versions, ("model", view.model))) for view in views]
    return Comparison(
        one=views[0],
        other=views[1],
        pairs=tuple(Pair(name, rows[0][name], rows[1][name]) for name in shared),
        unpaired=tuple(name for name in names if name not in shared),
        settings=_differing(*settings),
        first_round=_difference(views[0].first, views[1].first, shared),
        solving_round=_difference(views[0].solving, views[1].solving, shared),
    )


def mcnemar(only_one: int, only_other: int) -> float:
    """Exact two-sided p-value that as many pairs differ so unevenly, if either side were as likely.

    >>> mcnemar(5, 0)
    0.0625
    """
    n, fewer = only_one + only_other, min(only_one, only_other)
    tail = sum(math.comb(n, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def _difference(
    one: Mapping[str, tuple[int, int]], other: Mapping[str, tuple[int, int]], shared: list[str]
) -> Estimate | None:
    """Over the shared tasks that both runs have tried."""
    names = [name for name in shared if name in one and name in other]
    return difference({name: one[name] for name in names}, {name: other[name] for name in names}, 1)


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """A setting that one run does not know is shown as a dash."""
    names = dict.fromkeys((*one, *other))
    pairs = [(name, one.get(name, "–"), other.get(name, "–")) for name in names]
    return tuple((name, left, right) for name, left, right in pairs if left != right)


def _run_json(run: RunView) -> dict[str, Any]:
    return {
        "run": run.id,
        "model": run.model,
        "is_language_model": run.is_language_model,
        "finished": run.finished,
        "solved": run.overall.solved,
        "tasks": run.overall.tasks,
        "pass_at_1": to_json(run.overall.pass_at_1),
        "rounds": len(run.rounds),
        "samples": run.judged,
        "usage": to_json(run.usage),
        "seconds": run.seconds,
    }


def _task_json(row: TaskRow) -> dict[str, Any]:
    return {"solved": row.state == "solved", "round": row.round, "success_rate": row.rate, "samples": row.judged}
