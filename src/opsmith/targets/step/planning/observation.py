"""What the statements of a reference compute: run at several sizes, for symbolic dims, number types and values.

It runs code of the task's author: in workers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.authored import blame_author
from opsmith.problems.bindings import Bindings
from opsmith.problems.dims import Dim, DimError, make_literal, make_symbol
from opsmith.problems.drawing import draw_data, widen_data
from opsmith.problems.dtypes import STREAM_DTYPES
from opsmith.problems.faults import TaskFault
from opsmith.problems.precision import default_dtype, default_of, dtype_of
from opsmith.problems.problem import Problem
from opsmith.problems.reference import clone_names
from opsmith.problems.shape_sets import choose_shape_sets, has_whole_dims
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.planning.statements import Reference, ReferenceStatement, UnreadableError
from opsmith.targets.step.planning.writing import write_size

MOST_RUNS = 4
_EXTRA: tuple[Mapping[str, int], ...] = (
    {"M": 13, "N": 11, "K": 17, "D": 6},
    {"M": 3, "N": 19, "K": 4, "D": 10},
    {"M": 6, "N": 5, "K": 11, "D": 14},
)
_DTYPES = {dtype_of(name): name for name in STREAM_DTYPES}


@dataclass(frozen=True)
class Run:
    """One run of all statements."""

    sizes: Mapping[str, int]
    names: dict[str, Any]  # everything that was assigned, with the task's tensors


@dataclass(frozen=True)
class ValueType:
    """A tensor's type: its number type, and its symbolic shape, outermost first."""

    scalar: str
    shape: tuple[Dim, ...]


@dataclass
class Observation:
    """What is known of the values of a reference."""

    spec: TaskSpec
    reference: Reference
    runs: Sequence[Run] = field(repr=False)

    @cached_property
    def types(self) -> Mapping[str, ValueType]:
        """Of every name that is a tensor at all sizes and whose dims are monomials of symbols."""
        names = [*self._first.names]
        types = ((name, self._find_type(name)) for name in names)
        return {name: type_ for name, type_ in types if type_ is not None}

    @property
    def _first(self) -> Run:
        return self.runs[0]

    def find_value(self, name: str) -> Any:
        """At the base sizes."""
        return self._first.names.get(name)

    def _find_type(self, name: str) -> ValueType | None:
        values = [run.names.get(name) for run in self.runs]
        tensors = [value for value in values if isinstance(value, Tensor)]
        if len(tensors) < len(values) or len({tensor.ndim for tensor in tensors}) > 1:
            return None
        scalar = _DTYPES.get(tensors[0].dtype)
        dims = [self.find_dim(axis) for axis in zip(*(tensor.shape for tensor in tensors), strict=True)]
        shape = tuple(dim for dim in dims if dim is not None)
        return None if scalar is None or len(shape) < len(dims) else ValueType(scalar, shape)

    def find_dim(self, lengths: Sequence[int]) -> Dim | None:
        """The simplest monomial that has these values."""
        for dim, values in self._monomials:
            if values == tuple(lengths):
                return dim
        return make_literal(lengths[0]) if len(set(lengths)) == 1 and lengths[0] >= 1 else None

    @cached_property
    def _monomials(self) -> list[tuple[Dim, tuple[int, ...]]]:
        """Dims that the task writes, then products and quotients of those, with their values."""
        declared = list(dict.fromkeys(self.spec.problem.dims))
        symbols = [make_symbol(name) for name in sorted(self.spec.problem.symbols)]
        simple = [dim for dim in dict.fromkeys([*symbols, *declared]) if dim.symbols]
        products = [first * second for first, second in combinations_with_replacement(simple, 2)]
        halves = [first / second for first in simple for second in (2, 4)]
        quotients = [first / second for first in simple for second in simple if first != second]
        doubles = [dim * factor for dim in simple for factor in (2, 3, 4)]
        triples = [first * second * third for first, second, third in combinations_with_replacement(symbols, 3)]
        ordered = dict.fromkeys([*simple, *products, *doubles, *halves, *quotients, *triples])
        rows = ((dim, self._evaluate_dim(dim)) for dim in ordered if dim.symbols)
        return [(dim, values) for dim, values in rows if values is not None]

    def _evaluate_dim(self, dim: Dim) -> tuple[int, ...] | None:
        try:
            return tuple(dim.value(run.sizes) for run in self.runs)
        except DimError:
            return None

    def write_constant(self, name: str) -> ast.expr | None:
        """A whole number, or a tuple of such, that depends on sizes alone, as an expression of sizes."""
        values: list[Any] = [run.names.get(name) for run in self.runs]
        if all(type(value) is int for value in values):
            return self._write_size(values)
        if not all(isinstance(value, tuple) and all(type(entry) is int for entry in value) for value in values):
            return None
        if len({len(value) for value in values}) > 1:
            return None
        entries = [self._write_size(row) for row in zip(*values, strict=True)]
        sizes = [entry for entry in entries if entry is not None]
        return ast.Tuple(sizes, ast.Load()) if len(sizes) == len(entries) else None

    def _write_size(self, values: Sequence[int]) -> ast.expr | None:
        if len(set(values)) == 1:
            return ast.Constant(values[0])
        dim = self.find_dim(values)
        if dim is None:
            return None
        return ast.parse(write_size(dim), mode="eval").body


