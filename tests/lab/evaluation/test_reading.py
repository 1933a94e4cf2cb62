"""Experiment files: every wrong key, value and reference is named with its line; the ones of this repository are right."""

from pathlib import Path

import pytest

from opsmith.errors import TaskError, UsageError
from opsmith_lab.evaluation.catalogue import find_experiments, list_experiments
from opsmith_lab.evaluation.plan import ExperimentOptions, plan_runs
from opsmith_lab.evaluation.reading import read_experiment

ROOT = Path(__file__).parents[3]
RIGHT = """\
title = "t"
shows = "s"
analysis = "methods"

[settings]
samples = 4

[[model]]
name = "embedded"

[[arm]]
name = "a"

[[arm]]
name = "b"
selection = "none"
budget_from = "a"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "t"', 'titel = "t"', r"x\.toml:1: unknown key 'titel'; did you mean 'title'\?"),
        (
            'analysis = "methods"',
            'analysis = "magic"',
            r"x\.toml:3: analysis: given 'magic'; expected one of methods, ",
        ),
        ("samples = 4", "samples = 0", r"x\.toml:6: .*samples.*greater than or equal to 1"),
        ("samples = 4", "sample = 4", r"x\.toml:6: sample: no such setting; known: "),
        ("samples = 4", "seed = 4", r"x\.toml:6: seed: expected seeds = \[\.\.\.\]"),
        ("samples = 4", "max_cost = 4", r"x\.toml:6: max_cost: expected the option --max-cost"),
        ('budget_from = "a"', 'budget_from = "c"', r"x\.toml.*arm 'b': names 'c', which is no run of an arm before it"),
        ('budget_from = "a"', 'repair = "often"', r"x\.toml:17: .*repair.*valid integer"),
        ('name = "b"', 'name = "a"', r"arm 'a': given twice"),
        ('selection = "none"', 'first_round_of = "a"', r"arm 'b': given settings; expected those of 'a' alone"),
        ('[[model]]\nname = "embedded"', "", r"x\.toml: model: given nothing; expected a value"),
        ('shows = "s"', 'shows = "s"\nrelative_to = "z"', r"relative_to: no arm is called 'z'; known: a, b"),
        ('shows = "s"', "shows = ", r"x\.toml: not a readable TOML file: Invalid value \(at line 2"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in RIGHT
    file = tmp_path / "x.toml"
    file.write_text(RIGHT.replace(old, new, 1))
    with pytest.raises(TaskError, match=words):
        read_experiment(file)


def test_settings_of_a_run_are_no_experiment_and_say_what_to_do() -> None:
    with pytest.raises(TaskError, match=r"main\.toml: no experiment: .*; try: opsmith run .*main\.toml"):
        find_experiments(str(ROOT / "experiments" / "main.toml"))


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"experiment 'fig22': no such name or file; did you mean 'fig2'\? known: control"
    ):
        find_experiments("fig22")
    with pytest.raises(UsageError, match="no such experiment file"):
        find_experiments(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("name", list_experiments())
def test_the_experiments_of_this_repository_open_with_their_command(name: str) -> None:
    file = list_experiments()[name]
    assert file.read_text().splitlines()[0] == f"# opsmith experiment {name}"
    (found,) = find_experiments(name)
    runs = plan_runs(found, ExperimentOptions())
    if found.collection == "agents":  # tests/lab/evaluation/test_agents.py
        return
    assert {item.settings.method.guardian for item in runs if item.settings.method.agents == "agent"} <= {"llm"}
    expected = {4096} if found.collection else {1024}
    assert {item.settings.method.max_tokens for item in runs if "o1" not in item.series} == expected


def test_the_papers_settings_stand_in_the_files() -> None:
    learning, ablation = (plan_runs(find_experiments(name)[0], ExperimentOptions()) for name in ("fig2", "table2"))
    assert {(item.settings.method.samples, item.settings.method.temperatures) for item in learning} == {
        (64, (0.4, 0.7, 1.0))
    }
    assert {(item.settings.method.samples, item.settings.method.temperatures) for item in ablation} == {(64, (0.7,))}
    assert {item.settings.seed for item in learning if "gpt-4o" in item.series} == {42}
    (o1,) = {
        item.settings
        for item in plan_runs(find_experiments("table4")[0], ExperimentOptions(("openai/o1-2024-12-17",)))
        if item.arm.name == "single"
    }
    assert (o1.method.samples, o1.method.max_tokens) == (8, 16384)


def test_later_settings_win() -> None:
    (found,) = find_experiments("fig8")
    own = plan_runs(found, ExperimentOptions(("embedded",), samples=8, tasks=("attn_0",), seeds=(5,)))
    assert [item.settings.method.levels for item in own] == [1, 2, 3, 4]
    first = own[0].settings.method
    assert (first.samples, first.temperatures, first.guardian, own[0].settings.seed) == (8, (1.0,), "static", 5)
    assert own[0].settings.tasks == ("attn_0",)
    assert len(plan_runs(found, ExperimentOptions(("embedded",)))) == 3 * 4


def test_the_papers_numbers_add_up() -> None:
    """Table 4's groups sum to its averages, table 2's classes to its sums, as far as the paper prints digits."""
    sizes = {"attn": 3, "gemm": 3, "bmm": 3, "norm": 3, "rope": 3, "index": 4, "expert": 3, "etoe": 4}
    for item in find_experiments("table4")[0].paper:
        mean = sum(item.values[group] * size for group, size in sizes.items()) / 26
        assert mean == pytest.approx(item.values["all"], abs=0.0006), (item.model, item.measure)
    for item in find_experiments("table2")[0].paper:
        if item.measure == "tasks":
            continue
        v = item.values
        assert v["all"] == pytest.approx((15 * v["Arith"] + 11 * v["Shape"]) / 26, abs=0.0006)
        assert v["Reuse"] == pytest.approx((8 * v["Arith-Reuse"] + 4 * v["Shape-Reuse"]) / 12, abs=0.0006)
