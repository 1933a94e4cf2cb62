"""Task files that are wrong are found out, each by the check that is made for it; a right one is fine."""

import json

import pytest
import torch
import yaml

from opsmith.judging.audit import audit_task, findings_from_json
from opsmith.judging.audited_files import Audit
from opsmith.judging.verifier import verify
from opsmith.targets import get_target
from opsmith.targets.audit import CHECKS, State

# A weighted sum of the positive part of each row.
GOOD = """
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
  - {name: E1, dtype: fp32, dims: [M, N], data_gen: torch.randn}
fns:
  - {name: Relu, func_name: fn_relu, input_dtype: fp32, output_dtype: fp32, apply: "return [torch.relu(input[0])]"}
  - name: WeightedSum
    func_name: fn_sum
    apply: return [state[0] + input[0] * input[1]]
    init: [0]
    input_dtype: [fp32, fp32]
    output_dtype: fp32
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["(input_data['E0'].relu() * input_data['E1']).sum(-1)"]}
impl: |
  E2 = step.Map(fn=fn_relu).apply(E0)
  E3 = step.Zip().apply((E2, E1))
  return step.Accum(fn=fn_sum, b=1).apply(E3)
"""
SIZE = "torch.zeros(N_value, dtype=input_data['E0'].dtype)"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def audited(**changes):
    """The audit of the good task with these keys changed; a key that becomes None is left out."""
    text = yaml.safe_load(GOOD) | changes
    task = get_target("step").read_task(json.dumps({key: text[key] for key in text if text[key] is not None}), "mine_0")
    return Audit(task.id, findings_from_json(audit_task(task, task.impl or "", verify)))


def with_reference(text, **more):
    return {"outputs": [yaml.safe_load(GOOD)["outputs"][0] | {"data_transform": [text]} | more]}


def with_fn(at, **change):
    fns = yaml.safe_load(GOOD)["fns"]
    return {"fns": [fn | change if place == at else fn for place, fn in enumerate(fns)]}


def faults(found):
    return [(finding.check, finding.tried) for finding in found.findings_of(State.FAULTY)]


def the_fault_of(found, check):
    (fault,) = [finding for finding in found.findings_of(State.FAULTY) if finding.check == check]
    return fault


def test_a_right_task_passes_every_check():
    found = audited()
    assert found.state is State.FINE
    assert [finding.check for finding in found.findings] == list(CHECKS)
    tried = {finding.check: finding.tried for finding in found.findings}
    assert tried["answers"] == "4 refused"  # at the base shape neither input has the shape of the output
    assert (tried["inputs"], tried["functions"]) == ("2 matter", "2 needed")


LOG = "input_data['E0'].log().sum(-1) + input_data['E1'].sum(-1)"
RAND = {"inputs": [entry | {"data_gen": "torch.rand"} for entry in yaml.safe_load(GOOD)["inputs"]]}
BITS = {"inputs": [entry | {"data_gen": "binary"} for entry in yaml.safe_load(GOOD)["inputs"]]}


@pytest.mark.parametrize(
    ("changes", "trial", "cause", "remedy"),
    [
        (
            with_reference(LOG),
            "base (M = 5, N = 7) seed 0",
            "negative numbers in E0;",
            "such as `data_gen: torch.rand`",
        ),
        (
            RAND | with_reference(LOG) | {"cases": ["x = input_data['E0']\nx[0] = -1\n(x[0] < 0).all()"]},
            "case 0",
            "negative numbers in E0;",
            "other numbers for E0 in `cases[0]`",
        ),
        (
            with_reference("(input_data['E0'] - input_data['E1']).sum(-1)")
            | {"cases": ["for x in input_data.values(): x[0] = float('inf')\nTrue"]},
            "case 0",
            "infinite numbers in E0 or E1;",
            "`cases[0]`",
        ),
        (
            with_reference("(input_data['E0'] + input_data['E1']).sum(-1)")
            | {"cases": ["input_data['E1'][0] = float('nan')\nTrue"]},
            "case 0",
            "E1 holds NaN itself",
            "numbers for E1 in `cases[0]`",
        ),
        (
            BITS | with_reference("(input_data['E0'] / input_data['E1']).sum(-1)"),
            "base (M = 5, N = 7) seed 0",
            "zeros in E0 or E1;",
            "no 0 in",
        ),
        (
            with_reference("(input_data['E0'] * input_data['E1']).sqrt().sum(-1)"),
            "base (M = 5, N = 7) seed 0",
            "negative numbers in E0 and E1;",
            "or a reference that gives numbers there",
        ),
        (
            with_reference("(100 * input_data['E0'].cosh().cosh()).exp().softmax(-1).sum(-1)"),
            "base (M = 5, N = 7) seed 0",
            "large numbers in E0;",
            "smaller numbers for E0",
        ),
        (
            RAND | with_reference("(input_data['E0'] - 0.5).log().sum(-1)"),
            "base (M = 5, N = 7) seed 0",
            "the values of E0;",
            "other data for E0",
        ),
        (
            with_reference(
                "sum((x - x.mean(-1, True)).norm(dim=-1) / x.var(-1, False).sqrt() for x in input_data.values())"
            )
            | {"shapes": {"unit": {"M": 1, "N": 1}}},
            "unit (M = 1, N = 1) seed 0",
            "it comes from the sizes (M = 1, N = 1)",
            "the variance of one element",
        ),
        (
            with_reference(LOG) | {"margins": ["input_data['E0'].log().abs()"]},
            "base (M = 5, N = 7) seed 0",
            "negative numbers in E0;",
            "`data_gen: torch.rand`",
        ),
    ],
)
def test_a_nan_of_the_reference_is_traced_to_an_input_or_to_the_sizes(changes, trial, cause, remedy):
    found = audited(**changes)
    assert found.findings[0].check == "data"
    fault = the_fault_of(found, "data")
    assert fault.found.startswith(f"{trial} ")
    assert "data_transform[0]: NaN in the reference: " in fault.found
    assert cause in fault.found
    assert remedy in fault.remedy


