"""Which axes are one dim, and what dims has a result? Found by running the function at other sizes.

Equal example sizes share a name. Whether they must be equal, whether a dim has to be the size it has, or a multiple of
some number, is asked of the function: sizes are primes, so that a result's sizes say which dims they come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from opsmith.errors import UsageError
from opsmith.problems.problem import DEFAULT_SIZES
from opsmith.scaffold.arguments import Arguments
from opsmith.scaffold.probe import CallError, Result

SMALLEST = {"M": 1, "N": 1, "K": 1, "D": 2}  # the least that a built-in shape set gives them
LETTERS = "NMKHPQRTUVWABCFGLXYZIJOS"  # D is the last axis of the first tensor that has several
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
FACTORS = (2, 3, 4, 8)
MOST_ELEMENTS = 1 << 20  # of one tensor that is probed with
MOST_AXES = 5  # that share a name and are tried apart
PROBES = 3

Call = Callable[[Sequence[Sequence[int]]], Result]
Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class DraftDim:
    """A dim of the draft: a symbol, a multiple of one, or a number."""

    symbol: str  # "": a number
    size: int  # in the example
    factor: int = 1

    @property
    def text(self) -> str:
        return (
            str(self.size) if not self.symbol else self.symbol if self.factor == 1 else f"{self.factor}*{self.symbol}"
        )

    @property
    def example(self) -> int:
        """The symbol's size in the example."""
        return self.size // self.factor

    def size_at(self, sizes: Mapping[str, int]) -> int:
        return self.factor * sizes[self.symbol] if self.symbol else self.size


@dataclass
class Naming:
    """The dims of every tensor's axes, outermost first, and what its reader should know about them."""

    axes: list[list[DraftDim]]
    given: frozenset[str] = frozenset()  # symbols that the user named
    notes: list[str] = field(default_factory=list)

    @property
    def symbols(self) -> list[str]:
        return list(dict.fromkeys(dim.symbol for axes in self.axes for dim in axes if dim.symbol))

    @property
    def example(self) -> dict[str, int]:
        return {dim.symbol: dim.example for axes in self.axes for dim in axes if dim.symbol}

    def shapes_at(self, sizes: Mapping[str, int]) -> Shapes:
        return [tuple(dim.size_at(sizes) for dim in axes) for axes in self.axes]

    def replace_dim(self, old: DraftDim, new: DraftDim) -> None:
        self.axes = [[new if dim == old else dim for dim in axes] for axes in self.axes]


def name_axes(arguments: Arguments, reserved: frozenset[str] = frozenset()) -> Naming:
    """A dim for every axis: equal example sizes share one, 1 is a number. `taken`: names that are no symbols."""
    stated = frozenset(axis for tensor in arguments.tensors for axis in tensor.axes if isinstance(axis, str))
    if clash := sorted(stated & reserved):
        raise UsageError(f"dim {clash[0]}: the function's text has something of this name; try: another letter")
    free = [letter for letter in LETTERS if letter not in stated | reserved | {"D", "E"}]
    names: dict[int, str] = {}
    for tensor in arguments.tensors:
        for axis_number, axis in enumerate(tensor.axes):
            if isinstance(axis, int) and axis != 1 and axis not in names:
                is_row = axis_number == len(tensor.axes) - 1 > 0 and "D" not in {*stated, *names.values(), *reserved}
                names[axis] = "D" if is_row else _take_letter(free)
    sizes = _choose_sizes(stated, set(names))
    axes = [[_make_dim(axis, names, sizes) for axis in tensor.axes] for tensor in arguments.tensors]
    return Naming(axes, stated)


def _take_letter(free: list[str]) -> str:
    if not free:
        raise UsageError("shapes: given more different sizes than letters; expected at most 24 dims")
    return free.pop(0)


def _choose_sizes(stated: frozenset[str], used: set[int]) -> dict[str, int]:
    """Sizes of the dims that were given by name: the usual ones, else small ones that differ."""
    free = (size for size in (3, 11, 13, 6, 19, 23, 4, 29, 31, *range(37, 99)) if size not in used)
    return {name: DEFAULT_SIZES.get(name) or next(free) for name in sorted(stated)}


def _make_dim(axis: int | str, names: Mapping[int, str], sizes: Mapping[str, int]) -> DraftDim:
    if isinstance(axis, str):
        return DraftDim(axis, sizes[axis])
    return DraftDim("" if axis == 1 else names[axis], axis)


