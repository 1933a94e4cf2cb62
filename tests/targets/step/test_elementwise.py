"""Only bodies that mean the same on batch-last tensors are proven; everything else goes another way."""

import pytest
import torch

from opsmith.targets.step.execution.bodies import compile_body
from opsmith.targets.step.execution.elementwise import prove_elementwise

NAMES = {
    "torch": torch,
    "D_value": 4,
    "eps": 1e-5,
    "gelu": torch.nn.GELU(),
    "in_place": torch.nn.ReLU(inplace=True),
    "softmax": torch.nn.Softmax(dim=-1),
    "table": torch.ones(4),
    "input_data": {"W": torch.ones(4, 3)},
}
RANK = 1  # of the one input and the one state


def proof(body, results=(RANK,)):
    return prove_elementwise(compile_body(body, "f").tree, NAMES, (RANK,), (RANK,), results)


@pytest.mark.parametrize(
    ("body", "results"),
    [
        ("'a docstring'\nx, = input\ny = x + eps\nreturn (y / D_value,)", (1,)),
        ("a, b = input[0], state[0]\nreturn [torch.where(a > b, a, -b) ** 2]", (1,)),
        ("return [gelu(input[-1]).clamp(0, 1).maximum(state[0]).to(torch.float32)]", (1,)),
        ("return [torch.max(input[0], state[0])]", (1,)),
        ("return [input[0][0] * input[0][1:], 3]", (1, 0)),
        ("return [torch.stack([input[0], state[0]])]", (2,)),
        ("return [torch.cat((input[0], state[0]), dim=0)[: D_value // 2]]", (1,)),
        ("n = input[0].shape[0]\nreturn [input[0] / n]", (1,)),
        ("return [input[0] * input_data['W']]", (2,)),
        ("return [torch.nn.functional.gelu(input[0], approximate='tanh')]", (1,)),
    ],
)
def test_proven(body, results):
    assert proof(body, results) is not None


@pytest.mark.parametrize(
    "body",
    [
        "return [input[0].max()]",
        "return [input[0].max(0)]",
        "return [torch.max(input[0], 0)]",
        "return [torch.min(input[0])]",
        "return [input[0].sum() + input[0]]",
        "return [softmax(input[0])]",
        "return [in_place(input[0])]",
        "return [torch.nn.functional.relu(input[0], True)]",
        "return [input[0].relu_()]",
        "return [input[0] + table]",
        "return [torch.where(input[0] > 0)]",
        "return [input[0] @ input_data['W']]",
        "return [0 < input[0] < 1]",
        "return [input[0] if input[0] > 0 else state[0]]",
        "return [input[0] and state[0]]",
        "return [torch.rand(4)]",
        "return [torch.zeros(4)]",
        "return [input[0][..., 0]]",
        "return [input[0][None]]",
        "return [input[0][True]]",
        "return [input[0][input[0] > 0]]",
        "return [input[0][:, 0]]",
        "return [input[0][0][0]]",
        "return [input[0] / input[0].shape[-1]]",
        "return [input[0] / input[0].shape[1]]",
        "return [input[0] / len(input[0])]",
        "return [torch.stack([input[0], state[0]], dim=1)[0]]",
        "return [torch.cat([input[0][0], state[0][0]])]",
        "return [input[0].flatten()]",
        "return [input[1]]",
        "return [input[0 if True else 1]]",
        "return [state]",
        "return input",
        "return [x]",
        "x = input[0]\nx += 1\nreturn [x]",
        "x = input[0]\nx[0] = 1\nreturn [x]",
        "input = [input[0]]\nreturn [input[0]]",
        "D_value = input[0]\nreturn [D_value]",
        "for i in range(2):\n  pass\nreturn [input[0]]",
        "return [*input]",
        "return [gelu(input[0], state[0])]",
        "return [torch.exp(input[0], out=state[0])]",
        "return [input[0].to(input[0])]",
        "return [input[0] * D]",
    ],
)
def test_not_proven(body):
    assert proof(body) is None


def test_a_result_of_another_rank_is_not_proven():
    assert proof("return [input[0]]", (2,)) is None
    assert proof("return [input[0], 1]", (1,)) is None
    assert proof("return [1]", (1,)) is None


def test_what_a_proof_asks_for():
    plain = proof("return [input[0] * 2]")
    assert (plain.structural, plain.reads_input_data) == (False, False)
    assert proof("return [input[0][1:]]").structural
    assert proof("return [input[0] * input_data['W']]", (2,)).reads_input_data
