"""Drawings of dataflow graphs. One self-contained SVG in the colour of the text around it, data flowing down.

Boxes are applications with their functions, round ones inputs and outputs; on each edge stands the type of its stream,
and where a box takes several streams, the number of each beside its arrow. Widths are those of a monospaced font.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opsmith.records import printable
from opsmith.targets.programs import Dataflow, Node

MAX_NODES = 80  # a larger graph is no help to the eye
_CHAR, _LINE, _PAD = 6.7, 15.0, 9.0  # of the font at 11 px
_WRAP = 26  # characters of a type on one line
_MARGIN = 6.0
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def draw_dataflow(flow: Dataflow, title: str) -> str | None:
    """The graph as an `<svg>` element; None when it has nothing in it, or too much."""
    if not 0 < len(flow.nodes) <= MAX_NODES:
        return None
    texts = {node.id: _text_size(list(filter(None, (node.label, node.detail)))) for node in flow.nodes}
    boxes = {name: (max(width + 2 * _PAD, 44.0), height + 10.0) for name, (width, height) in texts.items()}
    layout = lay_out(boxes, [(edge.source, edge.target, _text_size(_wrap_type(edge.type_text))) for edge in flow.edges])
    body = [_draw_arrows(flow, layout), *(_draw_node(node, layout.boxes[node.id]) for node in flow.nodes)]
    body += [
        _draw_lines(places[0], _wrap_type(edge.type_text), extra=' font-size="10.5" opacity="0.85"')
        for edge, places in zip(flow.edges, layout.edges, strict=True)
    ]
    return _write_frame(layout, html.escape(printable(title)), "".join(body))


def width_of(text: str) -> float:
    """Of one line, in pixels."""
    return _CHAR * sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _write_frame(layout: Layout, title: str, body: str) -> str:
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    box = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="dataflow" role="img" aria-label="{title}" {box}>'
    style = f'font-family="{_FONT}" font-size="11" text-anchor="middle" fill="currentColor"'
    return f"{head}<title>{title}</title><g {style}>{body}</g></svg>"


def _text_size(lines: Sequence[str]) -> Size:
    return max(map(width_of, lines), default=0.0), _LINE * len(lines)


def _wrap_type(text: str) -> list[str]:
    """A type on lines of moderate length, broken after a comma or at a blank."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _WRAP:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _draw_node(node: Node, centre: Placed) -> str:
    corner = 3 if node.kind == "operation" else centre.height / 2
    dash = ' stroke-dasharray="3 3"' if node.kind == "unused" else ""
    opacity = "0.07" if node.kind == "operation" else "0"
    corner_at = f'x="{centre.x - centre.width / 2:.1f}" y="{centre.top:.1f}"'
    place = f'{corner_at} width="{centre.width:.1f}" height="{centre.height:.1f}"'
    frame = f'rx="{corner:g}" fill-opacity="{opacity}" stroke="currentColor" stroke-opacity="0.75"{dash}'
    return f"<rect {place} {frame}/>" + _draw_lines(
        centre, list(filter(None, (node.label, node.detail))), bold_first=True
    )


def _draw_lines(place: Placed, lines: Sequence[str], bold_first: bool = False, extra: str = "") -> str:
    """Lines around the middle of a place."""
    first = place.y - _LINE * (len(lines) - 1) / 2 + 4
    bold = ' font-weight="600"' * bold_first
    spans = [
        f'<tspan x="{place.x:.1f}" y="{first + _LINE * number:.1f}"{bold * (number == 0)}>'
        f"{html.escape(printable(line))}</tspan>"
        for number, line in enumerate(lines)
    ]
    return f"<text{extra}>{''.join(spans)}</text>"


def _draw_arrows(flow: Dataflow, layout: Layout) -> str:
    """Every edge as one path that goes round its own label, and the numbers of operands beside the arrows."""
    starts, ends = _port_places(flow, layout, leaving=True), _port_places(flow, layout, leaving=False)
    paths, heads, numbers = [], [], []
    for edge, places, start, end in zip(flow.edges, layout.edges, starts, ends, strict=True):
        source, target = layout.boxes[edge.source], layout.boxes[edge.target]
        paths.append(_draw_path(start, source, places, end, target, has_label=bool(edge.type_text)))
        heads.append(f"M{end - 3:.1f} {target.top - 6:.1f}h6l-3 6z")
        if edge.operand:
            numbers.append(f'<text x="{end - 7:.1f}" y="{target.top - 3:.1f}" font-size="9">{edge.operand}</text>')
    lines = f'<path d="{"".join(paths)}" fill="none" stroke="currentColor" stroke-opacity="0.55"/>'
    return f'{lines}<path d="{"".join(heads)}"/>{"".join(numbers)}'


def _port_places(flow: Dataflow, layout: Layout, leaving: bool) -> list[float]:
    """By edge: where on its box it begins or ends, in the order of where it goes to or comes from."""
    places = [0.0] * len(flow.edges)
    for name, box in layout.boxes.items():
        own = [index for index, edge in enumerate(flow.edges) if (edge.source if leaving else edge.target) == name]
        own.sort(key=lambda index: layout.edges[index][0 if leaving else -1].x)
        for number, index in enumerate(own, 1):
            places[index] = box.x - box.width / 2 + box.width * number / (len(own) + 1)
    return places


def _draw_path(
    start: float, source: Placed, places: Sequence[Placed], end: float, target: Placed, has_label: bool
) -> str:
    """Smooth between ranks, straight within them; broken where the label stands."""
    words = [f"M{start:.1f} {source.bottom:.1f}V{_rank_bottom(source):.1f}"]
    x, upper = start, source
    for number, place in enumerate(places):
        words.append(_draw_bend(x, _rank_bottom(upper), place.x, _rank_top(place)))
        words.append(f"V{place.top:.1f}M{place.x:.1f} {place.bottom:.1f}" if number == 0 and has_label else "")
        words.append(f"V{_rank_bottom(place):.1f}")
        x, upper = place.x, place
    return "".join([*words, _draw_bend(x, _rank_bottom(upper), end, _rank_top(target)), f"V{target.top:.1f}"])


def _rank_top(place: Placed) -> float:
    return place.y - place.rank_height / 2


def _rank_bottom(place: Placed) -> float:
    return place.y + place.rank_height / 2


def _draw_bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"


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
