"""The 14 blocks: every reference is the formula, every program is long, and no task is another one with other names."""

import hashlib
import re
from collections import Counter

import numpy as np
import pytest
import torch
from suites.block_references import REFERENCES

from opsmith.problems.drawing import draw_case, draw_with_margins
from opsmith.problems.reference import compute_expected
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.suites import STEP_SUITES, task_files
from opsmith.targets.step.ir import read_spec_with_warnings

FILES = {path.stem: path for path in task_files("blocks")}
SHAPES = [(5, 7, 9, 16), (3, 19, 4, 10)]  # M, N, K, D

# On 2026-11-23, before the first run with a plan. Plans are measured on these files: whoever changes one of them has to
# measure again, and to say in experiments/LOG.md what was changed and why.
FROZEN = "70aea13eea87b61d0cf378128fe88ad88101c096a47050a55bc2e3a57bbb4df4"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def spec_of(task):
    return read_spec_with_warnings(FILES[task].read_text(encoding="utf-8"))


def assert_formula(task, spec, wide):
    """The task's torch text and the NumPy reference agree on these inputs, in float64."""
    values = [field.numpy() for output in compute_expected(spec.problem, wide) for field in output]
    formula = REFERENCES[task](**{name: tensor.numpy() for name, tensor in wide.input_data.items()})
    for value, wanted in zip(values, formula, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)


def list_steps(path):
    """The program without names: primitives with their arguments, and which results they take."""
    names = {}
    impl = re.sub(r"fn=fn_\w+", "fn", read_spec_with_warnings(path.read_text(encoding="utf-8"))[0].impl)
    return re.sub(r"\bE\d+\b", lambda match: str(names.setdefault(match[0], len(names))), impl)


def test_there_are_14_with_a_reference_each():
    assert sorted(REFERENCES) == sorted(FILES)
    assert len(FILES) == 14


@pytest.mark.parametrize("task", sorted(FILES))
def test_the_reference_is_the_formula_on_draws_and_on_hand_made_inputs(task):
    spec, warnings = spec_of(task)
    assert not warnings
    for shape in SHAPES:
        assert_formula(task, spec, draw_with_margins(spec.problem, dict(zip("MNKD", shape, strict=True)), "formula")[1])
    assert spec.cases
    sets = choose_shape_sets(spec.problem)
    for at, case in enumerate(spec.cases):
        assert_formula(task, spec, draw_case(spec.problem, sets.get(case.shape, {}), at)[1])


def test_the_files_are_those_that_were_frozen_before_the_first_planned_run():
    texts = [path.name.encode() + b"\0" + path.read_bytes() + b"\0" for path in sorted(FILES.values())]
    assert hashlib.sha256(b"".join(texts)).hexdigest() == FROZEN


def test_every_program_is_a_block_of_8_to_30_primitives():
    lengths = {task: spec_of(task)[0].impl.count("step.") for task in FILES}
    assert {task: length for task, length in lengths.items() if not 8 <= length <= 30} == {}
    assert sum(lengths.values()) / len(lengths) > 12


def test_no_task_is_another_one_with_other_names():
    paths = [path for suite in STEP_SUITES for path in task_files(suite)]
    twins = Counter(list_steps(path) for path in paths)
    assert [path.stem for path in FILES.values() if twins[list_steps(path)] > 1] == []
