"""Coercions: which types can a stream be brought to by shape primitives alone, and at what cost?

A best-first search over Bufferize, Streamify, Promote, Repeat, Flatten and Reshape, bounded by cost and by a few
rules that leave out what cannot help: a dim that no declared type mentions is not made, at most one Promote, Reshape
and block of Repeats. Covered: general `L` of Flatten, literal and quotient dims, dims that occur twice. RepeatRef is
never needed where sizes are static; dynamic dims do not get here.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from opsmith.targets.step.sampler.kinds import ONE, TAG, Dims, Fields, Kind, Kinds, Step, tags, untagged

COSTS = {"Bufferize": 0.5, "Streamify": 0.5, "Promote": 1.0, "Flatten": 0.75, "Repeat": 1.0, "Reshape": 1.5}
MAX_COST = 5.0
MAX_STEPS = 6
MAX_AXES = 5  # buffer and stream dims together, unless the start has as many
AGAIN = 1.5  # what it costs more to repeat by a dim that is an axis already


class Option(NamedTuple):
    """One way to a type: `tags` marks the dims that were inserted on the way."""

    cost: float
    tags: int
    path: tuple[Step, ...]


Table = dict[Fields, dict[Dims, tuple[Option, ...]]]


@dataclass(frozen=True)
class Relevant:
    """What a task's declared types mention: `dims` of any axis, `repeats` those that Repeat may insert."""

    dims: frozenset[int]
    repeats: tuple[int, ...]


class _Node(NamedTuple):
    cost: float
    order: int
    kind: Kind
    path: tuple[Step, ...]


def coercions(kinds: Kinds, start: Kind, relevant: Relevant, wanted: Collection[Fields]) -> Table:
    """Every type with fields in `wanted` that `start` can be brought to: {fields: {dims: options, cheapest first}}."""
    table: dict[Fields, dict[Dims, list[Option]]] = {}
    for node in _reachable(kinds, start, relevant):
        fields = tuple((elem, untagged(dims)) for elem, dims in node.kind.fields)
        if fields in wanted:
            options = table.setdefault(fields, {}).setdefault(untagged(node.kind.dims), [])
            mask = tags(node.kind.dims)
            if all(option.tags != mask for option in options):
                options.append(Option(node.cost, mask, node.path))
    return {fields: {dims: tuple(found) for dims, found in by.items()} for fields, by in table.items()}


def _reachable(kinds: Kinds, start: Kind, relevant: Relevant) -> Iterator[_Node]:
    """Kinds in order of cost, each once."""
    heap = [_Node(0.0, 0, start, ())]
    best: dict[Kind, float] = {start: 0.0}
    done: set[Kind] = set()
    order = 0
    limits = _ones(start), max(MAX_AXES, _axes(start) + 1)
    while heap:
        node = heapq.heappop(heap)
        if node.kind in done:
            continue
        done.add(node.kind)
        yield node
        if len(node.path) == MAX_STEPS:
            continue
        for step in _steps(kinds, node, relevant, *limits):
            cost = node.cost + _cost(node.kind, step)
            after = kinds.infer(node.kind, step)
            if after is not None and cost <= MAX_COST and cost < best.get(after, MAX_COST + 1):
                best[after] = cost
                order += 1
                heapq.heappush(heap, _Node(cost, order, after, (*node.path, step)))


def _cost(kind: Kind, step: Step) -> float:
    again = step[0] == "Repeat" and step[1] in (*kind.dims, *kind.fields[0][1])
    return COSTS[step[0]] + AGAIN * again


def _ones(kind: Kind) -> int:
    return sum(dim & ~TAG == ONE for dim in (*kind.dims, *kind.fields[0][1]))


def _axes(kind: Kind) -> int:
    return len(kind.dims) + len(kind.fields[0][1])


def _steps(kinds: Kinds, node: _Node, relevant: Relevant, ones: int, most: int) -> Iterator[Step]:
    kind, path = node.kind, node.path
    names = [step[0] for step in path]
    last = names[-1] if names else ""
    if last != "Bufferize":
        yield ("Streamify",)
        for a in range(1, len(kind.dims)):
            yield ("Bufferize", a)
    if _axes(kind) < most:
        if "Promote" not in names and _ones(kind) <= ones:
            for b in range(len(kind.dims) + 1):
                yield ("Promote", b)
        if "Repeat" not in names or (last == "Repeat" and names.count("Repeat") == 1):
            for n in relevant.repeats:
                yield ("Repeat", n)
        if "Reshape" not in names:
            yield from _splits(kinds, kind, relevant)
    yield from _merges(kinds, kind, relevant)


def _merges(kinds: Kinds, kind: Kind, relevant: Relevant) -> Iterator[Step]:
    """Flattens whose merged dim some declared type mentions."""
    for first in range(1, len(kind.dims)):
        for last in range(first, len(kind.dims)):
            if kinds.product(kind.dims[first - 1 : last + 1]) & ~TAG in relevant.dims:
                yield ("Flatten", first, last)


def _splits(kinds: Kinds, kind: Kind, relevant: Relevant) -> Iterator[Step]:
    """Reshapes by a declared dim, or into one."""
    for at, dim in enumerate(kind.dims):
        whole = dim & ~TAG
        for known in relevant.dims:
            if known in (ONE, whole):
                continue
            rest = kinds.quotient(whole, known)
            if rest is not None and _is_part(kinds, whole, known):
                yield ("Reshape", known, at)
                if rest not in relevant.dims:
                    yield ("Reshape", rest, at)


def _is_part(kinds: Kinds, whole: int, part: int) -> bool:
    """Whether `part` is a literal or divides `whole` as a monomial, not only at these sizes by chance."""
    dim = kinds.dim(whole) / kinds.dim(part)
    symbolic = all(power > 0 for _, power in dim.powers) and dim.coefficient.denominator == 1
    return symbolic or not kinds.dim(part).powers
