"""Every experiment from start to end at the small size of `small`, its numbers against computations of their own."""

import csv
import json
import shutil
from collections import defaultdict
from math import comb
from pathlib import Path

import pytest

from lab.evaluation.small import ASKED, NAMES, TASKS, Small, small
from opsmith.errors import UsageError
from opsmith.judging.verifier import canonical_source
from opsmith.records import Outcome
from opsmith.results.result import result_of
from opsmith.suites import load_tasks
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.charts import BOTH, EMBEDDED
from opsmith_lab.evaluation.conduct import conduct_experiment
from opsmith_lab.evaluation.files import redraw_results


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory):
    with small(tmp_path_factory.mktemp("series")) as found:
        yield found


def test_the_size_is_what_the_tests_promise() -> None:
    tasks = load_tasks(TASKS)
    assert (len(tasks), len({task.group for task in tasks}), ASKED.samples) == (6, 4, 8)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_leaves_complete_files_that_say_whose_results_they_are(series: Small, name: str) -> None:
    data = series.done[name].data
    assert json.loads((series.folder / f"{name}.json").read_text()) == data
    assert data["complete"]
    assert data["tasks"] == list(TASKS)
    lines = list(csv.DictReader((series.folder / f"{name}.csv").open()))
    assert [line["arm"] for line in lines] == [row["arm"] for row in data["rows"]]
    assert {line["is_language_model"] for line in lines} == {"False"}
    assert data["rows"]
    assert all(row["found"]["low"] <= row["found"]["value"] <= row["found"]["high"] for row in data["rows"])
    assert all(row["found"]["samples"] and row["found"]["tasks"] and row["found"]["seeds"] for row in data["rows"])
    page = (series.folder / f"{name}.md").read_text()
    said = BOTH if name == "search" else EMBEDDED
    assert data["mark"] == said
    assert f"**{said.capitalize()}" in page
    assert said in (series.folder / f"{name}.svg").read_text()
    assert f"]({name}.svg)" in page
    assert (series.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_figures_are_drawn_again_from_the_numbers_alone(series: Small, tmp_path: Path) -> None:
    assert series.done["fig12"].data["figures"]
    shutil.copy(series.folder / "fig12.json", tmp_path)
    drawn = redraw_results(tmp_path, "fig12")
    assert {path.name for path in drawn} == {f"fig12{end}" for end in (".svg", ".png", "-pass1.svg", "-pass1.png")}
    assert all(path.read_bytes() == (series.folder / path.name).read_bytes() for path in drawn)
    with pytest.raises(UsageError, match="run the experiment first"):
        redraw_results(tmp_path, "fig2")


def test_the_index_has_a_line_for_each(series: Small) -> None:
    assert len(series.done) == len(NAMES)
    text = (series.folder / "README.md").read_text()
    assert all(f"| [{name}]({name}.md) |" in text for name in NAMES)
    assert all(f"opsmith experiment {name} --model embedded --samples 8" in text for name in NAMES)


def test_equal_arms_are_run_once(series: Small) -> None:
    """fig2, fig7, fig8, fig11 and table4 share the adaptive run; table1, table2, fig9, fig12 and fig13 the ablation."""
    adaptive = [series.runs(name)["adaptive"] for name in ("fig2", "fig7", "fig11", "table4")]
    assert {*adaptive, series.runs("fig8")["m = 3"]} == {adaptive[0]}
    assert len({series.runs(name)["agent"] for name in ("table1", "table2", "fig9", "fig12", "fig13")}) == 1
    different = {run for name in NAMES for run in series.runs(name).values()}
    assert {summary.info.id for summary in series.store.list_runs()} == different
    again = conduct_experiment(find_experiments("fig2")[0], ASKED, series.store, series.folder).data
    assert again["rows"] == series.done["fig2"].data["rows"]
    assert len(series.store.list_runs()) == len(different)


def _samples(series: Small, run: str, last: int | None = None) -> dict[str, list[bool]]:
    """By task: which judged samples are right, from the list of samples."""
    found: dict[str, list[bool]] = defaultdict(list)
    for row in series.store.list_samples(run):
        if row.outcome is not None and (last is None or row.round <= last):
            found[row.task].append(row.outcome is Outcome.PASSED)
    return found


@pytest.mark.parametrize(
    ("name", "arm"), [("fig13", "single-WS"), ("table1", "single"), ("table2", "agent"), ("fig2", "agent")]
)
def test_pass_at_n_and_pass_at_1_are_those_of_the_samples(series: Small, name: str, arm: str) -> None:
    found = _samples(series, series.runs(name)[arm], last=0)
    solved = sum(any(right) for right in found.values()) / len(TASKS)
    assert solved > 0
    assert series.value(name, arm, "pass@n") == pytest.approx(solved)
    if name != "table1":
        rate = sum(sum(right) / len(right) for right in found.values()) / len(TASKS)
        assert 0 < rate < 1
        assert series.value(name, arm, "pass@1") == pytest.approx(rate)


def test_pass_at_n_of_an_adaptive_run_is_the_share_that_it_solved(series: Small) -> None:
    result = result_of(series.store, series.runs("fig2")["adaptive"])
    assert series.value("fig2", "adaptive", "pass@n") == pytest.approx(result.overall.pass_at_n)
    assert series.value("fig2", "adaptive", "pass@1") == pytest.approx(result.overall.pass_at_1)


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_pass_at_k_counts_subsets(series: Small, k: int) -> None:
    found = _samples(series, series.runs("fig9")["single"])
    parts = [1 - comb(len(right) - sum(right), k) / comb(len(right), k) for right in found.values()]
    assert series.value("fig9", "single", "pass@k", str(k)) == pytest.approx(sum(parts) / len(TASKS))


def test_diversity_is_different_trees_over_answers(series: Small) -> None:
    tasks = {task.id: task for task in load_tasks(TASKS)}
    answers: dict[str, list[str]] = defaultdict(list)
    for task, program, passed in series.store.read_programs(series.runs("table1")["single"]):
        if not passed:
            answers[task].append(canonical_source(tasks[task], program))
    mean = sum(len(set(found)) / len(found) for found in answers.values()) / len(answers)
    assert series.value("table1", "single", "failure diversity") == pytest.approx(mean)


def test_classes_hold_the_tasks_that_belong_there(series: Small) -> None:
    page = (series.folder / "table2.md").read_text()
    for kind, tasks in {
        "Arith-Once": "attn\\_0, index\\_0, index\\_3",
        "Arith-Reuse": "expert\\_1",
        "Shape-Once": "gemm\\_1, index\\_2",
    }.items():
        (line,) = [
            line for line in page.splitlines() if line.startswith(f"| {kind} |") and line.endswith(f" {tasks} |")
        ]
        assert "(Table 2)" in line


def test_the_learning_curve_ends_where_the_run_does(series: Small) -> None:
    run = series.runs("fig7")["adaptive"]
    result = result_of(series.store, run)
    rows = series.done["fig7"].data["rows"]
    assert len(rows) == len(result.rounds) > 1
    assert rows[0]["of"] == "seed 0, None"
    assert rows[-1]["found"]["value"] == pytest.approx(result.overall.pass_at_n)
    page = (series.folder / "fig7.md").read_text()
    last = [line for line in page.splitlines() if line.startswith(f"| {result.rounds[-1].round}: ")]
    assert f"| {result.input_tokens:,.0f} | {result.solved} |" in last[0]


def test_levels_are_compared_by_tokens_and_performance(series: Small) -> None:
    runs = series.runs("fig8")
    usage = {arm: series.store.sum_usage(run).input_tokens for arm, run in runs.items()}
    (line,) = [
        row for row in (series.folder / "fig8.md").read_text().splitlines() if row.startswith("| embedded | m = 1 |")
    ]
    assert f" {usage['m = 1']:,} " in line
    assert f" {usage['m = 1'] / usage['m = 3']:.3f} " in line
    assert series.value("fig8", "m = 3", "performance ratio") == 1


def test_controls_spend_what_the_adaptive_run_spent_unless_nothing_is_left_to_solve(series: Small) -> None:
    runs = series.runs("control")
    ends = {run["arm"]: run["end"] for run in series.done["control"].data["runs"]}
    assert series.store.sample_count(runs["as many samples"]) <= series.store.sample_count(runs["adaptive"])
    spent = {arm: series.store.sum_usage(run) for arm, run in runs.items()}
    total = {arm: usage.input_tokens + usage.output_tokens for arm, usage in spent.items()}
    for arm in ("as many tokens", "single, as many tokens"):
        assert total[arm] <= 1.05 * total["adaptive"]
        assert ends[arm] == "all solved" or total[arm] >= 0.95 * total["adaptive"]
    assert {path.suffix for path in Path(series.folder).iterdir()} == {".md", ".json", ".csv", ".svg", ".png"}
