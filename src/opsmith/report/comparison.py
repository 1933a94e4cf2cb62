"""Runs beside each other, task by task: two of them paired, and any number in a row for each problem.

Tasks are paired that are the same to the letter; those of two targets whose ids and problems are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from opsmith.report.record import COUNT, SHARE, TEXT, DataTable, Said, Value
from opsmith.report.tables import NOTHING, count_noun, list_names
from opsmith.report.views import RunView, TaskRow
from opsmith.results.intervals import Estimate, estimate_difference
from opsmith.results.problems import problem_keys, task_keys
from opsmith.store import Store

_LEVEL = 0.05  # of a test: below it a difference is shown
Problems = Sequence[tuple[str, Sequence[TaskRow | None]]]  # by run a task; None: the run was not asked for it


def tabulate_pairs(store: Store, views: Sequence[RunView]) -> dict[str, DataTable]:
    """Each further run beside the first: what both made of the tasks of both, and which difference that shows. Of two
    runs also the tasks that one of them alone solved."""
    keys = _list_keys(store, views)
    pairs = [_compare_pair((views[0], view), (keys[0], key)) for view, key in zip(views[1:], keys[1:], strict=True)]
    labels = name_columns(views)
    many = len(views) > 2
    rows = [
        [*([label] if many else []), *(value for _, value in own.values())]
        for label, (own, _, _) in zip(labels[1:], pairs, strict=True)
    ]
    title = f"each run beside the first, {labels[0]}" if many else "paired"
    title += ": tasks of both runs, the same to the letter; brackets: 95 %, over the samples of each task"
    columns = {"the second": TEXT} if many else {}
    columns |= {name: unit for name, (unit, _) in pairs[0][0].items()}
    said = [f"{label}: {words}" if many else words for label, (_, words, _) in zip(labels[1:], pairs, strict=True)]
    if many:
        chance = 1 - (1 - _LEVEL) ** len(pairs)
        said.append(
            f"Each run is tested alone; that chance alone shows one of {len(pairs)} as different: up to {chance:.0%}."
        )
    tables = {"paired": DataTable(title, columns, rows, ("left out, not in both alike",), note="\n".join(said))}
    if not many:
        tables["one run only"] = tabulate_problems(views, pairs[0][2], "solved by one run only")
    return tables


def _compare_pair(
    views: tuple[RunView, RunView], keys: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[dict[str, tuple[str, Value]], str, Problems]:
    """Figures with their units, what they show in words, and the tasks that one run alone solved."""
    rows = [{row.id: row for row in view.tasks if row.state not in ("given", "known")} for view in views]
    shared = [name for name in rows[0] if name in rows[1] and keys[0][name] == keys[1][name]]
    left_out = [name for name in dict.fromkeys(row.id for view in views for row in view.tasks) if name not in shared]
    solved = {name: (rows[0][name].state == "solved", rows[1][name].state == "solved") for name in shared}
    both, first, second = (list(solved.values()).count(own) for own in ((True, True), (True, False), (False, True)))
    p_value = mcnemar_p_value(first, second)
    is_joined = any(view.list_joined() & set(shared) for view in views)
    rates = [_subtract([view.first for view in views], shared)]
    rates.append(None if is_joined else _subtract([view.solving for view in views], shared))
    pairing: dict[str, tuple[str, Value]] = {
        "tasks of both": (COUNT, len(shared)),
        "both solved": (COUNT, both),
        "only the first": (COUNT, first),
        "only the second": (COUNT, second),
        "exact McNemar test": (SHARE, Said(f"p = {p_value:.3g}", p_value)),
        "pass@1 first minus second, first round": (SHARE, _say_difference(rates[0])),
        "the same, round of each solution": (SHARE, None if is_joined else _say_difference(rates[1])),
        "left out, not in both alike": (TEXT, Said(list_names(left_out) or NOTHING, left_out)),
    }
    counts = f"{both + first} and {both + second} of {count_noun(len(shared), 'task')}, p = {p_value:.3g}"
    words = [f"solved: {_name_difference(p_value < _LEVEL, first > second)} ({counts})"]
    names = ("pass@1, first round", "pass@1, round of each solution")
    words += [
        f"{name}: {_name_difference(own.low is not None and not own.low <= 0 <= (own.high or 0), own.value > 0)} "
        f"({_say_difference(own).text})"
        for name, own in zip(names, rates, strict=True)
        if own is not None
    ]
    differing = [(name, (rows[0][name], rows[1][name])) for name, (one, other) in solved.items() if one != other]
    return pairing, "; ".join(words) + ".", differing


def _name_difference(is_shown: bool, is_first: bool) -> str:
    return f"more in the {'first' if is_first else 'second'}" if is_shown else "no difference is shown"


def mcnemar_p_value(only_one: int, only_other: int) -> float:
    """Exact two-sided p-value that as many pairs differ so unevenly, if either side were as likely.

    >>> mcnemar_p_value(5, 0)
    0.0625
    """
    n, fewer = only_one + only_other, min(only_one, only_other)
    tail = sum(math.comb(n, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def _subtract(counts: Sequence[Mapping[str, tuple[int, int]]], shared: Sequence[str]) -> Estimate | None:
    """pass@1 of the one less that of the other, over the shared tasks that both have tried."""
    names = [name for name in shared if all(name in own for own in counts)]
    first, second = ({name: own[name] for name in names} for own in counts)
    return estimate_difference(first, second, 1)


def _say_difference(estimate: Estimate | None) -> Said:
    none = "no samples in both"
    return Said(none if estimate is None else f"{estimate:+.3f} over {count_noun(estimate.tasks, 'task')}", estimate)


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
