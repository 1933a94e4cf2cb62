"""One run of a program's text at many sizes at once, and at which of them every step would be the same.

A point is one size for every symbol. One point is in control: the program is interpreted at its sizes, as `check` does
it. Numbers that come from a size are kept for all points beside it (`Many`). Where such a number decides something (how
often a loop runs, which element is taken, an argument of a primitive), the points at which it decides otherwise no
longer agree. At those that agree to the end the program has the same graph.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opsmith.problems.dims import Dim, DimError
from opsmith.targets.step.hidden.bounded import WHOLE, Allowance, Bounded, Extent
from opsmith.targets.step.hidden.points import LARGEST, Array, Points, is_quotient
from opsmith.targets.step.language.build import AbstractStream
from opsmith.targets.step.language.check import Typing
from opsmith.targets.step.language.expressions import MAX_INT
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import Multihot, inner_dims
from opsmith.targets.step.language.values import Primitive, Sized

MAX_CONSTANTS = 64  # numbers that a program's sizes are divided by, or compared with, that are remembered


@dataclass(eq=False, slots=True)
class Many:
    """A number that came from a size. `value` is that of the point in control, `numbers` those of all points."""

    value: int | Sized
    numbers: Array
    alike: Array  # where it stands for a dim, the same one, or for none, as it does at the point in control

    @property
    def number(self) -> int:
        return self.value.value if isinstance(self.value, Sized) else self.value


@dataclass(frozen=True)
class ProgramTrace:
    """What a run showed: the program at the point in control, and the points at which it would be the same."""

    extent: Extent
    agrees: Array
    constants: frozenset[int]  # numbers that sizes were combined with
    operations: int  # on numbers of all points

    @property
    def graph(self) -> Graph | None:
        """That at the point in control."""
        return self.extent.report.graph


def trace_program(
    spec: TaskSpec, source: str, points: Points, control: int, allowance: Allowance = WHOLE
) -> ProgramTrace:
    """Interpret a program at one point, beside all others."""
    typing = _Typing(spec, points.sizes_at(control))
    run = typing.run = _Run(typing, points, control, allowance)
    extent = run.examine_program(source)
    run.agrees[control] = True
    return ProgramTrace(extent, run.agrees, frozenset(run.constants), run.operations)


class _Typing(Typing):
    """Types applications whose arguments may be `Many`."""

    run: _Run

    def configure_primitive(self, op: str, keywords: Mapping[str, Any], line: int) -> dict[str, Any] | None:
        settled = {key: self._settle_argument(key, value) for key, value in keywords.items()}
        return super().configure_primitive(op, settled, line)

    def apply_primitive(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        if primitive.config:
            self._decide_rule(primitive.op, primitive.config, argument)
        return super().apply_primitive(primitive, argument, node, line)

    def _decide_rule(self, op: str, config: Mapping[str, Any], argument: Any) -> None:
        """What a rule asks of sizes: a Reshape's dims must be multiples of S, an index as long as its Partition's N."""
        if op == "Reshape" and isinstance(argument, AbstractStream) and argument.type is not None:
            dims = argument.type.dims
            for dim in [dims[number] for number in config["L"] if 0 <= number < len(dims)]:
                self.run.keep_whole(dim / config["S"])
        if op == "Partition" and isinstance(argument, (tuple, list)) and len(argument) == 2:
            kind = argument[1].type if isinstance(argument[1], AbstractStream) else None
            if kind is not None and isinstance(kind.dtype, Multihot):
                self.run.keep_equal(kind.dtype.length, config["N"])

    def _settle_argument(self, key: str, value: Any) -> Any:
        if key == "L" and isinstance(value, (list, tuple)):
            return [self.run.settle_value(entry) for entry in value]
        if key in ("n", "S"):
            return self.run.settle_dim(value)
        return self.run.settle_value(self.run.size_of(value) if key == "N" else value)


class _Run(Bounded):
    """`agrees`: the points at which everything was decided as at the point in control."""

    def __init__(self, typing: _Typing, points: Points, control: int, allowance: Allowance) -> None:
        same = np.ones(len(points), dtype=bool)
        names = typing.list_names()
        for name in points.names:
            sized = names[f"{name}_value"]
            names = {**names, f"{name}_value": Many(sized, points.sizes_of(name), same)}
        super().__init__(names, typing, allowance)
        self.points, self.control = points, control
        self.agrees: Array = np.ones(len(points), dtype=bool)
        self.constants: set[int] = set()
        self._kinds: dict[int, tuple[Any, Array]] = {}  # of the lists that a number chose from, which stay alive
        self.operations = 0

    # -- where a number decides

    def settle_value(self, value: Any) -> Any:
        """A plain value; of a number, that of the point in control, with which others must agree."""
        if not isinstance(value, Many):
            return value
        self._keep_agreeing(value.numbers == value.number)
        return value.number

    def settle_dim(self, value: Any) -> Any:
        """As `settle_value`, where a dim is wanted: it is the same dim or, where it is none, the same number."""
        if isinstance(value, Many):
            self._keep_agreeing(
                value.alike if isinstance(value.value, Sized) else value.alike & (value.numbers == value.number)
            )
            value = value.value
        dim = value.dim if isinstance(value, Sized) else value
        if isinstance(dim, Dim):
            self.keep_whole(dim)
        return value

    def size_of(self, value: Any) -> Any:
        """The number of a bare symbol."""
        return self.names.get(f"{value}_value", value) if isinstance(value, Dim) else value

    def keep_whole(self, dim: Dim) -> None:
        """Points at which a dim has a whole value agree with each other."""
        if is_quotient(dim) and not dim.is_dynamic:
            is_whole = self.points.is_whole(dim)
            self._keep_agreeing(is_whole == is_whole[self.control])

    def keep_equal(self, dim: Dim, number: int) -> None:
        equal = self.points.evaluate_dim(dim) == number
        self._keep_agreeing(equal == equal[self.control])

    def _keep_agreeing(self, agreed: Array) -> None:
        self.agrees &= agreed
        self.operations += 1

    def as_int(self, value: Any) -> int:
        return super().as_int(self.settle_value(value))

    def as_index(self, owner: Sequence[Any], index: Any) -> int:
        """Points that take an equal element agree."""
        if not isinstance(index, Many) or not -len(owner) <= index.number < len(owner):
            return self.as_int(index)
        kinds = self._kinds_of(owner)
        inside = (index.numbers >= -len(owner)) & (index.numbers < len(owner))
        self._keep_agreeing(inside & (kinds[np.where(inside, index.numbers, 0)] == kinds[index.number]))
        return index.number

    def _kinds_of(self, owner: Sequence[Any]) -> Array:
        """A number per element, equal for equal elements. Lists only grow, so that their length tells them apart."""
        kinds = self._kinds.get(id(owner))
        if kinds is None or len(kinds[1]) != len(owner):
            keys = {key: number for number, key in enumerate(dict.fromkeys(map(_make_key, owner)))}
            kinds = self._kinds[id(owner)] = owner, np.array([keys[_make_key(element)] for element in owner])
        return kinds[1]

    def range_of(self, values: Sequence[Any], line: int) -> range:
        """Points that run over the same numbers agree."""
        values = [self.size_of(value) for value in values]
        if not any(isinstance(value, Many) for value in values):
            return super().range_of(values, line)
        plain = [value.number if isinstance(value, Many) else value for value in values]
        if plain[2:] == [0]:  # no range
            return super().range_of([self.settle_value(value) for value in values], line)
        own = super().range_of(plain, line)
        bounds = [_read_numbers(value) for value in values]
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else np.int64(1)
        up = np.where(step > 0, stop - start, start - stop)
        lengths = np.where(step == 0, -1, np.maximum(0, -(-up // np.maximum(np.abs(step), 1))))
        agreed = lengths == len(own)
        if len(own):
            agreed &= start == own.start
        if len(own) > 1:
            agreed &= step == own.step
        self._keep_agreeing(agreed)
        return own

    # -- arithmetic

    def negate_value(self, value: Any) -> Any:
        return self._compute_binary(ast.Sub(), 0, value)

    def _compute_binary(self, op: ast.operator, first: Any, second: Any) -> Any:
        if not isinstance(first, Many) and not isinstance(second, Many):
            return super()._compute_binary(op, first, second)
        if isinstance(first, Dim) or isinstance(second, Dim):
            return super()._compute_binary(op, self.settle_dim(first), self.settle_dim(second))
        self._remember_constants(first, second)
        numbers, exact, fine = self._compute_numbers(op, first, second)
        self._keep_agreeing(fine == fine[self.control])
        values = [operand.value if isinstance(operand, Many) else operand for operand in (first, second)]
        value = super()._compute_binary(op, *values)  # which raises where it would at the point in control
        return Many(value, numbers, self._compare_kind(op, first, second, value, numbers, exact))

    def _remember_constants(self, *operands: Any) -> None:
        for operand in operands:
            if type(operand) is int and 1 < abs(operand) <= LARGEST**2 and len(self.constants) < MAX_CONSTANTS:
                self.constants.add(abs(operand))

    def _compute_numbers(self, op: ast.operator, first: Any, second: Any) -> tuple[Array, Any, Array]:
        """At every point the number, whether a quotient is exact, and whether there is one at all."""
        if type(op) not in _ARITHMETIC:
            return self.agrees, np.True_, np.zeros_like(self.agrees)
        numbers, exact, fine = _ARITHMETIC[type(op)](_read_numbers(first), _read_numbers(second))
        fine = fine & (numbers <= MAX_INT) & (numbers >= -MAX_INT)
        return numbers, exact, fine & exact if isinstance(op, ast.Div) else fine

    def _compare_kind(self, op: ast.operator, left: Any, right: Any, value: Any, numbers: Array, exact: Any) -> Array:
        """Where the result is the same dim, or none, as at the point in control."""
        alike: Any = np.True_  # sums are plain numbers everywhere
        if not isinstance(op, (ast.Add, ast.Sub)):
            alike = _compare_kind(left) & _compare_kind(right)
            if _is_sized(left) or _is_sized(right):
                is_dim = (np.minimum(_read_numbers(left), _read_numbers(right)) >= 1) & (numbers >= 1) & exact
                alike = alike & (is_dim == isinstance(value, Sized))
        return np.broadcast_to(alike, self.agrees.shape)


def _make_key(element: Any) -> int:
    """Equal for elements that are the same."""
    return hash(("number", element)) if type(element) is int else id(element)


def _is_sized(value: Any) -> bool:
    return isinstance(value, Sized) or (isinstance(value, Many) and isinstance(value.value, Sized))


def _read_numbers(value: Any) -> Any:
    if isinstance(value, Many):
        return value.numbers
    return np.int64(value.value if isinstance(value, Sized) else value)


def _compare_kind(value: Any) -> Any:
    return value.alike if isinstance(value, Many) else np.True_


def _add_numbers(a: Any, b: Any) -> tuple[Array, Any, Any]:
    return a + b, np.True_, np.True_


def _subtract_numbers(a: Any, b: Any) -> tuple[Array, Any, Any]:
    return a - b, np.True_, np.True_


def _multiply_numbers(a: Any, b: Any) -> tuple[Array, Any, Any]:
    """Products that are far too large wrap around; they are told by their logarithms."""
    size = np.log2(np.maximum(np.abs(a), 1)) + np.log2(np.maximum(np.abs(b), 1))
    return a * b, np.True_, size < np.log2(MAX_INT) + 0.5


def _divide_numbers(a: Any, b: Any) -> tuple[Array, Any, Any]:
    divisor = np.where(b == 0, 1, b)
    quotient = a // divisor
    return quotient, quotient * divisor == a, b != 0


_ARITHMETIC: Mapping[type[ast.operator], Any] = {
    ast.Add: _add_numbers,
    ast.Sub: _subtract_numbers,
    ast.Mult: _multiply_numbers,
    ast.Div: _divide_numbers,
    ast.FloorDiv: _divide_numbers,
}


# -- quotients of a graph


def list_quotients(graph: Graph) -> set[Dim]:
    """The dims of a graph's streams that may have no whole value; without dynamic ones."""
    dims = {dim for kind in set(graph.types) for dim in (*kind.dims, *inner_dims(kind.dtype))}
    return {dim for dim in dims if is_quotient(dim) and not dim.is_dynamic}


def is_divisible(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Whether all of them have a whole value at these sizes. Where not, nobody expects the program to be one."""
    try:
        return all(dim.value(sizes) for dim in list_quotients(graph))
    except DimError:
        return False
