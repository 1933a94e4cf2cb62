"""Two runs are compared task by task, and what stands in the way of comparing them is said."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from opsmith.report.comparison import comparison_lines, differing_tasks, runs_side_by_side
from opsmith.report.paired import compare_views, mcnemar_p_value
from opsmith.report.views import run_view
from opsmith.store import rows


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (6, 1, 0.125), (3, 3, 1.0), (2000, 0, 0.0)],
)
def test_the_exact_test_of_mcnemar(one, other, p):
    assert mcnemar_p_value(one, other) == pytest.approx(p)


def test_a_run_equals_itself(store, runs):
    found = compare_views(store, run_view(store, runs[0]), run_view(store, runs[0]))
    assert found.settings == found.unpaired == ()
    assert (found.only_one, found.only_other, found.p_value) == (0, 0, 1.0)
    assert found.solving_round is not None
    assert found.solving_round.value == 0
    assert found.solving_round.low <= 0 <= found.solving_round.high


def test_tasks_of_one_run_only_and_tasks_of_another_text_are_left_out(store, runs):
    first, second, *others = store.read_tasks(runs[0])
    changed = replace(second, text=second.text.replace("want:", "want:  "))
    assert changed.digest != second.digest
    info = rows.RunInfo("open-s0-1", "1", "gpt", True, "tiny", 0, {"samples": 9}, {})
    store.put(rows.run_rows(info, [first, changed])).result()
    found = compare_views(store, run_view(store, runs[0]), run_view(store, info.id))
    assert [pair.task for pair in found.pairs] == [first.id]
    assert set(found.unpaired) == {second.id, *(task.id for task in others)}
    assert found.first_round is None
    names = {name for name, _, _ in found.settings}
    assert {"model", "samples"} <= names


def test_the_comparison_as_it_is_printed(store, runs, golden):
    found = compare_views(store, *(run_view(store, run) for run in runs))
    one, other = replace(found.first, id="first", seconds=0.0), replace(found.second, id="second", seconds=0.0)
    timeless = replace(found, first=one, second=other)  # a run's id is a hash of all its settings
    console = Console(file=io.StringIO(), width=140)
    console.print(runs_side_by_side((one, other)), differing_tasks(timeless), *comparison_lines(timeless), sep="\n")
    golden("compare.txt", "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n")


def test_the_comparison_as_json_has_the_same_numbers(store, runs):
    found = compare_views(store, *(run_view(store, run) for run in runs))
    data = json.loads(json.dumps(found.as_json()))
    assert data["solved"] == {"both": found.both, "only_first": found.only_one, "only_second": found.only_other}
    assert len(data["differing_tasks"]) == found.only_one + found.only_other
    assert data["pass_at_1_difference"]["first_round"]["value"] == found.first_round.value
    assert [run["run"] for run in data["runs"]] == runs
