"""Wrong programs are refused, each at the stage where it goes wrong."""

from collections import Counter

import pytest
import torch
import yaml
from suites.mutants import AFFINE, MATCH, TABLE, TYPE, mutants

from opsmith.judging.verifier import verify
from opsmith.records import Boundary, Outcome
from opsmith.suites import task_files
from opsmith.targets import get_target

FILES = {path.stem: path for path in task_files("step26")}
MUTANTS = list(mutants())


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_is_refused_at_its_stage(mutant):
    torch.set_num_threads(1)
    changed = mutant.applied(yaml.safe_load(FILES[mutant.task].read_text(encoding="utf-8")))
    task = get_target("step").read_task(yaml.safe_dump(changed, sort_keys=False), mutant.task)
    verdict = verify(task, task.impl)
    assert verdict.outcome is Outcome.REFUSED, verdict.message
    assert verdict.charged_to is Boundary.CANDIDATE
    assert verdict.stage == mutant.stage, verdict.message


def test_every_task_has_wrong_values_wrong_types_and_double_use():
    assert set(TABLE) == set(FILES)
    for task, rows in TABLE.items():
        stages = Counter(row[3] for row in rows)
        assert stages[MATCH] >= 2, task
        assert stages[TYPE], task
        assert stages[AFFINE], task
