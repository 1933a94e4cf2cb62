"""Points: the sizes at which a program is looked at, up to 2^20. No data is made for them.

They are drawn from a seed: each symbol alone at every small size and at some of all magnitudes, and all symbols
together (equal, multiples, odd, powers of two, of any magnitude). Numbers that a program computes with its sizes, and
what lies around them, are added: 65 in `K_value // 65` says where to look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from opsmith.problems.dims import Dim
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.targets.step.language.spec import TaskSpec

LARGEST = 2**20
DENSE = 2048  # every size up to it, for each symbol alone
MAGNITUDES = 192  # larger sizes of each symbol alone
TOGETHER = 1024  # points at which all symbols are drawn
MAX_TELLING = 400  # sizes that the numbers in a program give rise to

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Points:
    """Point i has the size `columns[j][i]` of symbol `names[j]`, and `fixed` for others; point 0 is the task's own."""

    names: tuple[str, ...]
    columns: tuple[Array, ...] = field(repr=False)
    fixed: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.columns[0])

    def sizes_at(self, number: int) -> dict[str, int]:
        """Every symbol's size at a point."""
        return {**self.fixed, **self.overrides_at(number)}

    def overrides_at(self, number: int) -> dict[str, int]:
        """The sizes of a point, less those that no point changes."""
        return {name: int(column[number]) for name, column in zip(self.names, self.columns, strict=True)}

    def sizes_of(self, name: str) -> Array:
        """A symbol's size at every point."""
        return self.columns[self.names.index(name)]

    def evaluate_dim(self, dim: Dim) -> Array:
        """The value of a dim at every point, rounded where it is not whole."""
        return self._divide_dim(dim)[0]

    def is_whole(self, dim: Dim) -> Array:
        """At which points a dim has a whole value."""
        _, remainder = self._divide_dim(dim)
        is_exact: Array = remainder == 0
        return is_exact

    def _divide_dim(self, dim: Dim) -> tuple[Array, Array]:
        """Quotient and remainder; in Python's numbers where a product could be too large for 64 bits."""
        bits = sum(abs(power) for _, power in dim.powers) * LARGEST.bit_length()
        bits += max(dim.coefficient.numerator, dim.coefficient.denominator).bit_length()
        kind: Any = np.int64 if bits < 63 else object
        top = np.full(len(self), dim.coefficient.numerator, dtype=kind)
        bottom = np.full(len(self), dim.coefficient.denominator, dtype=kind)
        for name, power in dim.powers:
            column = self.sizes_of(name).astype(kind) if name in self.names else self.fixed[name]
            if power > 0:
                top = top * column**power
            else:
                bottom = bottom * column**-power
        return top // bottom, top % bottom

    def of_problem(self, problem: Problem) -> Points:
        """Those at which every dim of the problem is whole."""
        is_exact = np.ones(len(self), dtype=bool)
        for dim in {dim for dim in problem.dims if is_quotient(dim)}:
            is_exact &= self.is_whole(dim)
        if is_exact.all():
            return self
        return Points(self.names, tuple(column[is_exact] for column in self.columns), self.fixed)

    def thin_out(self, limit: int) -> Points:
        """At most so many, evenly out of all; the task's own stays."""
        step = max(1, -(-len(self) // max(1, limit)))
        return Points(self.names, tuple(column[::step] for column in self.columns), self.fixed)

    @cached_property
    def trial_rank(self) -> Array:
        """For every point how early it is tried: the least above the task's own sizes, then the fewest that differ."""
        excess = sum(np.maximum(column - column[0], 0) for column in self.columns)
        differing = sum((column != column[0]).astype(np.int64) for column in self.columns)
        rank: Array = excess * (len(self.columns) + 1) + differing
        return rank


def is_quotient(dim: Dim) -> bool:
    """Whether a dim may have no whole value."""
    return dim.coefficient.denominator > 1 or any(power < 0 for _, power in dim.powers)


def find_changing_sizes(spec: TaskSpec) -> Mapping[str, int]:
    """The symbols whose size a shape set of the task changes, each with its largest size there.

    Other sizes are facts of the task: `E_value = 3` in `global`, where no set has another E, is the number of experts.
    """
    changing = spec.derived.get("changing sizes")
    if changing is None:
        largest: dict[str, int] = {}
        for sizes in choose_shape_sets(spec.problem).values():
            for name, size in sizes.items():
                largest[name] = max(size, largest.get(name, 0), spec.sizes.get(name, 0))
        changing = spec.derived["changing sizes"] = {name: largest[name] for name in sorted(largest)}
    result: Mapping[str, int] = changing
    return result


def own_point(spec: TaskSpec) -> Points:
    """The task's own sizes alone."""
    names = tuple(find_changing_sizes(spec))
    sizes = spec.problem.base_sizes
    own = tuple(np.array([sizes[name]], dtype=np.int64) for name in names)
    return Points(names, own, {name: size for name, size in spec.sizes.items() if name not in names})


def draw_points(spec: TaskSpec, seed: int, constants: Iterable[int] = ()) -> Points:
    """The task's own sizes and some thousand others, those at which a dim of the task is not whole left out.

    `constants` are numbers that the program combines with its sizes.
    """
    own, draw = own_point(spec), np.random.default_rng(seed)
    telling, sizes = _list_telling(constants), np.concatenate(own.columns)
    rows = np.concatenate([sizes[None], *_vary_alone(sizes, draw, telling), *_vary_together(sizes, draw, telling)])
    return Points(own.names, tuple(np.ascontiguousarray(rows.T)), own.fixed).of_problem(spec.problem)


def every_size(spec: TaskSpec, name: str, first: int, last: int) -> Points:
    """The task's own point, then a symbol at every size of a range, all others at their own."""
    own = own_point(spec)
    sizes = np.concatenate([own.sizes_of(name), np.arange(first, last + 1)])
    columns = (sizes if symbol == name else np.broadcast_to(own.sizes_of(symbol), sizes.shape) for symbol in own.names)
    return Points(own.names, tuple(columns), own.fixed).of_problem(spec.problem)


def _make_column(own: Array, column: int, sizes: Array, fill: int | None = None) -> Array:
    """One symbol at these sizes, all others at the task's own, or at `others`."""
    rows = np.tile(own if fill is None else np.full_like(own, fill), (len(sizes), 1))
    rows[:, column] = sizes
    return rows


def _vary_alone(own: Array, draw: np.random.Generator, telling: Array) -> Iterator[Array]:
    """Each symbol alone. Far sizes also with all others small, where a trial costs less."""
    for column in range(len(own)):
        far = np.concatenate([_any_magnitude(draw, MAGNITUDES), telling])
        yield _make_column(own, column, np.arange(1, DENSE + 1))
        for fill in (None, 3, 2, 1):
            yield _make_column(own, column, far, fill)


def _vary_together(own: Array, draw: np.random.Generator, telling: Array) -> Iterator[Array]:
    """All symbols at once."""
    width = len(own)
    yield _any_magnitude(draw, (TOGETHER, width))
    yield draw.integers(1, 41, (TOGETHER, width))
    yield np.repeat(np.concatenate([np.arange(1, 65), _any_magnitude(draw, 64)])[:, None], width, axis=1)  # equal
    yield 2 * draw.integers(0, 64, (TOGETHER // 4, width)) + 1
    yield 2 ** draw.integers(0, 11, (TOGETHER // 4, width))
    yield np.minimum(LARGEST, draw.integers(1, 33, (TOGETHER // 4, 1)) * draw.integers(1, 9, (TOGETHER // 4, width)))
    choices = np.concatenate([telling, np.arange(1, 18), own])
    yield draw.choice(choices, (TOGETHER, width))


def _any_magnitude(draw: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
    """Sizes from 1 to LARGEST, as many between 2 and 4 as between 2^18 and 2^19."""
    return np.exp2(draw.uniform(0, math.log2(LARGEST), shape)).astype(np.int64)


def _list_telling(constants: Iterable[int]) -> Array:
    """Where an expression over these numbers may change its value: at them, at their multiples, roots, sums ..."""
    numbers = sorted(set(constants))
    pairs = [(a, b) for a in numbers for b in numbers if a <= b][:MAX_TELLING]
    candidates = [c * factor for factor in (1, 2, 3, 4) for c in numbers]
    candidates += [root for c in numbers for root in (math.isqrt(c), round(c ** (1 / 3)))]
    candidates += [number for a, b in pairs for number in (a * b, a + b, b - a, b // a, -(-b // a))]
    near = dict.fromkeys(number + step for number in candidates for step in (0, -1, 1))
    sizes = [number for number in near if 1 <= number <= LARGEST]
    return np.array(sizes[:MAX_TELLING], dtype=np.int64)
