"""How an input may be drawn anew from a few draws, at about the cost of a copy and with no row that was there before.

Entries that were drawn apart (`normal`, `torch.rand(M, N) < 0.7`) are taken from anywhere in two draws: of a normal
distribution as sums of both, otherwise from one or the other, and there the low bits of continuous numbers, and all
bits of numbers that may be any, are drawn anew as well. What follows from another input entry by entry
(`(1 - cosine.square()).sqrt()`) is taken from where that one is. Of rows whose entries belong together and have no
order of their own (`torch.rand(M, N).argsort(-1)`) the entries get another one. Only texts are believed of which every
word is in a table here; of all others the array stays as it was drawn, and `describe_repeats` says so.
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
    reader = _Reader(problem, tensor)
    axes, shape = _count_axes(reader, tensor), tensor.type.shape_at(sizes)
    width = BYTES_BY_DTYPE[tensor.type.dtype]
    size = width * math.prod(shape)
    if axes is _WHOLE:
        return InputArray(size, width)
    if axes == 0:
        sums = tensor.type.dtype if tensor.data_gen == "torch.randn" and tensor.type.dtype in _LOW_BITS else ""
        return InputArray(size, width, width, _choose_mask(tensor), sums=sums, leader=reader.leader)
    return InputArray(size, width, width * shape[-1], columns=shape[-1])


def describe_repeats(problem: Problem, draws: int) -> str:
    """Which inputs of timed calls come again, as a whole or because their entries have few values; "": none."""
    grains = [(tensor, measure_grain(problem, tensor, problem.base_sizes)) for tensor in problem.tensors]
    whole = [tensor.name for tensor, grain in grains if not grain.is_loose and not grain.columns]
    few = [
        tensor.name
        for tensor, grain in grains
        if grain.is_loose and not grain.mask and tensor.type.dtype not in _LOW_BITS
    ]
    if not is_fresh(problem):
        return f"{', '.join(whole + few)}: each call of a process has a draw of its own, of {draws}"
    said = [f"{name}: one of {draws} draws as a whole" for name in whole]
    return "; ".join([*said, *(f"{name}: few values, each entry from one of {draws} draws" for name in few)])


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


def _count_axes(reader: _Reader, tensor: InputTensor) -> int | None:
    """How many of the last axes hold entries that belong together; None: all."""
    if tensor.type.is_multihot:
        return _WHOLE
    if tensor.data_gen in _GENERATORS or _PLAIN.fullmatch(tensor.expression):
        return 0
    try:
        axes = reader.read_axes(ast.parse(tensor.expression, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return _WHOLE
    return axes if 0 <= axes < len(tensor.type.shape) else _WHOLE


class _Reader:
    """Reads an expression; what it does not know is a ValueError."""

    def __init__(self, problem: Problem, tensor: InputTensor) -> None:
        self.leader = -1  # the input that it follows from
        self._inputs = {each.name: (place, each) for place, each in enumerate(problem.tensors)}
        self._problem, self._dims = problem, tensor.type.shape
        self._numbers = problem.symbols | frozenset(problem.scalars)
        self._shape = [ast.unparse(ast.parse(str(dim), mode="eval")) for dim in tensor.type.shape]

    def read_axes(self, node: ast.expr) -> int:
        """How many last axes belong together; -1: it is a number, the same for all entries."""
        match node:
            case ast.Constant():
                return -1
            case ast.Name(id=name) if name in self._numbers:
                return -1
            case ast.Name(id=name) if name in self._inputs:
                return self._follow_input(name)
            case ast.UnaryOp(operand=operand):
                return self.read_axes(operand)
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return max(self.read_axes(left), self.read_axes(right))
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments, keywords=[]):
                return self._read_call(value, name, arguments)
        raise ValueError(ast.unparse(node))

    def _follow_input(self, name: str) -> int:
        """Another input of the same shape before this one, of which an entry is what it was in a draw."""
        place, leader = self._inputs[name]
        grain = (
            measure_grain(self._problem, leader, self._problem.base_sizes) if leader.type.shape == self._dims else None
        )
        if grain is None or not grain.is_loose or grain.mask or grain.sums or self.leader not in (-1, place):
            raise ValueError(name)
        self.leader = place if grain.leader < 0 else grain.leader
        return 0

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
