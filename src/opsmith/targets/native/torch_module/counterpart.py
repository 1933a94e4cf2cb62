"""A problem as a file of KernelBench's kind: `Model`, whose `forward` is the problem's reference, and its inputs.

For problems that come from no such file. Sizes are those of the largest shape set that is timed, or the base sizes.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping

from opsmith.errors import UsageError
from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import InputTensor, Problem
from opsmith.targets.native.torch_module.dims import write_shape

_HEAD = '''
"""{name} in PyTorch: the reference of its problem as `Model`. Made by `opsmith export`."""

import math

import torch
import torch.nn.functional as F
from torch import nn
'''.lstrip("\n")
_TAIL = """
class Model(nn.Module):
    def forward(self, {signature}):
        outputs = {function}({arguments})
        return {casts}


def get_inputs():
{inputs}    return [{tensors}]


def get_init_inputs():
    return []
"""
_DRAWS = {
    "torch.rand": "torch.rand({shape})",
    "torch.randn": "torch.randn({shape})",
    "torch.ones": "torch.ones({shape})",
    "torch.zeros": "torch.zeros({shape})",
    "binary": "torch.bernoulli(torch.full({shape}, 0.5))",
}
_OWN_DRAWS = {
    "uniform": "def uniform(low, high): return low + (high - low) * torch.rand({shape})",
    "randint": "def randint(low, high): return torch.randint(low, high, {shape})",
}


def write_counterpart(problem: Problem, name: str) -> str:
    """The file. Raises UsageError for a problem that a task file of another language states."""
    if not problem.reference:
        what = f"{name}: its problem is that of a task file, with a text of PyTorch for each output"
        raise UsageError(f"{what}; expected a problem file, whose reference is one function")
    sizes = choose_sizes(problem)
    numbers = {**sizes, **problem.scalars}
    function = next(
        node.name for node in reversed(ast.parse(problem.reference).body) if isinstance(node, ast.FunctionDef)
    )
    scalars = [f"{scalar}={scalar}" for scalar in problem.scalars]
    tensors = [tensor.name for tensor in problem.tensors]
    tail = _TAIL.format(
        signature=", ".join([*tensors, *scalars]),
        function=function,
        arguments=", ".join([*tensors, *problem.scalars]),
        casts=_write_casts(problem),
        inputs="".join(f"    {line}\n" for tensor in problem.tensors for line in _draw_tensor(tensor)),
        tensors=", ".join(tensors),
    )
    constants = "".join(f"{key} = {value!r}\n" for key, value in numbers.items())
    if any(type_.is_floating and type_.dtype != "fp32" for type_ in problem.types):
        constants += 'PRECISION = "none"  # for a harness: the tensors have the types that the kernel takes\n'
    texts = [textwrap.dedent(text) for text in (problem.global_code, problem.reference) if text]
    return "\n".join([_HEAD.format(name=name), constants, *texts, tail])


def choose_sizes(problem: Problem) -> Mapping[str, int]:
    """Those of the largest set that is timed."""
    sets = [{**problem.base_sizes, **sizes} for sizes in problem.bench.values()] or [problem.base_sizes]
    return max(sets, key=problem.count_numbers)


def _write_casts(problem: Problem) -> str:
    """The outputs in their declared types."""
    types = [f"torch.{TORCH_NAMES[type_.dtype]}" for output in problem.outputs for type_ in output.types]
    if len(types) == 1:
        return f"outputs.to({types[0]})"
    return f"tuple(tensor.to(dtype) for tensor, dtype in zip(outputs, ({', '.join(types)})))"


def _draw_tensor(tensor: InputTensor) -> Iterator[str]:
    """Lines that assign its data to its name."""
    shape = write_shape(tensor.type.shape, {symbol: symbol for dim in tensor.type.shape for symbol in dim.symbols})
    cast = f".to(torch.{TORCH_NAMES[tensor.type.dtype]})"
    if not tensor.expression:
        yield f"{tensor.name} = {_DRAWS[tensor.data_gen or 'torch.randn'].format(shape=shape)}{cast}"
        return
    yield from (text.format(shape=shape) for word, text in _OWN_DRAWS.items() if f"{word}(" in tensor.expression)
    *before, last = ast.parse(textwrap.dedent(tensor.expression)).body
    value = last.value if isinstance(last, ast.Expr | ast.Assign) else None
    assert value is not None, "the text of a problem file ends with a value"
    for node in before:
        yield from ast.unparse(node).splitlines()
    yield f"{tensor.name} = ({ast.unparse(value)}){cast}"
