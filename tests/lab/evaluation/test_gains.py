"""Ablations of the optimisation pass: arms that differ in one thing, equal tokens, gains compared pair by pair."""

import doctest
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.evaluation.small import small
from opsmith.errors import UsageError
from opsmith.learn.references import find_reference
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith_lab.evaluation import measure as estimates
from opsmith_lab.evaluation.analyses import gains
from opsmith_lab.evaluation.analyses.gains import GAIN, MORE, RIGHT, compare_gains
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.conduct import conduct_experiment
from opsmith_lab.evaluation.experiment import Arm, Experiment
from opsmith_lab.evaluation.measure import average_tasks
from opsmith_lab.evaluation.plan import ExperimentOptions, list_start, load_run_tasks, plan_runs

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments("kforge")}
AT_EQUAL_ATTEMPTS = {"kforge-attempts"}  # the others: at equal tokens
AS_LONG_AS_TOKENS_LAST = {"optimise", "plateau", "tokens_from"}


def test_each_part_of_the_pass_has_an_experiment() -> None:
    parts = ("analyst", "attempts", "beam", "example", "memory", "profile", "reference", "refine", "swarm")
    assert list(EXPERIMENTS) == [f"kforge-{part}" for part in parts]
    assert not EXPERIMENTS.keys() & {experiment.name for experiment in find_experiments("all")}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_arms_differ_in_one_thing_and_have_equal_tokens_or_attempts(experiment: Experiment) -> None:
    measure, *others = experiment.arms
    assert "tokens_from" not in measure.settings
    for arm in others:
        assert ("tokens_from" in arm.settings) is (experiment.name not in AT_EQUAL_ATTEMPTS)
        assert arm.settings.get("tokens_from") in (measure.name, None)
        pairs = set(_list_settings(measure)) ^ set(_list_settings(arm))
        names = {name for name, _ in pairs} - AS_LONG_AS_TOKENS_LAST
        assert len(names - {"attempts"}) == 1, "attempts follow the beam"
    assert experiment.relative_to in {arm.name for arm in experiment.arms}
    assert {run.settings.optimisation.optimise > 0 for run in plan_runs(experiment, ExperimentOptions())} == {True}


def _list_settings(arm: Arm) -> Iterator[tuple[str, str]]:
    yield "model", str(arm.model)
    yield from ((name, repr(value)) for name, value in arm.settings.items())


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_runs_begin_with_the_plain_programs_of_the_tasks(experiment: Experiment) -> None:
    if experiment.settings["target"] == "c":
        pytest.importorskip("tree_sitter_c")
    tasks = load_run_tasks(plan_runs(experiment, ExperimentOptions())[0].settings)
    assert [start.source for start in list_start(experiment, tasks)] == [task.impl for task in tasks]


def test_a_task_without_a_program_of_its_own_is_said() -> None:
    experiment = EXPERIMENTS["kforge-swarm"]
    (task,) = load_run_tasks(Settings(tasks=("index_2",)))
    from dataclasses import replace

    with pytest.raises(UsageError, match="index_2: it has no plain program to start from"):
        list_start(experiment, [replace(task, impl=None)])


def test_gains_are_averaged_over_seeds_then_tasks() -> None:
    estimate = average_tasks([{"a": 1.0, "b": 16.0}, {"a": 4.0, "b": 4.0}], is_geometric=True)
    assert estimate is not None
    assert estimate.value == pytest.approx((1 * 16 * 4 * 4) ** 0.25)
    assert estimate.seeds == pytest.approx((4.0, 4.0))
    assert (estimate.low, estimate.high) == (None, None), "two tasks are too few to draw anew"
    assert average_tasks([{}]) is None


def test_arms_are_compared_by_task_and_seed() -> None:
    arm, base = [{"a": 3.0, "b": 9.0}, {"a": 3.0}], [{"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 100.0}]
    estimate = compare_gains(arm, base)
    assert estimate is not None
    assert (estimate.value, estimate.tasks) == (pytest.approx(3.0), 2)
    assert compare_gains([{"a": 2.0}], [{}]) is None


def test_the_examples_of_the_analysis_hold() -> None:
    assert doctest.testmod(gains).failed == doctest.testmod(estimates).failed == 0


def test_an_ablation_leaves_a_page_with_gains_shares_and_the_control(tmp_path: Path) -> None:
    """In STeP, whose cycles are counted: no compiler, no clock."""
    options = ExperimentOptions(samples=1, tasks=("index_2", "index_3"), seeds=(0, 1))
    with small(tmp_path) as place:
        data = conduct_experiment(EXPERIMENTS["kforge-swarm"], options, place.store, place.folder).data
    rows = {(row["arm"], row["measure"]): row["found"] for row in data["rows"]}
    assert {arm for arm, _ in rows} == {"one model", "the other", "swarm"}
    for arm in ("one model", "swarm"):
        assert rows[arm, GAIN]["low"] is rows[arm, GAIN]["high"] is None, "two tasks"
        assert len(rows[arm, GAIN]["seeds"]) == 2
        assert 0 <= rows[arm, RIGHT]["value"] <= 1
        assert rows[arm, "fast_1.1"]["value"] >= rows[arm, "fast_2"]["value"]
    assert ("one model", MORE) not in rows, "it is the control itself"
    assert rows["swarm", MORE]["tasks"] == 2
    page = (place.folder / "kforge-swarm.md").read_text()
    assert "gain over one model" in page
    assert "| index\\_2 |" in page
    assert json.loads((place.folder / "kforge-swarm.json").read_text()) == data
    with Store.open(tmp_path / "runs") as store:
        spent = {run["arm"]: store.sum_usage(run["run"]) for run in data["runs"] if run["seed"] == 0}
    totals = {arm: usage.input_tokens + usage.output_tokens for arm, usage in spent.items()}
    assert totals["swarm"] <= 1.25 * totals["one model"]


def test_every_task_of_the_reference_ablation_has_one(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_c")
    tasks = load_run_tasks(plan_runs(EXPERIMENTS["kforge-reference"], ExperimentOptions())[0].settings)
    with Store.open(tmp_path / "runs") as store:
        references = [find_reference(task, "step", store) for task in tasks]
    assert {reference.target for reference in references if reference is not None} == {"step"}
    assert None not in references
