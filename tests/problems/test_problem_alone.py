"""A problem alone says what its data is, what is expected, and whether outputs are right: no language is asked."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from opsmith.problems.audit.answers import check_answers
from opsmith.problems.audit.data import note_left_out, prepare_material
from opsmith.problems.audit.findings import State
from opsmith.problems.audit.reference import check_inputs, check_reference, check_tolerance, note_narrowing
from opsmith.problems.compare import compare_outputs
from opsmith.problems.data import ProblemData
from opsmith.problems.digest import describe_problem, hash_problem
from opsmith.problems.dims import parse_dim
from opsmith.problems.draws import Draw, TrialData
from opsmith.problems.problem import ArrayType, CaseSpec, InputTensor, OutputTensors, Problem
from opsmith.problems.shape_sets import choose_shape_sets, explain_shape_sets


class PlainData(ProblemData[Draw]):
    """The data of a problem as it is, with nothing of a target's."""

    def make_draw(self, shape_set, overrides, seed, is_case=False):
        return Draw(self, shape_set, overrides, seed, is_case)


def array(dtype, *shape):
    return ArrayType(dtype, tuple(map(parse_dim, shape)))


def product(reference="input_data['a'] @ input_data['b']", **changes):
    tensors = (InputTensor("a", array("fp32", "M", "K"), "torch.randn"),)
    weights = (InputTensor("b", array("fp32", "K", "N"), "torch.randn"),)
    outputs = (OutputTensors("c", (array("fp32", "M", "N"),), (reference,)),)
    return Problem(tensors, weights, outputs, sizes={"M": 5, "N": 7, "K": 9}, **changes)


def first_trial(problem, is_wide):
    planned = next(trial for trial in PlainData(problem).plan_trials() if trial.is_wide == is_wide)
    return TrialData(planned.draws, planned.is_wide)


def test_its_record_lists_types_symbols_and_sizes():
    problem = product()
    assert [tensor.name for tensor in problem.tensors] == ["a", "b"]
    assert problem.symbols == {"M", "N", "K"}
    assert problem.count_numbers(problem.base_sizes) == 5 * 9 + 9 * 7 + 5 * 7
    assert problem.has_narrow_floats
    assert str(problem.outputs[0].types[0].label) == "fp32 [M, N]"


def test_its_digest_sees_what_it_asks_for_and_no_words_of_a_target():
    worded = ArrayType("fp32", product().inputs[0].type.shape, kind="Buffer(fp32, [K])", label="Buffer(fp32, [K]) [M]")
    reworded = replace(product(), inputs=(InputTensor("a", worded, "torch.randn"),))
    assert reworded == product()
    assert hash_problem(reworded) == hash_problem(product())
    assert hash_problem(product()) == hash_problem(product(interface=(array("fp32", "D"),)))
    assert hash_problem(product()) != hash_problem(product("input_data['a'] @ input_data['b'] + 1"))
    assert describe_problem(product())["outputs"][0]["arrays"][0]["shape"] == ["M", "N"]


def test_its_shape_sets_are_those_that_concern_it():
    sets = choose_shape_sets(product())
    assert list(sets)[:2] == ["base", "unit"]
    assert "D2" not in sets
    assert "D2" in choose_shape_sets(product(interface=(array("fp32", "D"),)))
    assert explain_shape_sets(product(), "M1 seed 0 float64") == "M1 (M = 1) seed 0 float64"


@pytest.mark.parametrize(("is_wide", "dtype"), [(True, torch.float64), (False, torch.float32)])
def test_right_outputs_pass_and_wrong_ones_are_explained(is_wide, dtype):
    trial = first_trial(product(), is_wide)
    outputs = torch.stack([data.input_data["a"] @ data.input_data["b"] for data in trial.bindings])
    assert outputs.dtype is dtype
    problem = trial.draws[0].problem
    assert compare_outputs(problem, trial.limits, [[outputs]], trial.label).errors == ()
    (error,) = compare_outputs(problem, trial.limits, [[2 * outputs]], trial.label).errors
    assert error.where.startswith("output c (fp32 [M, N], index outermost first), base seed 0")
    assert "every entry is 2 times the expected one" in error.remedy
    (error,) = compare_outputs(problem, trial.limits, [], trial.label).errors
    assert (error.given, error.expected) == ("0 outputs", "1 (c)")


def test_a_set_at_which_the_reference_fails_is_left_out():
    data = PlainData(product("input_data['a'] @ input_data['b'] / (N_value > 1)"))
    reasons = [reason for shape_set in data.sets if (reason := shape_set.explain_left_out())]
    assert reasons == []  # infinite, which is a number
    data = PlainData(product("(input_data['a'] @ input_data['b'])[:, [0, 1]].sum(1, keepdim=True).expand(-1, N_value)"))
    reasons = [reason for shape_set in data.sets if (reason := shape_set.explain_left_out())]
    assert [reason.split()[2] for reason in reasons] == ["unit", "N1", "tight"]


def audit(problem):
    material, finding = prepare_material(lambda: PlainData(problem))
    if material is None:
        return [finding]
    rest = [check_reference(material), *check_answers(material), check_tolerance(material), *check_inputs(material)]
    return [finding, *note_left_out(material), *rest, *note_narrowing(material.narrowed_outputs)]


def test_it_is_audited_without_a_program():
    assert {finding.state for finding in audit(product())} == {State.FINE}
    weak = audit(product("input_data['a'] @ torch.zeros_like(input_data['b'])"))
    faulty = [(finding.check, finding.tried.split(",")[0]) for finding in weak if finding.state is State.FAULTY]
    assert ("answers", "c = zeros") in faulty
    assert ("inputs", "b drawn anew") in faulty
    (nan,) = audit(product("input_data['a'].log() @ input_data['b']"))
    assert "it comes from negative numbers in a" in nan.found


def test_hand_made_inputs_are_drawn_with_their_property():
    problem = product(cases=(CaseSpec("input_data['a'].zero_()\n(input_data['a'] == 0).all()"),))
    cases = next(trial for trial in PlainData(problem).plan_trials() if trial.name == "cases float64")
    assert not cases.draws[0].wide.input_data["a"].any()


def test_its_record_needs_no_torch():
    code = "import sys, opsmith.problems.digest, opsmith.problems.shape_sets; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
