"""Figures of numbers. Vega-Lite specifications as plain data, and their pictures as SVG and PNG.

A specification names no colours of text and axes: the theme does. `page` draws those in the colour of the text around
the figure, on nothing, so that it fits a light and a dark page; `paper` draws them black on white. Series differ by
colour, shape and dash. The same data gives the same bytes. No request is made: vl-convert brings all it needs.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

Spec = dict[str, Any]
Theme = Literal["page", "paper"]

VEGA_LITE = "5.21"
# Okabe and Ito's hues, with each lightness moved to where it has contrast 3 on white and on a dark page
PALETTE = ("#2b7fc9", "#d55e00", "#0d9a72", "#b8639b", "#a87b00", "#7a7f87", "#5f6ad6", "#c94f5d")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 3], [3, 1])
_ROLES = re.compile(r' (role|aria-\w+|class|pointer-events)="[^"]*"')  # parts that no screen reader can name
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def line_chart(  # noqa: PLR0913  (one argument per column of the points, and per text)
    points: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    series: str | None = None,
    low: str | None = None,
    high: str | None = None,
    label: str | None = None,
    mark: str | None = None,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    y_domain: tuple[float, float] | None = None,
    width: int = 420,
    height: int = 250,
) -> Spec:
    """Points joined by lines in the order of x; `low` and `high` draw a band, `label` writes a text beside each point.

    `mark` names a column that is true for points to be filled, the others being hollow. A point whose x or y is None or
    not finite is left out; with `log_x` so is one whose x is not positive.
    """
    columns = {"x": x, "y": y, "series": series, "low": low, "high": high, "label": label, "mark": mark}
    rows = _rename_columns(points, columns, lambda row: _is_number(row["x"]) and not (log_x and row["x"] <= 0))
    scale = {"type": "log", "nice": False} if log_x else {"zero": False, "nice": False, "padding": 12}
    across = {"field": "x", "type": "quantitative", "title": x_title or x, "scale": scale}
    across["axis"] = {"tickCount": 6, "format": "~s"}
    base = {"x": across, **_dash_channel(rows, series)}
    layers = [_make_layer("line", {**base, "y": _vertical_axis(y_title or y, y_domain)}, strokeWidth=2)]
    if low is not None and high is not None:
        band = {"x": across, "y": _vertical_axis(y_title or y, y_domain, "low"), "y2": {"field": "high"}}
        layers.insert(0, _make_layer("area", {**band, **_colour_channel(rows, series)}, opacity=0.18))
    dots = {**base, "y": _vertical_axis(y_title or y, y_domain)}
    if mark is not None:
        dots["fillOpacity"] = {"condition": {"test": "datum.mark", "value": 1}, "value": 0}
    style = {"filled": True} if mark is None else {"filled": False, "strokeWidth": 1.6}
    points_of = _without_dash(dots, series, rows, fill=mark is not None)
    layers.append(_make_layer("point", points_of, size=44, opacity=1, **style))
    if label is not None:
        text = {"x": across, "y": _vertical_axis(y_title or y, y_domain), "text": {"field": "label", "type": "nominal"}}
        layers.append(_make_layer("text", text, dy=-10, fontSize=10))
    return _make_spec(rows, layers, title, width, height)


def bar_chart(  # noqa: PLR0913  (one argument per column of the rows, and per text)
    rows: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    series: str | None = None,
    low: str | None = None,
    high: str | None = None,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    y_domain: tuple[float, float] | None = None,
    width: int = 420,
    height: int = 250,
) -> Spec:
    """Bars side by side, in the order of the rows; `low` and `high` draw an interval on each. None: no bar."""
    points = _rename_columns(rows, {"x": x, "y": y, "series": series, "low": low, "high": high})
    place = _place_names(points, x_title or x, width, has_series=series is not None)
    bars = {**place, "y": _vertical_axis(y_title or y, y_domain), **_colour_channel(points, series)}
    layers = [_make_layer("bar", bars)]
    if low is not None and high is not None:
        spans = {**place, "y": _vertical_axis(y_title or y, y_domain, "low"), "y2": {"field": "high"}}
        layers.append(_make_layer("rule", spans, strokeWidth=1.4))
    return _make_spec(points, layers, title, width, height)


def interval_chart(  # noqa: PLR0913  (one argument per column of the rows, and per text)
    rows: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    series: str,
    low: str,
    high: str,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    width: int = 420,
    height: int = 250,
) -> Spec:
    """Points side by side over names, in the order of the rows, each with its interval; y is logarithmic.

    A point whose y is None, or not positive, is left out.
    """
    columns = {"x": x, "y": y, "series": series, "low": low, "high": high}
    points = _rename_columns(rows, columns, lambda row: row["y"] > 0)
    place = _place_names(points, x_title or x, width, has_series=True)
    ends = [end for row in points for end in (row["low"], row["high"])]
    domain = [min(ends, default=1) / 1.6, max(ends, default=1) * 1.6]
    scale = {"type": "log", "domain": domain, "nice": False}
    upward = {"type": "quantitative", "title": y_title or y, "scale": scale, "axis": {"tickCount": 5, "format": "~s"}}
    spans = {**place, "y": {"field": "low", **upward}, "y2": {"field": "high"}, **_colour_channel(points, series)}
    dots = {**place, "y": {"field": "y", **upward}, **_colour_channel(points, series)}
    dots["shape"] = _series_channel(points, _SHAPES)
    layers = [_make_layer("rule", spans, strokeWidth=2), _make_layer("point", dots, size=64, opacity=1, filled=True)]
    return _make_spec(points, layers, title, width, height)


def _place_names(points: Sequence[Spec], title: str, width: int, *, has_series: bool) -> Spec:
    """Names across; the series of a name stand side by side."""
    place: Spec = {"x": _name_axis(points, title, width)}
    if has_series:
        place["xOffset"] = {"field": "series", "type": "nominal", "sort": _series_names(points)}
    return place


def _name_axis(points: Sequence[dict[str, Any]], title: str, width: int) -> dict[str, Any]:
    """Names across, in the order of the points; slanted where they would lie over each other."""
    order = _list_names(points, "x")
    longest = max((len(str(name)) for name in order), default=0) * len(order)
    angle = {"labelAngle": 0 if longest * 7 < width else -40}
    return {"field": "x", "type": "nominal", "title": title, "sort": order, "axis": angle}


def grid_chart(  # noqa: PLR0913  (one argument per column of the rows, and per text)
    rows: Sequence[Mapping[str, Any]],
    *,
    field: str,
    x: str,
    y: str,
    series: str,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    columns: int = 6,
    size: int = 92,
) -> Spec:
    """Small fields in rows, one for each name in `field`, all with the same two logarithmic axes.

    A point whose x or y is None, or not positive, is left out.
    """
    names = {"field": field, "x": x, "y": y, "series": series}
    points = _rename_columns(rows, names, lambda row: _is_number(row["x"]) and row["x"] > 0 and row["y"] > 0)
    place = {
        axis: {"field": axis, "type": "quantitative", "title": words, "scale": _ratio_scale(points, axis)}
        | {"axis": {"tickCount": 3, "format": "~g"}}
        for axis, words in (("x", x_title or x), ("y", y_title or y))
    }
    marks = {**place, **_colour_channel(points, series), "shape": _series_channel(points, _SHAPES)}
    layer = _make_layer("point", marks, size=30, opacity=0.85, filled=True)
    spec = _make_spec(points, [layer], title, size, size)
    inner = {name: spec.pop(name) for name in ("width", "height", "layer")}
    heading = {"title": None, "labelFontSize": 11, "labelPadding": 2}
    facet = {"field": "field", "type": "nominal", "sort": _list_names(points, "field"), "header": heading}
    return {**spec, "facet": facet, "columns": columns, "spacing": 14, "spec": inner}


def render_svg(spec: Spec, theme: Theme = "page") -> str:
    """The figure as one `<svg>` element with its title and description."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    text: str = vl_convert.vegalite_to_svg(json.dumps(_apply_theme(spec, theme)), vl_version=VEGA_LITE)
    return _name_picture(text, spec)


