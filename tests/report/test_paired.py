"""Two runs are compared task by task, and what stands in the way of comparing them is said."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from opsmith.report.comparison import mcnemar_p_value, tabulate_pairs
from opsmith.report.many_runs import compare_runs, gather_runs, turn_pair
from opsmith.report.record import list_records
from opsmith.report.views import run_view
from opsmith.store import rows


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (6, 1, 0.125), (3, 3, 1.0), (2000, 0, 0.0)],
)
def test_the_exact_test_of_mcnemar(one, other, p):
    assert mcnemar_p_value(one, other) == pytest.approx(p)


def pair_runs(store, *runs):
    """The record of two runs, and the tasks that one of them alone solved."""
    tables = tabulate_pairs(store, [run_view(store, run) for run in runs])
    [record] = list_records(tables["paired"])
    return record, [row[0] for row in tables["one run only"].rows]


def test_a_run_equals_itself(store, runs):
    record, differing = pair_runs(store, runs[0], runs[0])
    assert (record["left out, not in both alike"], differing) == ([], [])
    assert (record["only the first"], record["only the second"], record["exact McNemar test"]) == (0, 0, 1.0)
    difference = record["the same, round of each solution"]
    assert difference["value"] == 0
    assert difference["low"] <= 0 <= difference["high"]


def test_tasks_of_one_run_only_and_tasks_of_another_text_are_left_out(store, runs):
    first, second, *others = store.read_tasks(runs[0])
    changed = replace(second, text=second.text.replace("want:", "want:  "))
    assert changed.digest != second.digest
    info = rows.RunInfo("open-s0-1", "1", "gpt", True, "tiny", 0, {"samples": 9}, {})
    store.put(rows.run_rows(info, [first, changed])).result()
    record, _ = pair_runs(store, runs[0], info.id)
    assert record["tasks of both"] == 1
    assert set(record["left out, not in both alike"]) == {second.id, *(task.id for task in others)}
    assert record["pass@1 first minus second, first round"] == "no samples in both"


def test_the_comparison_as_it_is_printed(store, runs, golden):
    many = gather_runs([run_view(store, run) for run in runs])
    views = [replace(own, given_name=f"run {n}", seconds=0.0) for n, own in enumerate(many.runs, 1)]
    many = replace(many, runs=tuple(views))
    console = Console(file=io.StringIO(), width=140)
    console.print(*turn_pair(many, compare_runs(store, many)).values())
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    golden("compare.txt", re.sub(r"-\w{10}\b", "-" + "x" * 10, "\n".join(lines)) + "\n")  # hashes of all settings
