"""From CUDA to Triton: see `transfers`."""

from __future__ import annotations

from pathlib import Path

import pytest

from languages.transfers import EXPERIMENTS, check_prompts, check_references
from opsmith_lab.evaluation.experiment import Experiment

OVER_ALL = pytest.mark.parametrize(
    "experiment", [row for row in EXPERIMENTS.values() if row.settings["target"] == "triton"], ids=lambda row: row.name
)


@OVER_ALL
def test_every_task_has_a_reference_and_prompts_differ_by_what_is_shown(experiment: Experiment, tmp_path: Path) -> None:
    check_references(experiment, tmp_path)
    check_prompts(experiment, tmp_path)