def render_png(spec: Spec, scale: float = 2.0) -> bytes:
    """The figure on white, as large as a paper needs it."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    data: bytes = vl_convert.vegalite_to_png(json.dumps(_apply_theme(spec, "paper")), vl_version=VEGA_LITE, scale=scale)
    return data


def _make_spec(rows: list[dict[str, Any]], layers: list[Spec], title: str, width: int, height: int) -> Spec:
    if not rows:
        layers = [{"mark": {"type": "text", "text": "no data"}, "data": {"values": [{}]}}]
    spec: Spec = {"$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE}.json", "data": {"values": rows}}
    return {
        **spec,
        "width": width,
        "height": height,
        "title": title,
        "description": _describe_points(rows),
        "layer": layers,
    }


def _make_layer(kind: str, encoding: Mapping[str, Any], **style: Any) -> Spec:
    return {"mark": {"type": kind, **style}, "encoding": dict(encoding)}


def _vertical_axis(title: str, domain: tuple[float, float] | None, field: str = "y") -> Spec:
    scale = {"domain": list(domain)} if domain is not None else {}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 5}}


def _ratio_scale(rows: Sequence[Spec], axis: str) -> Spec:
    """Logarithmic, with room around what there is."""
    values = [row[axis] for row in rows]
    return {"type": "log", "nice": False, "domain": [min(values, default=1) / 1.25, max(values, default=1) * 1.25]}


def _rename_columns(
    records: Iterable[Mapping[str, Any]], columns: Mapping[str, str | None], keep: Any = None
) -> list[Spec]:
    """The columns under names of ours: a name from outside may hold what Vega-Lite reads as a path."""
    rows = [{name: _plain_value(row.get(column)) for name, column in columns.items() if column} for row in records]
    return [row for row in rows if _is_number(row["y"]) and (keep is None or keep(row))]


def _plain_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _series_names(rows: Iterable[Spec]) -> list[str]:
    return _list_names(rows, "series")


def _list_names(rows: Iterable[Spec], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows))


def _series_channel(rows: Sequence[Spec], values: Sequence[Any]) -> Spec:
    names = _series_names(rows)
    several = [values[index % len(values)] for index in range(len(names))]
    return {"field": "series", "type": "nominal", "title": None, "scale": {"domain": names, "range": several}}


def _colour_channel(rows: Sequence[Spec], series: str | None) -> Spec:
    return {"color": {"value": PALETTE[0]} if series is None else _series_channel(rows, PALETTE)}


def _dash_channel(rows: Sequence[Spec], series: str | None) -> Spec:
    dash = {} if series is None else {"strokeDash": _series_channel(rows, _DASHES)}
    return {**_colour_channel(rows, series), **dash}


def _without_dash(encoding: Spec, series: str | None, rows: Sequence[Spec], fill: bool) -> Spec:
    """The encoding of points: shapes where lines have dashes, and a colour for what fills them."""
    solid = {name: value for name, value in encoding.items() if name != "strokeDash"}
    shape = {} if series is None else {"shape": _series_channel(rows, _SHAPES)}
    return {**solid, **shape, **({"fill": solid["color"]} if fill else {})}


def _describe_points(rows: Sequence[Spec]) -> str:
    """What a reader who does not see the figure is told: how much it shows, and the range of its values."""
    if not rows:
        return "no data"
    values = [row["y"] for row in rows]
    lines = f" in {len(_series_names(rows))} series ({', '.join(_series_names(rows))})" if "series" in rows[0] else ""
    return f"{len(rows)} values{lines}, from {min(values):.4g} to {max(values):.4g}"


def _apply_theme(spec: Spec, theme: Theme) -> Spec:
    ink, background = ("currentColor", None) if theme == "page" else ("#000000", "#ffffff")
    named = {"labelFont": _FONT, "titleFont": _FONT, "labelColor": ink, "titleColor": ink}
    axis = {**named, "gridColor": ink, "gridOpacity": 0.13, "domainColor": ink, "tickColor": ink}
    config = {
        "aria": False,  # the figure as a whole is named instead
        "font": _FONT,
        "axis": {**axis, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 12},
        "legend": {
            **named,
            "labelFontSize": 11,
            "orient": "bottom",
            "labelLimit": 320,
            "symbolOpacity": 1,
            "symbolStrokeWidth": 0,
        },
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 13, "subtitleFontSize": 11, "anchor": "start"},
        "text": {"color": ink, "font": _FONT},
        "rule": {"color": ink},
        "view": {"stroke": None},
    }
    return {**spec, "background": background, "config": config}


def _name_picture(text: str, spec: Spec) -> str:
    """The picture with what a screen reader says of it."""
    title = spec["title"] if isinstance(spec["title"], str) else f"{spec['title']['text']}, {spec['title']['subtitle']}"
    name, words = html.escape(title or "figure"), html.escape(spec["description"])
    head, _, body = text.partition(">")
    body = re.sub(r"<g [^<>]*>", lambda tag: _ROLES.sub("", tag[0]), body)
    return f'{head} role="img" aria-label="{name}: {words}"><title>{name}</title><desc>{words}</desc>{body}'
