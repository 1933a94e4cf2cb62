"""Paired comparison of runs, task by task: only tasks that both have, the same to the letter.

Runs of two targets are paired by problem: a task of each, whose ids and problems are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opsmith.records import to_json
from opsmith.report.by_target import (
    ProblemRow,
    align_problems,
    compared_keys,
    have_several_targets,
    problems_json,
    task_json,
)
from opsmith.report.views import RunView, TaskRow
from opsmith.results.intervals import Estimate, estimate_difference
from opsmith.store import Store


@dataclass(frozen=True)
class Pair:
    """One task in both runs."""

    task: str
    first: TaskRow
    second: TaskRow

    @property
    def differs(self) -> bool:
        return (self.first.state == "solved") != (self.second.state == "solved")


@dataclass(frozen=True)
class Comparison:
    first: RunView
    second: RunView
    pairs: tuple[Pair, ...]
    unpaired: tuple[str, ...]  # tasks of one run only, or of the same id and another text, or given to one
    settings: tuple[tuple[str, str, str], ...]  # (name, of the one, of the other) where they differ
    first_round: Estimate | None  # pass@1 of the first round: the one's less the other's
    solving_round: Estimate | None  # the same as the closing table counts it
    problems: tuple[ProblemRow, ...] = ()  # a row per problem, where the targets differ

    @property
    def both(self) -> int:
        return sum(pair.first.state == pair.second.state == "solved" for pair in self.pairs)

    @property
    def only_one(self) -> int:
        return sum(pair.differs and pair.first.state == "solved" for pair in self.pairs)

    @property
    def only_other(self) -> int:
        return sum(pair.differs and pair.second.state == "solved" for pair in self.pairs)

    @property
    def p_value(self) -> float:
        return mcnemar_p_value(self.only_one, self.only_other)

    def as_json(self) -> dict[str, Any]:
        """What `opsmith compare --json` prints."""
        return {
            **runs_json((self.first, self.second), self.problems),
            "tasks": len(self.pairs),
            "solved": {"both": self.both, "only_first": self.only_one, "only_second": self.only_other},
            "p_value": self.p_value,
            "pass_at_1_difference": {
                "first_round": to_json(self.first_round),
                "solving_round": to_json(self.solving_round),
            },
            "differing_tasks": [
                {"task": pair.task, "first": task_json(pair.first), "second": task_json(pair.second)}
                for pair in self.pairs
                if pair.differs
            ],
            "unpaired_tasks": list(self.unpaired),
            "differing_settings": {name: [first, second] for name, first, second in self.settings},
        }


def compare_views(store: Store, *views: *tuple[RunView, RunView]) -> Comparison:
    """Two runs of a store that were read already."""
    keys = compared_keys(store, views)
    rows = [{row.id: row for row in view.tasks if row.state != "given"} for view in views]
    shared = [name for name in rows[0] if name in rows[1] and keys[0][name] == keys[1][name]]
    names = dict.fromkeys(name for view in views for name in (row.id for row in view.tasks))
    settings = [dict((*view.settings, *view.versions, ("model", view.model))) for view in views]
    return Comparison(
        first=views[0],
        second=views[1],
        pairs=tuple(Pair(name, rows[0][name], rows[1][name]) for name in shared),
        unpaired=tuple(name for name in names if name not in shared),
        settings=_differing_settings(*settings),
        first_round=_estimate_over_shared(views[0].first, views[1].first, shared),
        solving_round=None
        if any(view.list_joined() & set(shared) for view in views)
        else _estimate_over_shared(views[0].solving, views[1].solving, shared),
        problems=tuple(align_problems(store, views)) if have_several_targets(views) else (),
    )


def mcnemar_p_value(only_one: int, only_other: int) -> float:
    """Exact two-sided p-value that as many pairs differ so unevenly, if either side were as likely.

    >>> mcnemar_p_value(5, 0)
    0.0625
    """
    n, fewer = only_one + only_other, min(only_one, only_other)
    tail = sum(math.comb(n, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def _estimate_over_shared(
    first: Mapping[str, tuple[int, int]], second: Mapping[str, tuple[int, int]], shared: list[str]
) -> Estimate | None:
    """Over the shared tasks that both runs have tried."""
    names = [name for name in shared if name in first and name in second]
    return estimate_difference({name: first[name] for name in names}, {name: second[name] for name in names}, 1)


def _differing_settings(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """A setting that one run does not know is shown as a dash."""
    names = dict.fromkeys((*first, *second))
    pairs = [(name, first.get(name, "–"), second.get(name, "–")) for name in names]
    return tuple((name, ours, right) for name, ours, right in pairs if ours != right)


def runs_json(views: Sequence[RunView], problems: Sequence[ProblemRow]) -> dict[str, Any]:
    """The runs; with their targets and a record per problem where these are several."""
    if not problems:
        return {"runs": [_run_json(view) for view in views]}
    runs = [_run_json(view) | {"target": view.target} for view in views]
    return {"runs": runs, "problems": problems_json(views, problems)}


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
