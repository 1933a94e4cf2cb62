"""Figures of numbers. Vega-Lite specifications as plain data, drawn by `rendering` in its look.

Axes begin at 0 or are broken by a zigzag, unless they are logarithmic and say so; whiskers have caps; series that would
cover each other stand side by side; hollow signs are a paper's values and never ours. A specification names no colours
of text and axes: the theme does.

Points are records of x and y with, where there are any: `series`, `low` and `high` (the ends of an interval), `label`
(a text beside it), `mark` (it is filled, those without it being hollow).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from opsmith.measuring.intervals import Interval
from opsmith.report.rendering import (
    DASHES,
    HEIGHT,
    INK,
    PAGE,
    PALETTE,
    SHAPES,
    SMALL_SIZE,
    VEGA_LITE,
    Spec,
    count_legend_columns,
    measure_text,
    wrap_text,
)
from opsmith.results.intervals import Estimate

Records = Sequence[Mapping[str, Any]]
Domain = tuple[float, float]

_TICK = 26  # so many pixels between two numbers of an axis
_AXIS = 62  # what the vertical axis and its title take of a figure's width
_LARGE = 10_000  # from here on numbers are written with k, M, G
_PAPER_SHAPES = ("diamond", "triangle-up", "square", "triangle-down", "cross", "circle")
_DASH = "dash of "
_WRITTEN = {"labelExpr": "format(datum.value, '~g')", "labelOverlap": False}  # logarithmic axes leave out labels
_MANY = 30  # so many names: not each is written
_FEW = 12  # so many points of a series have whiskers; more have a band
_LOG = ", log scale"
_IN_ORDER = {"field": "place", "type": "quantitative"}
_ZIGZAG = [(-0.9, 0.9), (0.9, 0.3), (-0.9, -0.3), (0.9, -0.9)]  # in halves of a sign's size
_ROUND_NUMBERS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 8.0)


def place_interval(figure: Estimate | Interval) -> dict[str, float | None]:
    """A value with its interval, as a point has them."""
    return {"y": figure.value, "low": figure.low, "high": figure.high}


def line_chart(  # noqa: PLR0913  (one argument per text and per choice)
    points: Records,
    *,
    paper: Records = (),
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    is_joined: bool = True,
    is_stepped: bool = False,
    x_domain: Domain | None = None,
    y_domain: Domain | None = None,
    empty: str = "",
    width: int = PAGE,
    height: int = HEIGHT,
) -> Spec:
    """Points joined by lines in their order, with their intervals.

    `paper` are hollow points: x, y and `series` (their name), with `like`, the series of ours that they belong to. A
    point whose x or y is None or not finite is left out; with `log_x` so is one whose x is not positive. `is_stepped`:
    values hold from the point before. `x_domain`: of what is counted from 1
    on, whose axis needs no 0. `empty` says why there is no point.
    """
    rows = _list_drawn(points, lambda row: _is_number(row["x"]) and not (log_x and row["x"] <= 0))
    columns = _list_columns(rows)
    size = (width - _AXIS, height)
    across = x_domain or _span_values([row["x"] for row in rows] + [row["x"] for row in paper], log_x)
    upward = y_domain or _reach_zero(_span_ends(rows))
    whole, ticks = _step_whole(rows), _choose_ticks([row["x"] for row in rows], across, size[0], log_x)
    if "low" in columns:
        rows = _dodge_series(rows, across, size[0], log_x)
        ends = (*across, *(row["x"] for row in rows))
        across = min(ends), max(ends)  # an axis reaches as far as what was moved along it
    elif is_joined:
        rows = _part_lines(rows, (upward[1] - upward[0]) / height)
    scale = {"type": "log" if log_x else "linear", "domain": list(across), "nice": False}
    x_axis = {"title": x_title + _LOG * log_x, "scale": scale, "axis": ticks}
    vertical = {
        "title": y_title,
        "scale": {"domain": list(upward), "nice": False},
        "axis": {"tickCount": 5, **_write_numbers(upward), **whole},
    }
    place = {"x": {"field": "x", "type": "quantitative", **x_axis}, "y": {"type": "quantitative", **vertical}}
    look = _Look(rows, paper, width, is_named="series" in columns, has_hollow="mark" in columns)
    rows = [{**row, "place": number} for number, row in enumerate(rows)] if is_joined else rows
    rows = [{**row, "dash": f"{_DASH}{row['series']}"} for row in rows] if "series" in columns else rows
    shape = {"interpolate": "step-before"} if is_stepped else {}
    layers = [*_draw_intervals(rows, place, look, shape)] if "low" in columns else []
    if is_joined:
        line = {**place, "y": {**place["y"], "field": "y"}, **look.stroke, **look.dash, "order": _IN_ORDER}
        layers.append(_make_layer("line", line, strokeWidth=1.8, **shape))
    dots = {**place, "y": {**place["y"], "field": "y"}, **look.stroke, **look.shape, **look.fill}
    layers.append(_make_layer("point", dots, size=44, opacity=1, strokeWidth=1.5))
    if paper:
        layers.append({**_make_layer("point", dots, size=64, opacity=1, strokeWidth=1.6), **_inline(paper)})
    if "label" in columns:
        layers += _draw_labels(rows, place, _Field(across, upward, size, log_x), is_joined)
    layers += _mark_breaks({"x": 0.0 if log_x or x_domain else across[0], "y": upward[0]}, height) if rows else []
    return _make_spec(rows, layers, title, width, height, empty)


def bar_chart(  # noqa: PLR0913  (one argument per text and per choice)
    rows: Records,
    *,
    paper: Records = (),
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    y_domain: Domain | None = None,
    empty: str = "",
    width: int = PAGE,
    height: int = HEIGHT,
) -> Spec:
    """Bars side by side from 0, in the order of the rows, with whiskers.

    A row whose y is None has no bar but a dash. Wide bars say their value, and so does a bar of height 0. `paper` are
    hollow signs: x, y, `slot` (the series of ours that they stand beside) and `series`, the name in the legend.
    """
    points = _list_drawn(rows)
    missing = _list_drawn(rows, is_missing=True)
    columns = _list_columns([*points, *missing])
    largest = max((row["y"] if row.get("high") is None else row["high"] for row in points), default=1)
    top = y_domain or (0.0, largest * 1.08 or 1.0)
    band = (width - _AXIS) / max(1, len(_list_names([*points, *missing], "x")))
    points, missing, paper = (_wrap_names(own, band) for own in (points, missing, paper))
    bars = _Bars([*points, *missing], top, (width, height), has_slots="series" in columns)
    vertical = {
        "type": "quantitative",
        "title": y_title,
        "axis": {"tickCount": 5, **_write_numbers(top), **_step_whole(points)},
    }
    vertical |= {"scale": {"domain": list(top), "nice": y_domain is None}}
    place = {**bars.place_names(x_title), "y": {**vertical, "field": "y"}}
    look = _Look(points, paper, width, is_named="series" in columns)
    layers = [_make_layer("bar", {**place, **look.stroke, **look.fill}, fillOpacity=0.35, strokeWidth=1)]
    if "low" in columns:
        layers += _draw_whiskers(place, points)
    if "series" in columns and len(look.names) > 1:
        dots = {**place, **look.stroke, **look.shape, **look.fill}
        layers.append(_make_layer("point", dots, size=34, opacity=1, strokeWidth=1.2))
    layers += bars.write_values(place, points, missing)
    if paper:
        dots = {**bars.place_beside(place), **look.stroke, **look.shape, **look.fill}
        beside = [{**row, "beside": bars.name_beside(row["slot"])} for row in paper]
        layers.append({**_make_layer("point", dots, size=58, opacity=1, strokeWidth=1.7), **_inline(beside)})
    own_offsets = {"resolve": {"scale": {"xOffset": "independent"}}}  # what stands beside a bar is placed finer
    return {**_make_spec(points, layers, title, width, height, empty), **own_offsets}


def interval_chart(  # noqa: PLR0913  (as `line_chart`)
    rows: Records,
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    reference: float | None = None,
    is_linear: bool = False,
    empty: str = "",
    width: int = PAGE,
    height: int = HEIGHT,
) -> Spec:
    """Points side by side over names, in the order of the rows, each with its interval; the values are logarithmic, or
    linear.

    Names that do not fit beside each other stand below each other. `reference`: a value at which a line is drawn. A
    point whose y is None is left out; of logarithmic ones so is one that is not positive.
    """
    points = _list_drawn(rows, lambda row: is_linear or row["y"] > 0)
    band = (width - _AXIS) / max(1, len(_list_names(points, "x")))
    is_lying = any(measure_text(word) > band for row in points for word in str(row["x"]).split())
    points = points if is_lying else _wrap_names(points, band)
    names, slots = _list_names(points, "x"), _list_names(points, "series")
    ends = [end for row in points for end in (row["y"], row.get("low"), row.get("high")) if end is not None]
    ends += [reference] * (reference is not None)
    low, high = min(ends, default=1), max(ends, default=1)
    room = 0.05 * (high - low) or 0.1
    domain = [low - room, high + room] if is_linear else [low / 1.3, high * 1.3]
    ticks = {"tickCount": 5} if is_linear else {"values": _list_ticks(domain), **_WRITTEN}
    scale = {"type": "linear" if is_linear else "log", "domain": domain, "nice": False}
    title_of_values = y_title + _LOG * (not is_linear)
    values = {"type": "quantitative", "title": title_of_values, "scale": scale, "axis": ticks}
    place = _place_names(names, slots, x_title, 400 if is_lying else band)
    if is_lying:
        place = {"y": place["x"], "yOffset": place["xOffset"]}
        height = max(height // 2, len(names) * (8 + 12 * len(slots)))
    up = "x" if is_lying else "y"
    place[up] = {**values, "field": "y"}
    look = _Look(points, (), width, is_named=True)
    layers = [*_draw_whiskers({**place, **look.stroke}, points, up, strokeWidth=1.6)]
    layers.append(_make_layer("point", {**place, **look.stroke, **look.shape, **look.fill}, size=56, opacity=1))
    if reference is not None:
        line = {up: {**values, "datum": reference}}
        layers.insert(0, {**_make_layer("rule", line, strokeDash=[4, 3], opacity=0.6), **_inline([{}])})
    return _make_spec(points, layers, title, width, height, empty)


def grid_chart(
    rows: Records,
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    columns: int = 4,
    size: int = 98,
) -> Spec:
    """Small fields in rows, one for each name in the column `field`, all with the same two logarithmic axes.

    A point whose x or y is None, or not positive, is left out.
    """
    points = _list_drawn(rows, lambda row: _is_number(row["x"]) and row["x"] > 0 and row["y"] > 0)
    place = {}
    for axis, words in (("x", x_title), ("y", y_title)):
        values = [row[axis] for row in points]
        domain = [min(values, default=1) / 1.25, max(values, default=1) * 1.25]  # with room around what there is
        scale = {"type": "log", "nice": False, "domain": domain}
        ticks = {"tickCount": 3, "format": "~g"}
        place[axis] = {"field": axis, "type": "quantitative", "title": words, "scale": scale, "axis": ticks}
    width = columns * (size + 14)
    look = _Look(points, (), width, is_named=True)
    marks = {**place, **look.stroke, **look.shape, **look.fill}
    layer = _make_layer("point", marks, size=30, opacity=0.85)
    spec = _make_spec(points, [layer], title, width, size)
    inner = {"width": size, "height": spec.pop("height"), "layer": spec.pop("layer")}
    del spec["width"], spec["autosize"]
    heading = {"title": None, "labelFontSize": SMALL_SIZE, "labelPadding": 2}
    facet = {"field": "field", "type": "nominal", "sort": _list_names(points, "field"), "header": heading}
    return {**spec, "facet": facet, "columns": columns, "spacing": 14, "spec": inner}


class _Look:
    """How the series of a figure differ: channels of colour, dash, shape and filling, all with one legend."""

    def __init__(self, rows: Records, paper: Records, width: int, *, is_named: bool, has_hollow: bool = False) -> None:
        ours = _list_names(rows, "series") if is_named else []
        colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(ours)}
        cycles = [i + i // len(PALETTE) for i in range(len(ours))]  # after all colours, other shapes and dashes
        shapes = {name: SHAPES[i % len(SHAPES)] for i, name in zip(cycles, ours, strict=True)}
        fills = {**colours, **{row["series"]: "transparent" for row in paper}}
        dashes = {name: DASHES[i % len(DASHES)] for i, name in zip(cycles, ours, strict=True)}
        for row in paper:
            colours[row["series"]] = colours.get(str(row.get("like")), INK)
            dashes[row["series"]] = DASHES[0]
        for number, name in enumerate(name for name in colours if name not in shapes):
            shapes[name] = _PAPER_SHAPES[number % len(_PAPER_SHAPES)]
        shapes |= {row["series"]: shapes[row["like"]] for row in paper if row.get("like") in shapes}
        self.names = list(colours)
        columns = count_legend_columns(self.names, width)
        solid = {"stroke": {"value": PALETTE[0]}, "fill": {"value": PALETTE[0]}}

        def make_channel(name: str, values: Mapping[str, Any]) -> Spec:
            if not is_named:
                return {name: solid[name]} if name in solid else {}
            scale = {"domain": self.names, "range": [values[own] for own in self.names]}
            if name == "strokeDash":  # under names of its own, so that it is in no legend: it makes signs ragged
                own_scale = {**scale, "domain": [_DASH + own for own in self.names]}
                return {name: {"field": "dash", "type": "nominal", "legend": None, "scale": own_scale}}
            legend = {"columns": columns}
            return {name: {"field": "series", "type": "nominal", "title": None, "scale": scale, "legend": legend}}

        self.stroke = make_channel("stroke", colours)
        self.dash = make_channel("strokeDash", dashes)
        self.shape = make_channel("shape", shapes)
        self.fill = make_channel("fill", fills)
        if has_hollow:
            self.fill["fillOpacity"] = {"condition": {"test": "datum.mark", "value": 1}, "value": 0}


class _Bars:
    """Where bars stand, and the values that are written at them."""

    def __init__(self, points: Records, domain: Domain, size: tuple[int, int], *, has_slots: bool) -> None:
        self.names = _list_names(points, "x")
        self.slots = _list_names(points, "slot") if has_slots else []
        self.band = (size[0] - _AXIS) / max(1, len(self.names))
        self.slot = self.band * 0.8 / max(1, len(self.slots))
        self._pixel = (domain[1] - domain[0]) / size[1]

    def place_names(self, title: str) -> Spec:
        return _place_names(self.names, self.slots, title, self.band)

    def place_beside(self, place: Spec) -> Spec:
        """At the right of the bar, so that no whisker is covered."""
        names = [f"{number}.{quarter}" for number in range(len(self.slots)) for quarter in range(4)]
        return {**place, "xOffset": {"field": "beside", "type": "nominal", "scale": {"domain": names}}}

    def name_beside(self, slot: str) -> str:
        return f"{self.slots.index(slot)}.3"

    def write_values(self, place: Spec, points: Records, missing: Records) -> list[Spec]:
        """At the foot of a bar; above it where the bar is low or its whisker reaches down to the foot."""
        texts = [_format_value(row["y"]) for row in points]
        has_room = max((measure_text(text, SMALL_SIZE) for text in texts), default=0) <= self.slot
        rows = [
            {**row, "text": text, "at": self._raise_text(row)}
            for row, text in zip(points, texts, strict=True)
            if has_room or row["y"] == 0
        ]
        rows += [{**row, "text": "–", "at": 0.0} for row in missing]
        if not rows:
            return []
        encoding = {**place, "y": {**place["y"], "field": "at"}, "text": {"field": "text", "type": "nominal"}}
        return [{**_make_layer("text", encoding, dy=-8, fontSize=SMALL_SIZE), **_inline(rows)}]

    def _raise_text(self, row: Mapping[str, Any]) -> float:
        foot = 18 * self._pixel
        low, high = (row.get(end) if row.get(end) is not None else row["y"] for end in ("low", "high"))
        return float(0.0 if min(low, row["y"]) > foot else max(high, row["y"]))


class _Field:
    """The pixels of a field of points, from the top left."""

    def __init__(self, across: Domain, upward: Domain, size: tuple[float, float], log_x: bool) -> None:
        self.size = size
        self._across, self._upward, self._log = across, upward, log_x

    def find_pixel(self, x: float, y: float) -> tuple[float, float]:
        start, end, place = map(math.log, (*self._across, x)) if self._log else (*self._across, x)
        low, high = self._upward
        return (place - start) / (end - start) * self.size[0], (high - y) / (high - low) * self.size[1]


def _draw_labels(rows: Records, place: Spec, field: _Field, is_joined: bool) -> list[Spec]:
    """A layer of texts for each side of the points; texts of points at one place are one."""
    texts: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["label"]:
            across, down = field.find_pixel(row["x"], row["y"])
            texts.setdefault((round(across / 3), round(down / 3)), []).append(row)
    labels: list[Label] = [
        (", ".join(dict.fromkeys(row["label"] for row in group)), *field.find_pixel(group[0]["x"], group[0]["y"]))
        for group in texts.values()
    ]
    places = place_labels(labels, _trace_lines(rows, field, is_joined), field.size)
    by_place: dict[LabelPlace, list[Spec]] = {}
    for (text, _, _), spot, group in zip(labels, places, texts.values(), strict=True):
        if spot is not None:
            by_place.setdefault(spot, []).append({"x": group[0]["x"], "y": group[0]["y"], "text": text})
    encoding = {**place, "y": {**place["y"], "field": "y"}, "text": {"field": "text", "type": "nominal"}}
    return [
        {**_make_layer("text", encoding, dx=spot.dx, dy=spot.dy, align=spot.align, fontSize=SMALL_SIZE), **_inline(own)}
        for spot, own in by_place.items()
    ]


def _trace_lines(rows: Records, field: _Field, is_joined: bool) -> list[tuple[float, float]]:
    """The pixels of the points and, every few of them, of the lines that join them."""
    points = [field.find_pixel(row["x"], row["y"]) for row in rows]
    lines: dict[str, list[tuple[float, float]]] = {}
    for row, point in zip(rows, points, strict=True):
        lines.setdefault(str(row.get("series", "")), []).append(point)
    for line in lines.values() if is_joined else ():
        for (start, top), (end, bottom) in pairwise(line):
            steps = int(max(abs(end - start), abs(bottom - top)) / 6)
            points += [(start + (end - start) * i / steps, top + (bottom - top) * i / steps) for i in range(1, steps)]
    return points


def _draw_intervals(rows: Records, place: Spec, look: _Look, shape: Spec) -> list[Spec]:
    """Whiskers; a band where there are so many points that whiskers would be a hedge."""
    longest = max(
        (len([row for row in rows if row.get("series", "") == name]) for name in look.names or [""]), default=0
    )
    if longest <= _FEW and not shape:
        return _draw_whiskers({**place, "y": {**place["y"], "field": "y"}, **look.stroke}, rows)
    area = {**place, "y": {**place["y"], "field": "low"}, "y2": {"field": "high"}, **look.fill}
    return [_make_layer("area", area, opacity=0.15, **shape)]


def _draw_whiskers(place: Spec, rows: Records, up: str = "y", **style: Any) -> list[Spec]:
    """From low to high, with caps; nothing where they are the same."""
    own = _inline([row for row in rows if row.get("low") is not None and row["low"] < row["high"]])
    across = "vertical" if up == "x" else "horizontal"
    span = {**place, up: {**place[up], "field": "low"}, f"{up}2": {"field": "high"}}
    caps = [{**place, up: {**place[up], "field": end}} for end in ("low", "high")]
    rule = {**_make_layer("rule", span, **{"strokeWidth": 1.2, **style}), **own}
    return [rule, *({**_make_layer("tick", cap, orient=across, size=6, thickness=1.2), **own} for cap in caps)]


def _place_names(names: Sequence[str], slots: Sequence[str], title: str, band: float) -> Spec:
    """Names in their order; the series of a name stand side by side."""
    fits = all(measure_text(line) <= band for name in names for line in name.split("\n"))
    axis: Spec = {"labelAngle": 0 if fits else -40, "labelExpr": "split(datum.value, '\\n')"}
    axis["labelOverlap"] = "greedy" if len(names) > _MANY else False
    scale = {"domain": list(names), "paddingInner": 0.2, "paddingOuter": 0.1}
    place: Spec = {"x": {"field": "x", "type": "nominal", "title": title, "scale": scale, "axis": axis}}
    if slots:
        inner = {"domain": list(slots), "paddingInner": 0.08}
        place["xOffset"] = {"field": "slot", "type": "nominal", "scale": inner}
    return place


def _wrap_names(rows: Records, band: float) -> list[Spec]:
    """The names across in lines that fit beside each other."""
    return [{**row, "x": "\n".join(wrap_text(str(row["x"]), band))} for row in rows]


def _make_spec(rows: Records, layers: list[Spec], title: str, width: int, height: int, empty: str = "") -> Spec:
    if not rows:
        words = f"no data: {empty}" if empty else "no data"
        layers = [{"mark": {"type": "text", "text": words}, "data": {"values": [{}]}}]
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE}.json",
        "data": {"values": list(rows)},
        "usermeta": {"width": width},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "width": width,
        "height": height,
        "title": title,
        "description": _describe_points(rows),
        "layer": layers,
    }


def _make_layer(kind: str, encoding: Mapping[str, Any], **style: Any) -> Spec:
    return {"mark": {"type": kind, **style}, "encoding": dict(encoding)}


def _inline(rows: Records) -> Spec:
    """The data of one layer."""
    return {"data": {"values": [dict(row) for row in rows]}}


def _span_values(values: Sequence[float], is_log: bool) -> Domain:
    """All of the values with some room at both ends."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    if is_log:
        room = (high / low) ** 0.04 if high > low else 1.5
        return low / room, high * room
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return _reach_zero((max(low - room, min(low, 0.0)), high + room))


