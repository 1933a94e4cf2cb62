"""Drawings of dataflow graphs. One self-contained SVG in the colour of the text around it, data flowing down.

Boxes are applications with their functions, round ones inputs and outputs; on each edge stands the type of its stream,
and where a box takes several streams, the number of each beside its arrow. Widths are those of a monospaced font.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence

from opsmith.records import printable
from opsmith.report.layout import Layout, Placed, Size, lay_out
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
    boxes = {node.id: _box_size(node) for node in flow.nodes}
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


def _box_size(node: Node) -> Size:
    width, height = _text_size(list(filter(None, (node.label, node.detail))))
    return max(width + 2 * _PAD, 44.0), height + 10.0


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
    spans = [
        f'<tspan x="{place.x:.1f}" y="{first + _LINE * number:.1f}"{_bold_style(bold_first and number == 0)}>'
        f"{html.escape(printable(line))}</tspan>"
        for number, line in enumerate(lines)
    ]
    return f"<text{extra}>{''.join(spans)}</text>"


def _bold_style(is_bold: bool) -> str:
    return ' font-weight="600"' if is_bold else ""


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
