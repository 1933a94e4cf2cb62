"""How an input may be drawn anew from a few draws, at the cost of a copy and with nothing in it that was there before.

An array is mixed of two draws as finely as its entries were drawn apart (`normal`, `torch.rand(M, N) < 0.7`), or by
rows of which each is made of its own numbers (`torch.rand(M, N).argsort(-1)`). That alone leaves whole rows that come
again, of which a program could remember the answers. So the low bits of continuous numbers, and all bits of numbers
that may be any, are drawn anew as well; of rows the order of their entries. Only texts are believed of which every word
is in a table here; of all others the array stays as it was drawn.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import InputTensor, Problem
from opsmith.timing.inputs import InputArray

_GENERATORS = frozenset({"torch.rand", "torch.randn"})
_UNIFORM = re.compile(r"uniform\([^()]*\)")
_WHOLE_NUMBERS = re.compile(r"randint\( *(-?\d+), *(-?\d+) *\)")
_PLAIN = re.compile(r"(uniform|randint)\([^()]*\)")  # expressions whose entries know nothing of each other
_DRAWN = frozenset({"rand", "randn", "randint"})  # of torch: entries know nothing of each other
_ENTRYWISE = "abs ceil cos double exp float floor half int log long neg round sign sin sqrt square tan"
_ROWWISE = "argsort softmax"  # with -1 alone as their argument: of entries in another order, the same in that order
_LOW_BITS = {"fp16": 0x003F, "bf16": 0x000F, "fp32": 0x0000FFFF, "fp64": 0x00001FFFFFFFFFFF}  # up to 1/16 of a number
_WHOLE = None


def list_inputs(problem: Problem, sizes: Mapping[str, int]) -> list[InputArray]:
    """Each input at the sizes of the dims, with what may be drawn anew of it."""
    return [measure_grain(problem, tensor, sizes) for tensor in problem.tensors]


def measure_grain(problem: Problem, tensor: InputTensor, sizes: Mapping[str, int]) -> InputArray:
    axes, shape = _count_axes(problem, tensor), tensor.type.shape_at(sizes)
    width = BYTES_BY_DTYPE[tensor.type.dtype]
    size = width * math.prod(shape)
    if axes is _WHOLE:
        return InputArray(size, width)
    if axes == 0:
        return InputArray(size, width, width, _choose_mask(tensor))
    return InputArray(size, width, width * shape[-1], columns=shape[-1])


def is_fresh(problem: Problem) -> bool:
    """Whether any input can be drawn anew; else only whole draws can be told apart."""
    return any(array.is_fresh for array in list_inputs(problem, problem.base_sizes))


def _choose_mask(tensor: InputTensor) -> int:
    if tensor.data_gen in _GENERATORS or _UNIFORM.fullmatch(tensor.expression):
        return _LOW_BITS.get(tensor.type.dtype, 0)
    bounds = _WHOLE_NUMBERS.fullmatch(tensor.expression)
    if bounds is None or tensor.type.is_floating:
        return 0
    low, high = map(int, bounds.groups())
    bits = 8 * BYTES_BY_DTYPE[tensor.type.dtype]
    is_power = low == 0 and high > 1 and high & (high - 1) == 0
    return 2**bits - 1 if (low, high) == (-(2 ** (bits - 1)), 2 ** (bits - 1)) else high - 1 if is_power else 0


def _count_axes(problem: Problem, tensor: InputTensor) -> int | None:
    """How many of the last axes hold entries that belong together; None: all."""
    if tensor.type.is_multihot:
        return _WHOLE
    if tensor.data_gen in _GENERATORS or _PLAIN.fullmatch(tensor.expression):
        return 0
    try:
        axes = _Reader(problem, tensor).read_axes(ast.parse(tensor.expression, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return _WHOLE
    return axes if 0 <= axes < len(tensor.type.shape) else _WHOLE


class _Reader:
    """Reads an expression; what it does not know is a ValueError."""

    def __init__(self, problem: Problem, tensor: InputTensor) -> None:
        self._numbers = problem.symbols | frozenset(problem.scalars)
        self._shape = [ast.unparse(ast.parse(str(dim), mode="eval")) for dim in tensor.type.shape]

    def read_axes(self, node: ast.expr) -> int:
        """How many last axes belong together; -1: it is a number, the same for all entries."""
        match node:
            case ast.Constant():
                return -1
            case ast.Name(id=name) if name in self._numbers:
                return -1
            case ast.UnaryOp(operand=operand):
                return self.read_axes(operand)
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return max(self.read_axes(left), self.read_axes(right))
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments, keywords=[]):
                return self._read_call(value, name, arguments)
        raise ValueError(ast.unparse(node))

    def _read_call(self, value: ast.expr, name: str, arguments: list[ast.expr]) -> int:
        if isinstance(value, ast.Name) and value.id == "torch":
            return self._read_function(name, arguments)
        axes = self.read_axes(value)
        if name in _ENTRYWISE.split() and not arguments:
            return axes
        if name in _ROWWISE.split() and [ast.unparse(argument) for argument in arguments] == ["-1"]:
            return max(axes, 1)
        raise ValueError(name)

    def _read_function(self, name: str, arguments: list[ast.expr]) -> int:
        if name in _ENTRYWISE.split() and len(arguments) == 1:
            return self.read_axes(arguments[0])
        if name in _DRAWN and self._has_shape(arguments[-1:] if name == "randint" else arguments):
            return 0
        raise ValueError(name)

    def _has_shape(self, arguments: list[ast.expr]) -> bool:
        """Whether every entry of the tensor is drawn: nothing is spread over an axis."""
        if len(arguments) == 1 and isinstance(arguments[0], ast.Tuple | ast.List):
            arguments = arguments[0].elts
        return [ast.unparse(argument) for argument in arguments] == self._shape
