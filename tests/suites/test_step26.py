"""The 26 tasks: every oracle is right, every reference is the operator, and the shape sets are those that were asked for."""

import numpy as np
import pytest
import torch
import yaml
from suites.references import REFERENCES

from opsmith.judging.verifier import verify
from opsmith.problems.drawing import draw_case, draw_with_margins
from opsmith.problems.reference import compute_expected
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.suites import read_task_file, task_files
from opsmith.targets import get_target
from opsmith.targets.step.ir import read_spec_with_warnings

FILES = {path.stem: path for path in task_files("step26")}
TASKS = sorted(FILES)

# The paper's table 2, of its oracles: which reuse a stream (Copy), which use a primitive that changes the shape.
REUSE = {"attn_2", "norm_0", "norm_1", "norm_2", "rope_2", "expert_0", "expert_1", "expert_2"}
REUSE |= {"etoe_0", "etoe_1", "etoe_2", "etoe_3"}
SHAPE = {"bmm_1", "bmm_2", "gemm_0", "gemm_1", "gemm_2", "norm_1", "norm_2", "rope_2", "index_1", "index_2", "etoe_2"}
DECIDES = {"index_0", "index_1", "index_2", "index_3", "etoe_0", "etoe_1", "etoe_2", "etoe_3"}

# M, N, K, D: everything minimal; one size minimal at a time; M > N and K > D; wide; tall; equal; tight
SHAPES = [(5, 7, 9, 16), (1, 1, 1, 2), (1, 7, 9, 16), (5, 1, 9, 16), (5, 7, 1, 16), (5, 7, 9, 2)]
SHAPES += [(13, 11, 17, 6), (3, 19, 4, 10), (19, 3, 10, 4), (4, 4, 4, 4), (3, 1, 2, 2)]
LARGE, BMM_2_LARGE = (32, 64, 64, 64), (8, 16, 16, 16)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def spec_of(task):
    return read_spec_with_warnings(FILES[task].read_text(encoding="utf-8"))


def assert_formula(task, spec, wide):
    """The task's torch text and the NumPy reference agree on these inputs, in float64."""
    values = [field.numpy() for output in compute_expected(spec.problem, wide) for field in output]
    formula = REFERENCES[task](**{name: tensor.numpy() for name, tensor in wide.input_data.items()})
    assert len(values) == len(formula)
    for value, wanted in zip(values, formula, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-12)


def test_there_are_26_with_a_reference_each():
    assert sorted(REFERENCES) == TASKS
    assert len(TASKS) == 26


@pytest.mark.parametrize("task", TASKS)
def test_a_file_reads_without_warnings_and_is_named_by_its_id(task):
    spec, warnings = spec_of(task)
    assert not warnings
    assert spec.test_name == task


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_passes_every_trial(task):
    loaded = read_task_file(FILES[task])
    verdict = verify(loaded, loaded.impl)
    assert verdict.passed, verdict.message
    assert not verdict.warnings
    assert verdict.trials == sum(trial.draws for trial in get_target("step").list_trials(loaded)) >= 40


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[7], SHAPES[9]], ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_the_reference_is_the_formula(task, shape):
    spec, _ = spec_of(task)
    _, wide = draw_with_margins(spec.problem, dict(zip("MNKD", shape, strict=True)), "formula")
    assert_formula(task, spec, wide)


@pytest.mark.parametrize("task", TASKS)
def test_the_reference_is_the_formula_on_hand_made_inputs(task):
    spec, _ = spec_of(task)
    assert spec.cases
    sets = choose_shape_sets(spec.problem)
    for at, case in enumerate(spec.cases):
        assert_formula(task, spec, draw_case(spec.problem, sets.get(case.shape, {}), at)[1])


@pytest.mark.parametrize("task", TASKS)
def test_a_task_runs_at_every_shape_asked_for(task):
    spec, _ = spec_of(task)
    base = {name: size for name, size in spec.sizes.items() if name in spec.problem.symbols}
    runs = [base | sizes for sizes in choose_shape_sets(spec.problem).values()]
    for row in [*SHAPES, BMM_2_LARGE if task == "bmm_2" else LARGE]:
        wanted = {symbol: size for symbol, size in zip("MNKD", row, strict=True) if symbol in base}
        assert base | wanted in runs, row
    if task in {"index_0", "index_1"}:
        assert {sizes["E"] for sizes in runs} == {1, 2, 3, 5, 8}


def test_a_task_states_margins_where_it_decides():
    assert [task for task in TASKS if spec_of(task)[0].margins] == sorted(DECIDES)


def test_the_oracles_fall_into_the_paper_s_classes():
    programs = {task: yaml.safe_load(path.read_text(encoding="utf-8"))["impl"] for task, path in FILES.items()}
    reshaping = ("step.Promote(", "step.Flatten(", "step.Repeat(", "step.RepeatRef(", "step.Reshape(")
    assert [task for task in TASKS if "step.Copy(" in programs[task]] == sorted(REUSE)
    assert [task for task in TASKS if any(name in programs[task] for name in reshaping)] == sorted(SHAPE)