def test_an_input_that_no_output_needs():
    found = audited(**with_reference("input_data['E0'].sum(-1)"))
    fault = the_fault_of(found, "inputs")
    assert fault.tried == "E1 drawn anew, everything else kept"
    assert "may ignore E1" in fault.found
    assert "use E1 in a data_transform" in fault.remedy


def test_an_input_that_is_always_the_same():
    inputs = yaml.safe_load(GOOD)["inputs"]
    inputs[1]["data_gen"] = "torch.ones"
    fault = the_fault_of(audited(inputs=inputs), "inputs")
    assert "the same numbers in all" in fault.found
    changed = audited(inputs=inputs, cases=["input_data['E1'].mul_(2)\nTrue"])
    assert changed.state is State.FINE  # a hand-made input changes it


def test_a_reference_that_is_constant():
    found = audited(**with_reference(f"{SIZE} + 3"))
    tried = {text for check, text in faults(found) if check == "answers"}
    assert tried == {"S0 = the mean of the expected value", "S0 = the expected value of another seed"}
    assert len([check for check, _ in faults(found) if check == "inputs"]) == 2
    zeros = {text for check, text in faults(audited(**with_reference(SIZE))) if check == "answers"}
    assert "S0 = zeros" in zeros


def test_a_reference_that_returns_its_input():
    outputs = [{"name": "S0", "dtype": "fp32", "dims": ["M", "N"], "data_transform": ["input_data['E1'].clone()"]}]
    found = audited(outputs=outputs, impl="return E1")
    assert ("answers", "S0 = E1") in faults(found)
    assert ("inputs", "E0 drawn anew, everything else kept") in faults(found)
    assert [finding.tried for finding in found.findings_of(State.NOTE)] == ["fn_relu", "fn_sum"]  # used by nothing


def test_two_outputs_that_cannot_be_told_apart():
    output = yaml.safe_load(GOOD)["outputs"][0]
    impl = yaml.safe_load(GOOD)["impl"].replace("return", "E4 =") + "return E4, E4\n"
    found = audited(outputs=[output, output | {"name": "S1"}], impl=impl)
    assert ("answers", "S0 = S1") in faults(found)


@pytest.mark.parametrize(
    "text",
    [f"{SIZE} + torch.rand(N_value, dtype=torch.float64)", "seen.append(1)\n" + f"{SIZE} + len(seen)"],
    ids=["random", "remembers"],
)
def test_a_reference_that_is_no_function_of_its_inputs(text):
    found = audited(
        **{"global": "seen = []\n"}, **with_reference(text.replace("torch.float64", "input_data['E0'].dtype"))
    )
    assert "other values for the same inputs (base (M = 5, N = 7) seed 0" in the_fault_of(found, "reference").found


def test_a_program_that_is_wrong():
    found = audited(impl=yaml.safe_load(GOOD)["impl"].replace("fn=fn_relu).apply(E0)", "fn=fn_relu).apply(E1)"))
    fault = the_fault_of(found, "program")
    assert fault.found.startswith("refused at AFFINE")
    assert [finding.check for finding in found.findings_of(State.UNCHECKED)] == ["functions"]


def test_a_function_that_breaks_its_declaration():
    found = audited(**with_fn(0, apply="return [input[0], input[0]]"))
    assert "fn_relu" in the_fault_of(found, "program").found


def test_without_a_program_it_says_what_could_not_be_checked():
    found = audited(impl=None)
    assert found.state is State.UNCHECKED
    assert [finding.check for finding in found.findings_of(State.UNCHECKED)] == ["program", "functions"]
    assert {finding.check for finding in found.findings_of(State.FINE)} == set(CHECKS) - {"program", "functions"}