def settle_dims(naming: Naming, call: Call, arguments: Arguments) -> None:
    """Dims that must have their size become numbers, or multiples; axes that need not be equal are noted."""
    for settled in (_settle_pair, _settle_size, _settle_small):
        for dim in list(dict.fromkeys(dim for axes in naming.axes for dim in axes if dim.symbol)):
            settled(naming, call, dim)
    for symbol in naming.symbols:
        if symbol not in naming.given:
            _note_apart(naming, call, arguments, symbol)


def _settle_pair(naming: Naming, call: Call, dim: DraftDim) -> None:
    """Is it a multiple of another dim, as a rotary row is twice its cosines? Then neither varies alone."""
    others = [other for axes in naming.axes for other in axes if other.symbol not in {"", dim.symbol}]
    for other in dict.fromkeys(others):
        factor, rest = divmod(dim.size, other.size)
        if dim.symbol in naming.given or rest or factor < 2 or other.factor > 1:
            continue
        alone = ({symbol: prime} for symbol in (dim.symbol, other.symbol) for prime in PRIMES[:3])
        together = ({dim.symbol: factor * prime, other.symbol: prime} for prime in PRIMES[:3])
        if not _runs_at_any(naming, call, alone) and _runs_at_any(naming, call, together):
            naming.replace_dim(dim, DraftDim(other.symbol, dim.size, factor))
            naming.notes.append(
                f"{other.symbol}: the sizes {dim.size} and {other.size} go together, so the first is "
                f"{factor}*{other.symbol}; equal sizes share a dim: give sizes that differ where axes need not be equal"
            )
            return


def _runs_at_any(naming: Naming, call: Call, changes: Iterable[Mapping[str, int]]) -> bool:
    example = {**naming.example}
    return any(
        _can_call(call, naming.shapes_at({**example, **change}))
        for change in changes
        if any(example[symbol] != size for symbol, size in change.items())
    )


def _settle_size(naming: Naming, call: Call, dim: DraftDim) -> None:
    """Does the function take another size here, any or only multiples of something?"""
    example, primes = naming.example, [prime for prime in PRIMES if prime != dim.size][:3]
    if any(_can_call(call, naming.shapes_at({**example, dim.symbol: size})) for size in primes):
        return
    for factor in FACTORS:
        if dim.size % factor == 0 and all(
            _can_call(call, naming.shapes_at({**example, dim.symbol: factor * prime})) for prime in primes
        ):
            naming.replace_dim(dim, replace(dim, factor=factor))
            naming.notes.append(
                f"{dim.symbol}: the function takes multiples of {factor} only, so the dim is {factor}*{dim.symbol}"
            )
            return
    naming.replace_dim(dim, DraftDim("", dim.size))
    naming.notes.append(f"{dim.size}: the function takes this size only, so the dim is the number {dim.size}")


def _settle_small(naming: Naming, call: Call, dim: DraftDim) -> None:
    """Does it run where the built-in shape sets make this dim small? An index may point outside, for one."""
    small = SMALLEST.get(dim.symbol)
    if small is None or _can_call(call, naming.shapes_at({**naming.example, dim.symbol: small})):
        return
    naming.replace_dim(dim, DraftDim("", dim.size))
    naming.notes.append(
        f"{dim.size}: the function fails where the built-in shape sets make {dim.text} = {dim.factor * small}, so the "
        f"dim is the number {dim.size}"
    )


def _note_apart(naming: Naming, call: Call, arguments: Arguments, symbol: str) -> None:
    """Say so where axes share a dim and the function also takes them apart."""
    places = [(t, a) for t, axes in enumerate(naming.axes) for a, dim in enumerate(axes) if dim.symbol == symbol]
    if len(places) > MOST_AXES:
        naming.notes.append(f"{symbol}: {len(places)} axes share this dim; whether they must was not tried")
    if not 1 < len(places) <= MOST_AXES or len({naming.axes[t][a].factor for t, a in places}) > 1:
        return
    groups = next(
        (groups for groups in _list_partitions(len(places)) if _can_call(call, _set_apart(naming, places, groups))),
        None,
    )
    if groups is None or max(groups) == 0:
        return
    size = naming.axes[places[0][0]][places[0][1]].size
    where = ", ".join(f"{arguments.tensors[t].name} axis {a}" for t, a in places)
    names = [symbol, *(letter for letter in LETTERS if letter not in naming.symbols)]
    renamed = {place: names[group] for place, group in zip(places, groups, strict=True)}
    options = " ".join(
        f"--shape {arguments.tensors[t].name}=" + ",".join(renamed.get((t, a), dim.text) for a, dim in enumerate(axes))
        for t, axes in enumerate(naming.axes)
        if any((t, a) in renamed for a in range(len(axes)))
    )
    naming.notes.append(
        f"{symbol}: {where} are all {size} in the example and one dim here; the function also takes them apart: "
        f"{options}"
    )