def _reach_zero(domain: Domain) -> Domain:
    """From 0 on, unless what there is lies so far above it that it would stand in a third of the axis or less.

    >>> _reach_zero((1.0, 1.8)), _reach_zero((24.0, 26.0))
    ((0.0, 1.8), (24.0, 26.0))
    """
    low, high = domain
    return (0.0, high) if 0 < low <= high * 2 / 3 else domain


def _mark_breaks(starts: Mapping[str, float], height: int) -> list[Spec]:
    """A zigzag at the foot of each axis that does not begin at 0."""
    layers = []
    for axis in (name for name, start in starts.items() if start > 0):
        path = "M" + "L".join(f"{x},{y}" if axis == "y" else f"{y},{x}" for x, y in _ZIGZAG)
        place = {"x": 0, "y": height - 9} if axis == "y" else {"x": 9, "y": height}
        sign = {"stroke": INK, "strokeWidth": 1.4, "fill": None, "opacity": 1}
        spots = {name: {"value": value} for name, value in place.items()}
        layers.append({**_make_layer("point", spots, shape=path, size=90, **sign), **_inline([{}])})
    return layers


def _span_ends(rows: Records) -> Domain:
    """The values with their intervals, from a round number to a round number."""
    ends = [row[name] for row in rows for name in ("y", "low", "high") if row.get(name) is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = 10.0 ** math.floor(math.log10(high - low if high > low else abs(high) or 1.0)) / 2
    return math.floor(low / step - 0.2) * step, math.ceil(high / step + 0.2) * step


def _dodge_series(rows: Records, domain: Domain, width: float, is_log: bool) -> list[Spec]:
    """Series some pixels beside each other, so that none covers another one."""
    names = _list_names(rows, "series") if rows and "series" in rows[0] else []
    apart = min(8.0, 32.0 / max(1, len(names)))
    moved = []
    for row in rows:
        pixels = (names.index(str(row["series"])) - (len(names) - 1) / 2) * apart if names else 0.0
        share = pixels / width
        across = row["x"] * (domain[1] / domain[0]) ** share if is_log else row["x"] + (domain[1] - domain[0]) * share
        moved.append({**row, "x": across})
    return moved


def _part_lines(rows: Records, pixel: float) -> list[Spec]:
    """Equal points of several lines some pixels below each other, so that no line covers another one. `pixel`: how much
    it is of the vertical axis."""
    counts = Counter((row["x"], row["y"]) for row in rows)
    names = _list_names(rows, "series") if rows and "series" in rows[0] else []
    apart = pixel * min(5.0, 20 / max(1, len(names)))
    drops = {name: ((len(names) - 1) / 2 - number) * apart for number, name in enumerate(names)}
    return [
        {**row, "y": row["y"] + drops.get(str(row.get("series")), 0.0) * (counts[row["x"], row["y"]] > 1)}
        for row in rows
    ]


def _choose_ticks(values: Sequence[float], domain: Domain, width: float, is_log: bool) -> Spec:
    """The values themselves where they are few small numbers with room between them; else about six."""
    about_six = {"tickCount": 6, **_write_numbers(domain, 1)}  # 0.06 USD, not 60m
    distinct = sorted(set(values))
    if not 0 < len(distinct) <= _FEW or max(distinct) > 1000 or not all(value % 1 == 0 for value in distinct):
        return {"values": _list_ticks(domain), **_WRITTEN} if is_log and domain[1] < _LARGE else about_six
    field = _Field(domain, (0.0, 1.0), (width, 1.0), is_log)
    pixels = [field.find_pixel(value, 0.0)[0] for value in distinct]
    is_roomy = all(end - start >= _TICK for start, end in pairwise(pixels))
    if not is_roomy and is_log:
        return {"values": _list_ticks(domain), **_WRITTEN}
    return {"values": distinct, **_WRITTEN} if is_roomy else about_six


def _write_numbers(domain: Sequence[float], large: float = _LARGE) -> Spec:
    """Each number with a prefix of its own, from so large ones on: 0 and 20k, where an axis' own format writes 0k."""
    return {"labelExpr": f"format(datum.value, '{'~s' if max(domain) >= large else '~g'}')"}


def _step_whole(rows: Records) -> Spec:
    """No tick at half of what is counted."""
    is_counted = all(row["y"] % 1 == 0 for row in rows) and any(row["y"] > 1 for row in rows)
    return {"tickMinStep": 1} if is_counted else {}


def _list_ticks(domain: Sequence[float]) -> list[float]:
    """Round numbers within a logarithmic domain, at most seven where they can be so few."""
    decades = range(math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1])) + 1)
    ticks: list[float] = []
    for steps in (_ROUND_NUMBERS, (1.0, 2.0, 5.0), (1.0,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [float(f"{tick:.3g}") for tick in ticks if domain[0] <= tick <= domain[1]]
        if len(ticks) <= 7:
            break
    return ticks


def _format_value(value: float) -> str:
    """
    >>> _format_value(0.88461), _format_value(20), _format_value(18_403_904)
    ('0.885', '20', '18.4M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size or (unit != "k" and abs(value) >= size):
            return f"{value / size:.3g}{unit}"
    if 0 < abs(value) < 1:
        return f"{value:.3f}"
    return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3g}"


def _list_drawn(
    points: Records, keep: Callable[[Mapping[str, Any]], bool] = lambda _: True, is_missing: bool = False
) -> list[Spec]:
    """The points that have a y, or those that have none; what is not finite counts as missing."""
    rows = [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        | ({"slot": row["series"]} if "series" in row else {})
        for row in points
    ]
    return [row for row in rows if _is_number(row["y"]) != is_missing and keep(row)]


def _list_columns(rows: Records) -> set[str]:
    """The columns that hold something in any row."""
    return {name for row in rows for name, value in row.items() if value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _list_names(rows: Iterable[Mapping[str, Any]], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows))


def _describe_points(rows: Records) -> str:
    """What a reader who does not see the figure is told: how much it shows, and the range of its values."""
    if not rows:
        return "no data"
    values, names = [row["y"] for row in rows], _list_names(rows, "series") if "series" in rows[0] else []
    lines = f" in {len(names)} series ({', '.join(names)})" if names else ""
    return f"{len(rows)} values{lines}, from {min(values):.4g} to {max(values):.4g}"


_POINT = 4.0  # half of a point's size


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels; y grows downward."""

    west: float
    top: float
    east: float
    bottom: float

    def overlaps(self, box: Box) -> bool:
        return self.west < box.east and box.west < self.east and self.top < box.bottom and box.top < self.bottom


@dataclass(frozen=True)
class LabelPlace:
    """Where a text stands, seen from its point."""

    align: str  # left, center, right: the side of the text that is at the point
    dx: float
    dy: float  # of the text's middle

    def box_text(self, text: str, x: float, y: float) -> Box:
        width, half = measure_text(text, SMALL_SIZE), SMALL_SIZE * 0.6
        west = x + self.dx - {"left": 0.0, "center": width / 2, "right": width}[self.align]
        return Box(west, y + self.dy - half, west + width, y + self.dy + half)


PLACES = (
    LabelPlace("center", 0, -12),
    LabelPlace("center", 0, 13),
    LabelPlace("left", 7, -9),
    LabelPlace("left", 7, 10),
    LabelPlace("right", -7, -9),
    LabelPlace("right", -7, 10),
    LabelPlace("left", 9, 0),
    LabelPlace("right", -9, 0),
    LabelPlace("center", 0, -25),
    LabelPlace("center", 0, 26),
    LabelPlace("center", 0, -38),
    LabelPlace("center", 0, 39),
)
Label = tuple[str, float, float]  # the text, and its point in pixels


def place_labels(
    labels: Sequence[Label], points: Sequence[tuple[float, float]], size: tuple[float, float]
) -> list[LabelPlace | None]:
    """A place for each text, the first that is free; None where none is. `size`: of the field that holds them all."""
    obstacles = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    places: list[LabelPlace | None] = []
    for text, x, y in labels:
        free = next((place for place in PLACES if _is_free(place.box_text(text, x, y), obstacles, size)), None)
        places.append(free)
        if free is not None:
            obstacles.append(free.box_text(text, x, y))
    return places


def _is_free(box: Box, obstacles: Sequence[Box], size: tuple[float, float]) -> bool:
    inside = box.west >= 0 and box.east <= size[0] and box.top >= 0 and box.bottom <= size[1]
    return inside and not any(map(box.overlaps, obstacles))