class LiveReference:
    """Statements executed as they are read, on the data of one draw in float64."""

    def __init__(self, spec: TaskSpec) -> None:
        bindings = widen_data(spec.problem, draw_data(spec.problem, {}, 0), 0)
        self._names = clone_names(bindings)
        self._names |= dict(self._names["input_data"])

    def run_statement(self, tree: Sequence[ast.stmt]) -> None:
        with default_dtype(default_of(True)), torch.no_grad():
            try:
                exec(compile(ast.Module(list(tree), []), "<reference>", "exec"), self._names)
            except (Exception, SystemExit) as error:
                raise UnreadableError(f"{type(error).__name__}: {error}") from None

    def look_up(self, text: str) -> Any:
        """The value of an expression, None where it has none."""
        with default_dtype(default_of(True)), torch.no_grad():
            try:
                return eval(text, self._names)
            except (Exception, SystemExit):
                return None

    def equal_values(self, first: ast.expr, second: ast.expr) -> bool:
        """Whether two expressions are tensors of the same values, up to rounding."""
        one, two = (self.look_up(ast.unparse(ast.fix_missing_locations(node))) for node in (first, second))
        if not isinstance(one, Tensor) or not isinstance(two, Tensor) or one.shape != two.shape:
            return False
        if not one.is_floating_point():
            return torch.equal(one, two)
        return one.dtype == two.dtype and torch.allclose(one, two, rtol=1e-7, atol=1e-9, equal_nan=True)


def observe_reference(spec: TaskSpec, reference: Reference) -> Observation:
    """The reference at the base sizes, and at others where it runs. Raises TaskFault where it does not at the base."""
    runs = [run_statements(spec, reference.statements, {})]
    for sizes in _list_sizes(spec.problem):
        if len(runs) >= MOST_RUNS:
            break
        try:
            runs.append(run_statements(spec, reference.statements, sizes))
        except TaskFault:
            continue
    return Observation(spec, reference, runs)


def _list_sizes(problem: Problem) -> Iterator[dict[str, int]]:
    """Other sizes, each symbol's its own. What `global` alone sets stays: code may rely on it."""
    base = problem.base_sizes
    for chosen in (*problem.shapes.values(), *_EXTRA, *choose_shape_sets(problem).values()):
        sizes = {name: size for name, size in chosen.items() if name in problem.symbols}
        if sizes and has_whole_dims(problem, {**base, **sizes}):
            yield sizes


def run_statements(
    spec: TaskSpec,
    statements: Sequence[ReferenceStatement],
    overrides: Mapping[str, int],
    *,
    seed: int = 0,
    wide: bool = False,
) -> Run:
    """All values of one draw. Raises TaskFault."""
    bindings = draw_data(spec.problem, overrides, seed)
    if wide:
        bindings = widen_data(spec.problem, bindings, seed)
    return Run(bindings.sizes, execute_statements(bindings, statements))


def execute_statements(bindings: Bindings, statements: Sequence[ReferenceStatement]) -> dict[str, Any]:
    """The task's tensors and what the statements assign. Raises TaskFault."""
    names = clone_names(bindings)
    names |= dict(names["input_data"])
    with default_dtype(default_of(bindings.wide)), torch.no_grad():
        for statement in statements:
            code = compile(ast.Module(list(statement.tree), []), "<reference>", "exec")
            try:
                exec(code, names)
            except (Exception, SystemExit) as error:
                raise blame_author("TASK", "reference", statement.text, "<reference>", error) from error
    tensors = set(bindings.input_data)
    assigned = {name for statement in statements for name in statement.targets}
    return {name: names[name] for name in (*tensors, *assigned) if name in names}
