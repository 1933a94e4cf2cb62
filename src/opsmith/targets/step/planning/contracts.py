"""What a planner is told of STeP: how contracts are written, what a node's code may say, and one good split."""

from __future__ import annotations

EXAMPLE_TASK = """\
inputs:
  - {name: E0, dtype: fp32, dims: [D, N], data_gen: torch.randn}
fns:
  - {name: Sub, func_name: fn_sub, apply: "return [input[0] - input[1]]", input_dtype: [fp32, fp32], output_dtype: fp32}
  - {name: Max, func_name: fn_max, apply: "return [torch.maximum(state[0], input[0])]", init: [-inf], input_dtype: fp32, output_dtype: fp32}
  - {name: Exp, func_name: fn_exp, apply: "return [torch.exp(input[0])]", input_dtype: fp32, output_dtype: fp32}
  - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32, output_dtype: fp32}
  - {name: Div, func_name: fn_div, apply: "return [input[0] / input[1]]", input_dtype: [fp32, fp32], output_dtype: fp32}
outputs:
  - {name: S0, dtype: fp32, dims: [D, N], data_transform: ["torch.softmax(input_data['E0'], -1)"]}
"""  # noqa: E501 - a task as prompts show it

EXAMPLE_SPLIT = """\
nodes:
- name: powers
  takes: [E0]
  gives:
  - name: power
    dtype: fp32
    dims: [D, N]
  fns: [fn_max, fn_sub, fn_exp]
  code: |
    x = input_data['E0']
    power = torch.exp(x - x.amax(-1, keepdim=True))
- name: shares
  takes: [power]
  gives:
  - name: S0
    dtype: fp32
    dims: [D, N]
  fns: [fn_sum, fn_div]
  code: |
    S0 = input_data['power'] / input_data['power'].sum(-1, keepdim=True)
outputs: [S0]
"""

_RULES = """\
Types. A value that passes between nodes is a stream. `dtype` is the type of one element: fp32 (or fp16, bf16, fp64,
int32, int64, bool), Buffer(fp32, [D, K]) for a block of numbers, Multihot(fp32, E) for a row of 0 and 1. `dims` are the
stream's, INNERMOST FIRST, in symbols: a tensor of shape (N, D) is fp32 with dims [D, N], or Buffer(fp32, [D]) with dims
[N]. In code its shape is reversed(dims), then the reversed dims of the Buffer. Choose what the functions on both sides
take and make: if a function returns Buffer(fp32, [D]), give that. A stream has at least one dim; one number is [1].
A mean per row is fp32 [N] without the axis of 1; where the functions spread it over the row, it is Buffer(fp32, [D])
[N], and the code expands it. Only an output of the task may be a tuple, written "[fp32, int32]"; its code assigns a
tuple of tensors.

Code. PyTorch statements at the left margin. Names: torch, input_data, sizes such as D_value, what `global` defines.
Each name that the node gives is assigned; the tensor has exactly the shape and number type of its contract.

Refused. A node that only arranges its inputs anew; a node that one application of one function is; a node that is the
whole task; a value that nobody takes; code that computes something else than the task's reference.

What helps. A program uses a function twice with difficulty: let two statements that need the same function fall into
two nodes. Never cut through what one function does at once. One value over a border is better than two. Keep a routing
index, what it routes and the sum of the routed in one node.
"""


def describe_contracts() -> str:
    """The rules, and one task with a good split."""
    return f"{_RULES}\nA task:\n{EXAMPLE_TASK}\nA good split of it:\n{EXAMPLE_SPLIT}"
