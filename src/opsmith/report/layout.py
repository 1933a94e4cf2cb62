"""Where each box of a layered graph stands. Sugiyama's method on sizes alone: ranks, order, coordinates.

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
class _Node:
    """A box, or the place where an edge crosses a rank."""

    rank: int
    size: Size
    x: float = 0.0
    above: list[_Node] = field(default_factory=list)
    below: list[_Node] = field(default_factory=list)


def lay_out(boxes: Mapping[str, Size], edges: Sequence[tuple[str, str, Size]]) -> Layout:
    """Boxes by name in an order in which every edge (source, target, size of its label) leads to a later one."""
    rank = _rank_boxes(list(boxes), [(source, target) for source, target, _ in edges])
    boxed = {name: _Node(2 * rank[name], size) for name, size in boxes.items()}
    chains = [_chain_edge(boxed[source], boxed[target], size) for source, target, size in edges]
    ranks = _by_rank([*boxed.values(), *(part_of_edge for chain in chains for part_of_edge in chain)])
    _order_ranks(ranks)
    _spread_ranks(ranks)
    return _place_all(boxed, chains, ranks)


def _rank_boxes(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Longest paths from the top; what nothing leads to then stands right above what it leads to."""
    rank = dict.fromkeys(names, 0)
    place = {name: index for index, name in enumerate(names)}
    for source, target in sorted(edges, key=lambda edge: place[edge[0]]):
        rank[target] = max(rank[target], rank[source] + 1)
    targets = {target for _, target in edges}
    for name in names:
        below = [rank[target] for source, target in edges if source == name]
        if name not in targets and below:
            rank[name] = min(below) - 1
    return rank


def _chain_edge(source: _Node, target: _Node, label: Size) -> list[_Node]:
    """The parts between two boxes, linked from the one to the other."""
    chain = [_Node(rank, (0.0, 0.0)) for rank in range(source.rank + 1, target.rank)]
    chain[0].size = label
    for upper, lower in zip([source, *chain], [*chain, target], strict=True):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain


def _by_rank(nodes: Sequence[_Node]) -> list[list[_Node]]:
    ranks: list[list[_Node]] = [[] for _ in range(max((node.rank for node in nodes), default=-1) + 1)]
    for node in nodes:
        ranks[node.rank].append(node)
    return ranks


def _order_ranks(ranks: list[list[_Node]]) -> None:
    """Sort each rank by the barycentre of its neighbours, down and up, and keep the order with the fewest crossings."""
    best, fewest = [list(rank) for rank in ranks], _count_crossings(ranks)
    for sweep in range(_SWEEPS):
        for fixed, rank in pairwise(ranks if sweep % 2 == 0 else ranks[::-1]):
            _sort_rank(rank, fixed, down=sweep % 2 == 0)
        crossings = _count_crossings(ranks)
        if crossings < fewest:
            best, fewest = [list(rank) for rank in ranks], crossings
    ranks[:] = best


def _sort_rank(rank: list[_Node], fixed: Sequence[_Node], down: bool) -> None:
    """Sort by where the neighbours stand in the rank that is not moved; parts without any stay where they are."""
    position = {node: float(place) for place, node in enumerate(fixed)}
    keys = {}
    for place, node in enumerate(rank):
        near = node.above if down else node.below
        keys[node] = sum(position[neighbour] for neighbour in near) / len(near) if near else float(place)
    rank.sort(key=lambda node: keys[node])


def _count_crossings(ranks: list[list[_Node]]) -> int:
    count = 0
    for upper, lower in pairwise(ranks):
        position = {node: place for place, node in enumerate(lower)}
        ends = [
            position[neighbour]
            for node in upper
            for neighbour in sorted(node.below, key=lambda neighbour: position[neighbour])
        ]
        count += sum(left > neighbour for place, left in enumerate(ends) for neighbour in ends[place + 1 :])
    return count


def _spread_ranks(ranks: list[list[_Node]]) -> None:
    """Coordinates: each part as near to the mean of its neighbours as the order and the distances allow."""
    for rank in ranks:
        _settle_rank(rank, [0.0] * len(rank))
    for sweep in range(2 * _SWEEPS):
        for rank in ranks if sweep % 2 == 0 else ranks[::-1]:
            near = [(node.above if sweep % 2 == 0 else node.below) or [node] for node in rank]
            if sweep >= _SWEEPS:
                near = [[*node.above, *node.below] or [node] for node in rank]
            _settle_rank(rank, [sum(neighbour.x for neighbour in neighbours) / len(neighbours) for neighbours in near])


def _settle_rank(rank: list[_Node], targets: Sequence[float]) -> None:
    """The places nearest to `targets` (least squares) that keep order and distance: pool adjacent violators."""
    offsets = [0.0]
    for former, right in pairwise(rank):
        offsets.append(offsets[-1] + (former.size[0] + right.size[0]) / 2 + GAP)
    pools: list[tuple[float, int]] = []  # mean of wanted - offset, parts
    for want, offset in zip(targets, offsets, strict=False):
        pools.append((want - offset, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (upper, few), (lower, many) = pools[-2:]
            pools[-2:] = [((upper * few + lower * many) / (few + many), few + many)]
    places = [mean for mean, count in pools for _ in range(count)]
    for node, place, offset in zip(rank, places, offsets, strict=False):
        node.x = place + offset


def _place_all(boxed: Mapping[str, _Node], chains: Sequence[Sequence[_Node]], ranks: Sequence[list[_Node]]) -> Layout:
    edge = min((node.x - node.size[0] / 2 for rank in ranks for node in rank), default=0.0)
    right = max((node.x + node.size[0] / 2 for rank in ranks for node in rank), default=0.0)
    heights = [max((node.size[1] for node in rank), default=0.0) for rank in ranks]
    middles, bottom = [], 0.0
    for height in heights:
        middles.append(bottom + height / 2)
        bottom += height + DROP

    def place_node(node: _Node) -> Placed:
        return Placed(node.x - edge, middles[node.rank], *node.size, heights[node.rank])

    boxes = {name: place_node(node) for name, node in boxed.items()}
    edges = [tuple(place_node(node) for node in chain) for chain in chains]
    return Layout(boxes, edges, right - edge, max(bottom - DROP, 0.0))
