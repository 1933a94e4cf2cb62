"""How finely an input may be mixed of several draws: which of its entries must come from one draw together.

Entries that are drawn apart (`normal`, `uniform(0, 1)`, `torch.rand(M, N) < 0.7`) may come from any; rows of which each
is made of its own numbers (`torch.rand(M, N).argsort(-1)`) stay whole. Only texts are believed of which every word is
in a table here; of all others the array stays whole.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import InputTensor, Problem

_PLAIN = re.compile(r"(uniform|randint)\([^()]*\)")  # expressions whose entries know nothing of each other
_DRAWN = frozenset({"rand", "randn", "randint"})  # of torch: entries know nothing of each other
_ENTRYWISE = "abs ceil cos double exp float floor half int log long neg round sign sin sqrt square tan"
_ROWWISE = "argsort cumsum flip softmax sort"  # with -1 alone as their argument
_WHOLE = None


def measure_grain(problem: Problem, tensor: InputTensor, sizes: Mapping[str, int]) -> int:
    """Bytes that must come from one draw together; 0: the whole array."""
    axes = _count_axes(problem, tensor)
    if axes is _WHOLE:
        return 0
    shape = tensor.type.shape_at(sizes)
    return BYTES_BY_DTYPE[tensor.type.dtype] * math.prod(shape[len(shape) - axes :])


def is_mixable(problem: Problem) -> bool:
    """Whether any input can be mixed; else only whole draws can be told apart."""
    return any(_count_axes(problem, tensor) is not _WHOLE for tensor in problem.tensors)


def _count_axes(problem: Problem, tensor: InputTensor) -> int | None:
    """How many of the last axes hold entries that belong together; None: all."""
    if tensor.type.is_multihot:
        return _WHOLE
    if tensor.data_gen in {"torch.rand", "torch.randn"} or _PLAIN.fullmatch(tensor.expression):
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
        self._shape = [_normalise(str(dim)) for dim in tensor.type.shape]

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


def _normalise(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))
