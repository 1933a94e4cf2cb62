"""Runs beside each other, task by task: two of them paired, and any number in a row for each problem.

Tasks are paired that are the same to the letter; those of two targets whose ids and problems are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from opsmith.report.record import COUNT, SHARE, TEXT, DataTable, Said, Value
from opsmith.report.tables import NOTHING, list_names
from opsmith.report.views import RunView, TaskRow
from opsmith.results.intervals import estimate_difference
from opsmith.results.problems import problem_keys, task_keys
from opsmith.store import Store

Problems = Sequence[tuple[str, Sequence[TaskRow | None]]]  # by run a task; None: the run was not asked for it


def tabulate_pairs(store: Store, *views: *tuple[RunView, RunView]) -> dict[str, DataTable]:
    """What two runs made of the tasks of both, in a row; and the tasks that one of them alone solved."""
    keys = _list_keys(store, views)
    rows = [{row.id: row for row in view.tasks if row.state not in ("given", "known")} for view in views]
    shared = [name for name in rows[0] if name in rows[1] and keys[0][name] == keys[1][name]]
    left_out = [name for name in dict.fromkeys(row.id for view in views for row in view.tasks) if name not in shared]
    solved = {name: (rows[0][name].state == "solved", rows[1][name].state == "solved") for name in shared}
    both, first, second = (list(solved.values()).count(own) for own in ((True, True), (True, False), (False, True)))
    is_joined = any(view.list_joined() & set(shared) for view in views)
    p_value = mcnemar_p_value(first, second)
    pairing: dict[str, tuple[str, Value]] = {
        "tasks of both": (COUNT, len(shared)),
        "both solved": (COUNT, both),
        "only the first": (COUNT, first),
        "only the second": (COUNT, second),
        "exact McNemar test": (SHARE, Said(f"p = {p_value:.3g}", p_value)),
        "pass@1 first minus second, first round": (SHARE, _say_difference([view.first for view in views], shared)),
        "the same, round of each solution": (
            SHARE,
            None if is_joined else _say_difference([view.solving for view in views], shared),
        ),
        "left out, not in both alike": (TEXT, Said(list_names(left_out) or NOTHING, left_out)),
    }
    title = "paired: tasks of both runs, the same to the letter; brackets: 95 %, over the samples of each task"
    row: list[Value] = [value for _, value in pairing.values()]
    differing = [(name, (rows[0][name], rows[1][name])) for name, (one, other) in solved.items() if one != other]
    return {
        "paired": DataTable(title, {name: unit for name, (unit, _) in pairing.items()}, [row]),
        "one run only": tabulate_problems(views, differing, "solved by one run only"),
    }


def mcnemar_p_value(only_one: int, only_other: int) -> float:
    """Exact two-sided p-value that as many pairs differ so unevenly, if either side were as likely.

    >>> mcnemar_p_value(5, 0)
    0.0625
    """
    n, fewer = only_one + only_other, min(only_one, only_other)
    tail = sum(math.comb(n, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def _say_difference(counts: Sequence[Mapping[str, tuple[int, int]]], shared: Sequence[str]) -> Said:
    """pass@1 of the one less that of the other, over the shared tasks that both have tried."""
    names = [name for name in shared if all(name in own for own in counts)]
    first, second = ({name: own[name] for name in names} for own in counts)
    estimate = estimate_difference(first, second, 1)
    return Said("no samples in both" if estimate is None else f"{estimate:+.3f} over {len(names)} tasks", estimate)


def have_several_targets(views: Sequence[RunView]) -> bool:
    return len({view.target for view in views}) > 1


def name_columns(views: Sequence[RunView]) -> list[str]:
    """The target of each run; with what the run is called where another run has that target too, or that alone where
    all have."""
    labels = [view.label for view in views]
    labels = [view.id if labels.count(label) > 1 else label for view, label in zip(views, labels, strict=True)]
    if not have_several_targets(views):
        return labels
    counts = Counter(view.target for view in views)
    pairs = zip(views, labels, strict=True)
    return [view.target if counts[view.target] == 1 else f"{view.target} {label}" for view, label in pairs]


def _list_keys(store: Store, views: Sequence[RunView]) -> list[Mapping[str, str]]:
    """By run and task, what tasks that can be compared share: of one target the text, else the problem."""
    read_keys = problem_keys if have_several_targets(views) else task_keys
    return [read_keys(store, view.id) for view in views]


def align_problems(store: Store, views: Sequence[RunView]) -> Problems:
    """Every problem with its task in each run, in the order of the first run that has it. Two problems that have the
    same id in different runs are two; runs of one target are aligned by the ids of their tasks alone."""
    several = have_several_targets(views)
    keys = _list_keys(store, views) if several else [{row.id: row.id for row in view.tasks} for view in views]
    rows = [
        {(row.id, key[row.id]): row for row in view.tasks if row.id in key}
        for view, key in zip(views, keys, strict=True)
    ]
    problems = dict.fromkeys(problem for of_run in rows for problem in of_run)
    return [(problem[0], [of_run.get(problem) for of_run in rows]) for problem in problems]


def tabulate_problems(views: Sequence[RunView], problems: Problems, title: str = "problem by problem") -> DataTable:
    """A row for each problem, a column for each run."""
    rows = [[name, *map(_say_task, views, cells)] for name, cells in problems]
    return DataTable(title, dict.fromkeys(("problem", *name_columns(views)), TEXT), rows)


def _say_task(view: RunView, row: TaskRow | None) -> Said | None:
    """What a run made of a task, in a few words."""
    if row is None:
        return None
    is_solved = row.state == "solved"
    words = f"{row.state}, {row.right} right of {row.judged}" if row.judged else row.state
    words = f"round {row.round}, rate {row.rate:.3f}" if is_solved else words
    value = {"solved": is_solved, "round": row.round, "success_rate": row.rate, "samples": row.judged}
    return Said(words, value, link=("task", row.id), run=view.id, shade="good" * is_solved)
