"""The size of each symbol of a task, given the shapes of its tensors.

Solved from the dims that have one unknown symbol, until no more are: shape (12, 4) for dims `[D/2, N]`, which are
innermost first, gives D = 8 and N = 12. A symbol that no shape determines (M of a single axis M*N, say) is free: a
caller may give it, and it is the task's own size otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.spec import TaskSpec, TensorSpec
from opsmith.targets.step.language.types import array_shape, fields_of


def axes_of(entry: TensorSpec) -> tuple[Dim, ...]:
    """The dims of a tensor's axes, outermost first."""
    return array_shape(fields_of(entry.dtype)[0], entry.dims)


def free_symbols(task: TaskSpec) -> list[str]:
    """The symbols that shapes do not determine; of several of one axis, the first by name is free."""
    dims = [dim for entry in _list_tensors(task) for dim in axes_of(entry)]
    determined: set[str] = set()
    free: list[str] = []
    while unknown := [dim.symbols - determined for dim in dims if not dim.symbols <= determined]:
        smallest = min(unknown, key=len)
        free += [min(smallest)] if len(smallest) > 1 else []
        determined.add(min(smallest))
    return sorted({*free, *(task.problem.symbols - determined)})


def sizes_of(task: TaskSpec, shapes: Mapping[str, Sequence[int]], chosen: Mapping[str, int]) -> dict[str, int]:
    """Symbol -> size: those given, and those that shapes (by tensor) determine; the first axis of a symbol decides."""
    axes = [(dim, length) for entry in _list_tensors(task) for dim, length in _pair_axes(entry, shapes)]
    sizes = dict(chosen)
    while True:
        solution = next(_solve_axes(axes, sizes), None)
        if solution is None:
            return sizes
        sizes |= solution


def _list_tensors(task: TaskSpec) -> tuple[TensorSpec, ...]:
    return (*task.inputs, *task.parameters)


def _pair_axes(entry: TensorSpec, shapes: Mapping[str, Sequence[int]]) -> Iterator[tuple[Dim, int]]:
    """Nothing where the number of axes is wrong: that is for others to say."""
    dims, shape = axes_of(entry), shapes[entry.name]
    yield from zip(dims, shape, strict=True) if len(dims) == len(shape) else ()


def _solve_axes(axes: Sequence[tuple[Dim, int]], sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every symbol that is the only unknown one of an axis, with its size, if that is whole."""
    for dim, length in axes:
        unknown = [(name, power) for name, power in dim.powers if name not in sizes]
        if len(unknown) != 1:
            continue
        (name, power), value = unknown[0], Fraction(length) / dim.coefficient
        for symbol, exponent in dim.powers:
            value = value / Fraction(sizes[symbol]) ** exponent if symbol != name else value
        size = _whole_root(value if power > 0 else 1 / value, abs(power))
        if size is not None:
            yield {name: size}


def _whole_root(value: Fraction, degree: int) -> int | None:
    """The whole number whose power this is."""
    root = round(float(value) ** (1 / degree))
    return root if root >= 1 and root**degree == value else None
