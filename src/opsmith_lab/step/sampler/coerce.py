"""Coercions: the types that a stream can be brought to by shape primitives alone, and what each costs.

A best-first search over Bufferize, Streamify, Promote, Repeat, Flatten and Reshape, bounded by cost, by the number of
types looked at, and by a few rules that leave out what cannot help: a dim that no declared type mentions is not made,
at most one Promote, Reshape and block of Repeats. Covered: general `L` of Flatten, literal and quotient dims, dims that
occur twice. RepeatRef is never needed where sizes are static; dynamic dims do not get here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from opsmith_lab.step.sampler.kinds import ONE, TAG, Dims, Fields, Kinds, Step, StreamKind, remove_tags, tag_mask

COSTS = {"Bufferize": 0.5, "Streamify": 0.5, "Promote": 1.0, "Flatten": 0.75, "Repeat": 1.0, "Reshape": 1.5}
CHEAPEST = min(COSTS.values())
MAX_COST = 5.0
MAX_STEPS = 6
MAX_AXES = 5  # buffer and stream dims together, unless the start has as many
AGAIN = 1.5  # what it costs more to repeat by a dim that is an axis already
MAX_WAYS = 2  # to one type that are tried, the cheapest

Path = tuple[Step, ...]


class Option(NamedTuple):
    """One way to a type: `tags` marks the dims that were inserted on the way."""

    cost: float
    tags: int
    path: Path


Table = dict[Fields, dict[Dims, tuple[Option, ...]]]
# At least so much is still to be spent until a type is of use; inf: it never will be.
Ahead = Callable[[StreamKind], float]


@dataclass(frozen=True)
class Relevant:
    """What a task's declared types mention: `dims` of any axis, `repeats` those that Repeat may insert."""

    dims: frozenset[int]
    repeats: tuple[int, ...]


def find_coercions(
    kinds: Kinds, start: StreamKind, relevant: Relevant, goal_fields: Collection[Fields], limit: int
) -> Table:
    """Every type with fields in `goal_fields` that `start` can be brought to, as {fields: {dims: options}}.

    Options come cheapest first. At most `limit` types are looked at on the way, the cheapest.
    """
    inner = {_buffer_dims(fields) for fields in goal_fields if _list_elems(fields) == _list_elems(start.fields)}
    if not inner:
        return {}

    def bound_cost(kind: StreamKind) -> float:
        return 0.0 if _buffer_dims(kind.fields) in inner else CHEAPEST

    table: dict[Fields, dict[Dims, list[Option]]] = {}
    for kind, cost, path in _search_kinds(kinds, start, relevant, bound_cost, limit):
        if _buffer_dims(kind.fields) in inner:
            plain = _untag_kind(kind)
            _add_option(table.setdefault(plain.fields, {}).setdefault(plain.dims, []), kind, cost, path)
    return {fields: {dims: tuple(options) for dims, options in by.items()} for fields, by in table.items()}


def find_goal_coercions(
    kinds: Kinds, start: StreamKind, relevant: Relevant, distance: Distance, limit: int
) -> tuple[Option, ...]:
    """The first `MAX_WAYS` options that `find_coercions` has for the goal of `distance`, without the others."""
    if _list_elems(start.fields) != _list_elems(distance.goal.fields) or distance(start) > MAX_COST:
        return ()
    options: list[Option] = []
    for kind, cost, path in _search_kinds(kinds, start, relevant, distance, limit):
        if _untag_kind(kind) == distance.goal:
            _add_option(options, kind, cost, path)
            if len(options) == MAX_WAYS:
                break
    return tuple(options)


def _add_option(options: list[Option], kind: StreamKind, cost: float, path: Path) -> None:
    """One more way to a type, unless a cheaper one has data along the same dims."""
    mask = tag_mask(kind.dims)
    if all(option.tags != mask for option in options):
        options.append(Option(cost, mask, path))


def _list_elems(fields: Fields) -> tuple[int, ...]:
    return tuple(elem for elem, _ in fields)


def _buffer_dims(fields: Fields) -> tuple[Dims, ...]:
    return tuple([remove_tags(dims) for _, dims in fields])


def _untag_kind(kind: StreamKind) -> StreamKind:
    return StreamKind(tuple([(elem, remove_tags(dims)) for elem, dims in kind.fields]), remove_tags(kind.dims))


def _list_axes(kind: StreamKind) -> Dims:
    return kind.dims + kind.fields[0][1]


# -------------------------------------------------------------------- the search
def _search_kinds(
    kinds: Kinds, start: StreamKind, relevant: Relevant, ahead: Ahead, limit: int
) -> Iterator[tuple[StreamKind, float, Path]]:
    """Types in order of cost, each once, at most so many; without those from which nothing of use can be reached."""
    heap: list[tuple[float, int, StreamKind, Path]] = [(0.0, 0, start, ())]
    best: dict[StreamKind, float] = {start: 0.0}
    visited: set[StreamKind] = set()
    order = 0
    limits = _count_ones(start), max(MAX_AXES, len(_list_axes(start)) + 1)
    while heap and len(visited) < limit:
        spent, _, kind, path = heapq.heappop(heap)
        if kind in visited:
            continue
        visited.add(kind)
        yield kind, spent, path
        if len(path) == MAX_STEPS:
            continue
        for step in _next_steps(kinds, kind, path, relevant, MAX_COST - spent, *limits):
            cost = spent + _step_cost(kind, step)
            after = kinds.infer_kind(kind, step)
            if after is not None and cost < best.get(after, MAX_COST + 1) and cost + ahead(after) <= MAX_COST:
                best[after] = cost
                order += 1
                heapq.heappush(heap, (cost, order, after, (*path, step)))


