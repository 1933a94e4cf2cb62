"""Code that computes with less than float64 is found out by what it asks torch for, and only where it shows."""

import pytest
import torch
from authors import batched, function, output, stream, task

from opsmith.problems.drawing import draw_data, widen_data
from opsmith.targets.step.execution.fns import BatchedFn
from opsmith.targets.step.execution.trials import make_trials

ROW = "Buffer(fp32, [D])"
NARROW = {
    "a range divided in fp32": "return [input[0] * (torch.arange(D_value, dtype=torch.float32) / 3)]",
    "a power in fp32": "return [input[0] * 10000 ** (torch.arange(D_value).float() / D_value)]",
    "a rounded constant": "return [input[0] * torch.tensor(0.1, dtype=torch.float32)]",
    "a rounded list": "return [input[0] * torch.tensor([0.1] * D_value, dtype=torch.float32)]",
    "an input cast and cast back": "return [input[0].float().to(input[0].dtype)]",
    "a method with a dtype": "return [input[0].to(dtype=torch.bfloat16).to(input[0].dtype)]",
    "a cast by type": "return [input[0].type(torch.float32).type_as(input[0])]",
    "a cast by the name of a type": "return [input[0].type('torch.FloatTensor').to(input[0].dtype)]",
    "a softmax in fp32": "return [torch.softmax(input[0], 0, dtype=torch.float32)]",
    "a functional softmax": "return [torch.nn.functional.softmax(input[0], dim=0, dtype=torch.float32).to(input[0].dtype)]",
    "a sum in fp32": "return [input[0] / (input[0] * input[0]).sum(dtype=torch.float32)]",
    "complex numbers": "return [torch.polar(torch.ones(D_value).float(), input[0].float()).real.to(input[0].dtype)]",
    "a legacy constructor": "return [input[0] * torch.FloatTensor([0.1, 0.2] * (D_value // 2))]",
    "numbers of NumPy": "import numpy as np\nreturn [input[0] * torch.from_numpy(np.full(D_value, 0.1, dtype=np.float32))]",
    "another default": (
        "torch.set_default_dtype(torch.float32)\nw = torch.arange(D_value) / 3\n"
        "torch.set_default_dtype(torch.float64)\nreturn [input[0] * w]"
    ),
    "a helper": "return [half_angles(input[0])]",
    "bits of fp32, which no other type has": (
        "w = (input[0].float().view(torch.int32) >> 1).to(input[0].dtype)\nreturn [input[0] + w * 1e-9]"
    ),
}
FULL = {
    "nothing narrow": "return [input[0] * 0.1]",
    "a mask": "return [input[0] * (input[0] > 0).float()]",
    "a short constant": "return [input[0] * torch.tensor(0.5, dtype=torch.float32)]",
    "whole numbers": "return [input[0] * torch.arange(D_value, dtype=torch.float32)]",
    "a count": "return [input[0] / torch.ones(D_value, dtype=torch.float32).sum()]",
    "zeros to write into": (
        "w = torch.zeros(D_value, dtype=torch.float32)\nreturn [torch.cat([w[:1], input[0][1:]]).to(input[0].dtype)]"
    ),
    "a choice": "return [input[0] * torch.nn.functional.one_hot(input[0].float().argmax(), D_value)]",
    "short numbers of NumPy": "import numpy as np\nreturn [input[0] * torch.from_numpy(np.arange(D_value, dtype=np.float32))]",
    "numbers of global, which are data": "return [input[0] * shared]",
    "the dtype of the input": "return [input[0] * torch.arange(D_value, dtype=input[0].dtype) / 3]",
    "numbers that do not matter": "unused = torch.rand(3, dtype=torch.float32).exp().sum()\nreturn [input[0] + 0]",
}
GLOBAL = """
def half_angles(x):
    return x * (torch.arange(len(x), dtype=torch.float32) / 7).cos()
shared = torch.arange(1, 17, dtype=torch.float32) / 3
"""


def narrows(body: str) -> bool:
    return batched(function(ROW, ROW, body), wide=True, global_code=GLOBAL).narrows


@pytest.mark.parametrize("body", NARROW.values(), ids=NARROW)
def test_a_function_that_computes_with_less_is_found_out(body):
    assert narrows(body)
    assert not batched(function(ROW, ROW, body), global_code=GLOBAL).narrows  # where the declared precision is judged


@pytest.mark.parametrize("body", FULL.values(), ids=FULL)
def test_narrow_numbers_that_lose_nothing_are_fine(body):
    assert not narrows(body)


def test_it_is_decided_at_each_size():
    """The root of 16 is whole, that of 6 is not."""
    fn = function(ROW, ROW, "return [input[0] * torch.tensor(D_value, dtype=torch.float32).sqrt()]")
    plans = {}
    spec = task(fns=(fn,))
    at = {}
    for size in (16, 6, 4):
        bound = widen_data(spec.problem, draw_data(spec.problem, {"D": size}, 1), 1)
        at[size] = BatchedFn(fn, bound.sizes, bound.namespace, True, plans).narrows
    assert at == {16: False, 6: True, 4: False}


@pytest.mark.parametrize(
    ("text", "narrow"),
    [
        ("input_data['E0'] / 3", False),
        ("input_data['E0'] * (torch.arange(D_value).float() / 3)", True),
        ("(input_data['E0'] / 3).float()", True),
        ("input_data['E0'] * (input_data['E0'] > 0).float()", False),
        ("input_data['E0'].float() * 2", False),  # data of the declared type is exact in it
    ],
)
def test_a_reference_is_judged_on_its_own_data(text, narrow):
    spec = task(outputs=(output("S0", "fp32 [D, N]", text),))
    case = make_trials(spec)[0].data
    assert [bool(one.narrowed_outputs) for one in case.draws] == [narrow] * 5
    ((limit,),) = case.limits
    relative = limit.allowed / limit.expected.abs().max()
    assert bool((relative > 1e-6).all()) is narrow


def test_only_the_output_whose_reference_narrows_gets_a_wider_limit():
    texts = ("input_data['E0'] / 3", "input_data['E0'] * torch.tensor(0.1, dtype=torch.float32)")
    spec = task(outputs=tuple(output(f"S{at}", "fp32 [D, N]", text) for at, text in enumerate(texts)))
    (full,), (narrow,) = make_trials(spec)[0].data.limits
    assert float(full.allowed.max()) < 1e-6 < float(narrow.allowed.min())


def test_an_own_tolerance_and_decisions_stay_as_they_are():
    loose = output("S0", "fp32 [D, N]", "(input_data['E0'] / 3).float()", rtol=0.0, atol=0.5)
    decision = output("S1", "fp32 [D, N]", "((input_data['E0'] / 3).float() > 0).float()")
    (own,), (exact,) = make_trials(task(outputs=(loose, decision)))[0].data.limits
    assert torch.equal(own.allowed, torch.full_like(own.expected, 0.5))
    assert exact.allowed is None


def test_nothing_is_asked_twice_of_code_that_asks_for_no_narrow_type(monkeypatch):
    spec = task(inputs=(stream("E0", "fp32 [D, N]"),))
    suite = make_trials(spec)
    assert suite[0].data.limits
    assert not suite.data.asks_narrow
    monkeypatch.setattr("opsmith.problems.draws.run_raised", None)
    assert suite[2].data.limits
    assert suite[0].data.draws[1].narrowed_outputs == frozenset()
