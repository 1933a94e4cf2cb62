"""Where does each box of a layered graph stand? Sugiyama's method on sizes alone: ranks, order, coordinates.

A box stands below all boxes that it depends on (longest path); an edge becomes a chain of points, one per rank that it
crosses, the first of which is as large as the edge's label. So nothing that is placed can overlap: within a rank all
parts keep their distance, and ranks lie below one another. What it is a drawing of is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP = 14.0  # between two parts of a rank
DROP = 16.0  # between two ranks
_SWEEPS = 8

Size = tuple[float, float]


@dataclass(frozen=True)
class Placed:
    """The middle of a part, its size, and the height of its rank: between its rank's edges nothing else is near it."""

    x: float
    y: float
    width: float
    height: float
    rank_height: float

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Layout:
    boxes: Mapping[str, Placed]
    edges: Sequence[tuple[Placed, ...]]  # by edge: the parts that it passes, its label first
    width: float
    height: float


@dataclass(eq=False)
class _Part:
    """A box, or the place where an edge crosses a rank."""

    rank: int
    size: Size
    x: float = 0.0
    above: list[_Part] = field(default_factory=list)
    below: list[_Part] = field(default_factory=list)


def layered(boxes: Mapping[str, Size], edges: Sequence[tuple[str, str, Size]]) -> Layout:
    """Boxes by name in an order in which every edge (source, target, size of its label) leads to a later one."""
    rank = _ranks(list(boxes), [(source, target) for source, target, _ in edges])
    parts = {name: _Part(2 * rank[name], size) for name, size in boxes.items()}
    chains = [_chain(parts[source], parts[target], size) for source, target, size in edges]
    ranks = _by_rank([*parts.values(), *(part for chain in chains for part in chain)])
    _order(ranks)
    _spread(ranks)
    return _placed(parts, chains, ranks)


def _ranks(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Longest paths from the top; what nothing leads to then stands right above what it leads to."""
    rank = dict.fromkeys(names, 0)
    place = {name: at for at, name in enumerate(names)}
    for source, target in sorted(edges, key=lambda edge: place[edge[0]]):
        rank[target] = max(rank[target], rank[source] + 1)
    targets = {target for _, target in edges}
    for name in names:
        below = [rank[target] for source, target in edges if source == name]
        if name not in targets and below:
            rank[name] = min(below) - 1
    return rank


def _chain(source: _Part, target: _Part, label: Size) -> list[_Part]:
    """The parts between two boxes, linked from the one to the other."""
    chain = [_Part(rank, (0.0, 0.0)) for rank in range(source.rank + 1, target.rank)]
    chain[0].size = label
    for upper, lower in zip([source, *chain], [*chain, target], strict=True):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain


def _by_rank(parts: Sequence[_Part]) -> list[list[_Part]]:
    ranks: list[list[_Part]] = [[] for _ in range(max((part.rank for part in parts), default=-1) + 1)]
    for part in parts:
        ranks[part.rank].append(part)
    return ranks


def _order(ranks: list[list[_Part]]) -> None:
    """Sort each rank by the barycentre of its neighbours, down and up, and keep the order with the fewest crossings."""
    best, fewest = [list(rank) for rank in ranks], _crossings(ranks)
    for sweep in range(_SWEEPS):
        for fixed, rank in pairwise(ranks if sweep % 2 == 0 else ranks[::-1]):
            _sort(rank, fixed, down=sweep % 2 == 0)
        crossings = _crossings(ranks)
        if crossings < fewest:
            best, fewest = [list(rank) for rank in ranks], crossings
    ranks[:] = best


def _sort(rank: list[_Part], fixed: Sequence[_Part], down: bool) -> None:
    """Sort by where the neighbours stand in the rank that is not moved; parts without any stay where they are."""
    at = {part: float(place) for place, part in enumerate(fixed)}
    keys = {}
    for place, part in enumerate(rank):
        near = part.above if down else part.below
        keys[part] = sum(at[other] for other in near) / len(near) if near else float(place)
    rank.sort(key=lambda part: keys[part])


def _crossings(ranks: list[list[_Part]]) -> int:
    count = 0
    for upper, lower in pairwise(ranks):
        at = {part: place for place, part in enumerate(lower)}
        ends = [at[other] for part in upper for other in sorted(part.below, key=lambda other: at[other])]
        count += sum(one > other for place, one in enumerate(ends) for other in ends[place + 1 :])
    return count


def _spread(ranks: list[list[_Part]]) -> None:
    """Coordinates: each part as near to the mean of its neighbours as the order and the distances allow."""
    for rank in ranks:
        _settle(rank, [0.0] * len(rank))
    for sweep in range(2 * _SWEEPS):
        for rank in ranks if sweep % 2 == 0 else ranks[::-1]:
            near = [(part.above if sweep % 2 == 0 else part.below) or [part] for part in rank]
            if sweep >= _SWEEPS:
                near = [[*part.above, *part.below] or [part] for part in rank]
            _settle(rank, [sum(other.x for other in others) / len(others) for others in near])


def _settle(rank: list[_Part], wanted: Sequence[float]) -> None:
    """The places nearest to `wanted` (least squares) that keep order and distance: pool adjacent violators."""
    offsets = [0.0]
    for left, right in pairwise(rank):
        offsets.append(offsets[-1] + (left.size[0] + right.size[0]) / 2 + GAP)
    pools: list[tuple[float, int]] = []  # mean of wanted - offset, parts
    for want, offset in zip(wanted, offsets, strict=False):
        pools.append((want - offset, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (one, few), (other, more) = pools[-2:]
            pools[-2:] = [((one * few + other * more) / (few + more), few + more)]
    places = [mean for mean, count in pools for _ in range(count)]
    for part, place, offset in zip(rank, places, offsets, strict=False):
        part.x = place + offset


def _placed(parts: Mapping[str, _Part], chains: Sequence[Sequence[_Part]], ranks: Sequence[list[_Part]]) -> Layout:
    left = min((part.x - part.size[0] / 2 for rank in ranks for part in rank), default=0.0)
    right = max((part.x + part.size[0] / 2 for rank in ranks for part in rank), default=0.0)
    heights = [max((part.size[1] for part in rank), default=0.0) for rank in ranks]
    middles, bottom = [], 0.0
    for height in heights:
        middles.append(bottom + height / 2)
        bottom += height + DROP

    def placed(part: _Part) -> Placed:
        return Placed(part.x - left, middles[part.rank], *part.size, heights[part.rank])

    boxes = {name: placed(part) for name, part in parts.items()}
    edges = [tuple(placed(part) for part in chain) for chain in chains]
    return Layout(boxes, edges, right - left, max(bottom - DROP, 0.0))