def _list_partitions(count: int) -> list[tuple[int, ...]]:
    """Every way to put things into parts, as the part of each; most parts first.

    >>> _partitions(2)
    [(0, 1), (0, 0)]
    """
    partitions: list[tuple[int, ...]] = [()]
    for _ in range(count):
        partitions = [(*groups, group) for groups in partitions for group in range(max(groups, default=-1) + 2)]
    return sorted(partitions, key=lambda groups: -max(groups))


def _set_apart(naming: Naming, places: Sequence[tuple[int, int]], groups: Sequence[int]) -> Shapes:
    """Shapes at which each part has a size of its own; the others keep the example's."""
    used = set(naming.example.values())
    factor = naming.axes[places[0][0]][places[0][1]].factor
    sizes = [factor * prime for prime in PRIMES if prime not in used]
    shapes = [list(shape) for shape in naming.shapes_at(naming.example)]
    for (t, a), group in zip(places, groups, strict=True):
        shapes[t][a] = sizes[group]
    return [tuple(shape) for shape in shapes]


def output_dims(naming: Naming, call: Call) -> list[list[str]]:
    """The dims of every result, outermost first. Raises UsageError for a size that is no product or quotient."""
    example = call(naming.shapes_at(naming.example))
    samples = [
        (naming.example, example.shapes),
        *_draw_probes(naming, call, [len(shape) for shape in example.shapes]),
    ]
    if len(samples) == 1 and naming.symbols:
        naming.notes.append("the function ran at the example's sizes only: the dims of the outputs are a guess")
    return [
        [
            _find_expression(
                [(sizes, shapes[number][axis]) for sizes, shapes in samples], f"output {number}, axis {axis}"
            )
            for axis in range(len(shape))
        ]
        for number, shape in enumerate(example.shapes)
    ]


def _draw_probes(
    naming: Naming, call: Call, ranks: Sequence[int]
) -> Iterator[tuple[dict[str, int], tuple[tuple[int, ...], ...]]]:
    """Sizes that differ from each other, and the shapes of the results there."""
    symbols, count = naming.symbols, 0
    for factor, shift in ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (4, 0)):
        sizes = {name: factor * PRIMES[(number + shift) % len(PRIMES)] for number, name in enumerate(symbols)}
        if not symbols or count == PROBES:
            return
        try:
            shapes = _call_function(call, naming.shapes_at(sizes)).shapes
        except CallError:
            continue
        if [len(shape) for shape in shapes] == list(ranks):
            count += 1
            yield sizes, shapes


def _find_expression(samples: Sequence[tuple[Mapping[str, int], int]], where: str) -> str:
    """The first dim that has these sizes everywhere."""
    symbols = list(samples[0][0])
    for text, value in _list_expressions(symbols, samples[0][1]):
        if all(value(sizes) == size for sizes, size in samples):
            return text
    sizes = "; ".join(
        f"{size} at {', '.join(f'{name} = {at}' for name, at in sizes.items())}" for sizes, size in samples[:3]
    )
    raise UsageError(
        f"{where}: its size is {sizes}; expected a product or quotient of dims: a task file has no sums and "
        "differences; try: a function that pads, or leaves out the cut"
    )


def _list_expressions(
    symbols: Sequence[str], constant: int
) -> Iterator[tuple[str, Callable[[Mapping[str, int]], int | float]]]:
    """Dims by how plain they are: a symbol, a number, products, then multiples and parts of those."""
    products = [names for count in (1, 2, 3, 4) for names in combinations_with_replacement(symbols, count)]
    for names in products[: len(symbols)]:
        yield names[0], lambda sizes, names=names: sizes[names[0]]  # type: ignore[misc]
    yield str(constant), lambda _: constant
    for up, down in ((1, 1), *((k, 1) for k in range(2, 17)), *((1, k) for k in range(2, 17)), (3, 2), (3, 4)):
        for names in products:
            text = "*".join([*([str(up)] if up > 1 else []), *names]) + (f"/{down}" if down > 1 else "")
            yield (
                text,
                lambda sizes, names=names, up=up, down=down: (  # type: ignore[misc]
                    up * math.prod(sizes[name] for name in names) / down
                ),
            )


def _can_call(call: Call, shapes: Shapes) -> bool:
    try:
        _call_function(call, shapes)
    except CallError:
        return False
    return True


def _call_function(call: Call, shapes: Shapes) -> Result:
    if any(math.prod(shape) > MOST_ELEMENTS for shape in shapes):
        raise CallError("larger than what is probed with")
    return call(shapes)
