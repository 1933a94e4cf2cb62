"""From one language to another (`transfers`), where both are of the main environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from languages.transfers import EXPERIMENTS, check_arms, check_prompts, check_references
from opsmith.targets import get_target
from opsmith.targets.protocols import Equipped
from opsmith_lab.evaluation.experiment import Experiment

APART = {"tvm", "triton"}  # in environments of their own: tests in the folders of their names
OVER_ALL = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
HERE = {name: row for name, row in EXPERIMENTS.items() if row.settings["target"] not in APART}
OVER_OURS = pytest.mark.parametrize("experiment", HERE.values(), ids=HERE)


def skip_without(language: str) -> None:
    target = get_target(language)
    if isinstance(target, Equipped) and (lack := target.explain_lack()):
        pytest.skip(lack)


def test_each_pair_of_languages_has_an_experiment() -> None:
    pairs = {(row.arms[0].settings["translate"], row.settings["target"]) for row in EXPERIMENTS.values()}
    assert {f"transfer-{source}-{target}" for source, target in pairs} == set(EXPERIMENTS)
    assert pairs >= {("c", "cuda"), ("c", "wgsl"), ("cuda", "wgsl"), ("c", "metal"), ("cuda", "metal"), ("c", "tvm")}
    assert ("cuda", "triton") in pairs


@OVER_ALL
def test_arms_differ_in_what_is_shown_and_in_nothing_else(experiment: Experiment) -> None:
    check_arms(experiment)


@OVER_OURS
def test_every_task_has_a_reference_and_the_price_is_known_before(experiment: Experiment, tmp_path: Path) -> None:
    skip_without(str(experiment.settings["target"]))
    check_references(experiment, tmp_path)


@OVER_OURS
def test_prompts_differ_by_the_part_that_an_arm_names(experiment: Experiment, tmp_path: Path) -> None:
    skip_without(str(experiment.settings["target"]))
    check_prompts(experiment, tmp_path)