def _step_cost(kind: StreamKind, step: Step) -> float:
    again = step[0] == "Repeat" and step[1] in _list_axes(kind)
    return COSTS[step[0]] + AGAIN * again


def _count_ones(kind: StreamKind) -> int:
    return remove_tags(_list_axes(kind)).count(ONE)


def _next_steps(
    kinds: Kinds, kind: StreamKind, path: Path, relevant: Relevant, room: float, ones: int, max_axes: int
) -> Iterator[Step]:
    """Primitives that may come next and cost at most `room`."""
    names = [step[0] for step in path]
    last = names[-1] if names else ""
    if last != "Bufferize" and room >= COSTS["Bufferize"]:
        yield ("Streamify",)
        for a in range(1, len(kind.dims)):
            yield ("Bufferize", a)
    if len(_list_axes(kind)) < max_axes:
        if "Promote" not in names and room >= COSTS["Promote"] and _count_ones(kind) <= ones:
            for b in range(len(kind.dims) + 1):
                yield ("Promote", b)
        if room >= COSTS["Repeat"] and ("Repeat" not in names or (last == "Repeat" and names.count("Repeat") == 1)):
            for n in relevant.repeats:
                yield ("Repeat", n)
        if "Reshape" not in names and room >= COSTS["Reshape"]:
            yield from _reshape_steps(kinds, kind, relevant)
    if room >= COSTS["Flatten"]:
        yield from _flatten_steps(kinds, kind, relevant)


def _flatten_steps(kinds: Kinds, kind: StreamKind, relevant: Relevant) -> Iterator[Step]:
    """Flattens whose merged dim some declared type mentions."""
    dims = remove_tags(kind.dims)
    for first in range(1, len(dims)):
        merged = dims[first - 1]
        for last in range(first, len(dims)):
            merged = kinds.multiply_dims(merged, dims[last])
            if merged in relevant.dims:
                yield ("Flatten", first, last)


def _reshape_steps(kinds: Kinds, kind: StreamKind, relevant: Relevant) -> Iterator[Step]:
    """Reshapes by a declared dim, or into one."""
    for axis, dim in enumerate(kind.dims):
        size = dim & ~TAG
        for factor in relevant.dims:
            if factor in (ONE, size):
                continue
            quotient = kinds.divide_exactly(size, factor)
            if quotient is not None and _is_factor(kinds, size, factor):
                yield ("Reshape", factor, axis)
                if quotient not in relevant.dims:
                    yield ("Reshape", quotient, axis)


def _is_factor(kinds: Kinds, size: int, factor: int) -> bool:
    """Whether `factor` is a literal or divides `size` as a monomial, not only at these sizes by chance."""
    dim = kinds.decode_dim(size) / kinds.decode_dim(factor)
    symbolic = all(power > 0 for _, power in dim.powers) and dim.coefficient.denominator == 1
    return symbolic or not kinds.decode_dim(factor).powers


# -------------------------------------------------------------------- the way to one type
class Distance:
    """A lower bound of the cost from any type to `goal`. Only Repeat changes the number of elements."""

    def __init__(self, kinds: Kinds, goal: StreamKind, relevant: Relevant) -> None:
        self.kinds, self.goal, self.axes = kinds, goal, _list_axes(goal)
        self.repeats = _count_repeats(kinds, kinds.count_elements(self.axes), relevant)
        self.bounds: dict[StreamKind, float] = {}

    def __call__(self, kind: StreamKind) -> float:
        bound = self.bounds.get(kind)
        if bound is None:
            plain = _untag_kind(kind)
            bound = self.bounds[kind] = 0.0 if plain == self.goal else self._bound_cost(_list_axes(plain))
        return bound

    def _bound_cost(self, axes: Dims) -> float:
        """From other axes than the goal's, or these in another place."""
        repeats = self.repeats.get(self.kinds.count_elements(axes))
        if repeats is None:
            return inf
        missing, merges = list(self.axes), False
        for axis in axes:
            if axis in missing:
                missing.remove(axis)
            else:
                merges = merges or axis != ONE
        cost = repeats * COSTS["Repeat"] + merges * COSTS["Flatten"] + (ONE in missing) * COSTS["Promote"]
        return max(cost, CHEAPEST)


def _count_repeats(kinds: Kinds, elements: int, relevant: Relevant) -> dict[int, int]:
    """How many Repeats, at most two, lead from a number of elements to this one."""
    needed = {elements: 0}
    for count in (1, 2):
        for before in list(needed):
            for n in relevant.repeats:
                needed.setdefault(kinds.divide_dims(before, n), count)
    return needed