def test_a_function_that_the_data_does_not_need():
    inputs = yaml.safe_load(GOOD)["inputs"]
    inputs[0]["data_gen"] = "torch.rand"  # never negative: nothing for relu to do
    fault = the_fault_of(audited(inputs=inputs), "functions")
    assert fault.tried == "fn_relu returns input[0]"
    assert "passes all" in fault.found


def with_two_fns(first, second, reference, data_gen="torch.rand"):
    """The good task where fn_clip changes E1 as fn_relu changes E0; their bodies are given."""
    plain = {"name": "A", "input_dtype": "fp32", "output_dtype": "fp32"}
    bodies = {"fn_relu": first, "fn_clip": second}
    return {
        "fns": [
            *(plain | {"func_name": name, "apply": f"return [{body}]"} for name, body in bodies.items()),
            yaml.safe_load(GOOD)["fns"][1],
        ],
        "impl": yaml.safe_load(GOOD)["impl"].replace("E2 =", "E1 = step.Map(fn=fn_clip).apply(E1)\nE2 ="),
        "inputs": [entry | {"data_gen": data_gen} for entry in yaml.safe_load(GOOD)["inputs"]],
        **with_reference(reference),
    }


def test_two_functions_that_may_stand_for_each_other():
    reference = "(input_data['E0'].relu() * input_data['E1'].clamp(0, 1)).sum(-1)"
    found = audited(**with_two_fns("torch.relu(input[0])", "input[0].clamp(0, 1)", reference))
    tried = {text for _, text in faults(found)}
    assert {"fn_relu does the work of fn_clip", "fn_clip does the work of fn_relu"} <= tried


@pytest.mark.parametrize(("first", "second"), [("torch.relu(input[0])", "input[0].clamp(0)"), ("input[0].sqrt()",) * 2])
def test_two_functions_that_do_the_same_may(first, second):
    """Roots of negative numbers, which the samples hold, are NaN in both."""
    reference = f"({first} * {second}).sum(-1)".replace("input[0]", "input_data['E0']", 1)
    reference = reference.replace("input[0]", "input_data['E1']")
    data_gen = "torch.rand" if "sqrt" in first else "torch.randn"
    assert audited(**with_two_fns(first, second, reference, data_gen)).state is State.FINE


def test_a_sum_that_may_forget_is_a_note():
    inputs = [entry | {"dims": [1, "N"]} for entry in yaml.safe_load(GOOD)["inputs"]]  # one element per sum
    found = audited(inputs=inputs)
    assert found.state is State.FINE
    assert [finding.tried for finding in found.findings_of(State.NOTE)] == ["fn_sum forgets its state"]


def test_a_tolerance_that_hides_mistakes():
    text = yaml.safe_load(GOOD)["outputs"][0]["data_transform"][0]
    assert "atol" in the_fault_of(audited(**with_reference(text, atol=0.5)), "tolerance").remedy


def test_a_type_that_rounds_coarsely_is_no_fault():
    bf16 = json.loads(json.dumps(yaml.safe_load(GOOD)).replace("fp32", "bf16"))
    assert audited(**bf16).state is State.FINE


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cases": ["input_data['E0'].zero_()\ninput_data['E0'].any()"]}, "data without the property"),
        ({"margins": ["input_data['E0'].abs() * 1e-9"]}, "a distance below"),
        (with_reference("input_data['E0']"), "shape"),
        (with_reference("input_data['E9'].sum(-1)"), "KeyError"),
        (with_reference("torch.log(-input_data['E0'].square().sum(-1))"), "NaN in the reference"),
    ],
    ids=["case", "margin", "shape", "name", "nan"],
)
def test_data_that_cannot_be_made_is_said_once(changes, words):
    found = audited(**changes)
    assert words in the_fault_of(found, "data").found
    assert {finding.check for finding in found.findings_of(State.UNCHECKED)} == set(CHECKS) - {"data"}


def test_one_number_is_its_own_mean_and_no_guess_at_itself():
    total = {"name": "S0", "dtype": "fp32", "dims": [1], "data_transform": ["input_data['E0'].sum().reshape(1)"]}
    inputs = yaml.safe_load(GOOD)["inputs"][:1]
    assert faults(audited(inputs=inputs, outputs=[total], impl=None)) == []


def test_a_task_that_fails_at_most_of_our_sizes():
    found = audited(
        **with_reference(
            "1 / 0 if N_value < 7 or M_value < 5 else (input_data['E0'].relu() * input_data['E1']).sum(-1)"
        )
    )
    fault = the_fault_of(found, "data")
    assert "code of the author that fails at 6 of 10" in fault.found
    assert "base and at least half of the sets" in fault.found
    assert {finding.check for finding in found.findings_of(State.UNCHECKED)} == set(CHECKS) - {"data"}


def test_a_global_that_fails():
    assert "ZeroDivisionError" in the_fault_of(audited(**{"global": "1 / 0"}), "data").found
