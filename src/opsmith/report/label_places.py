"""Texts beside points, placed so that they cover neither each other nor a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.report.figure_style import SMALL_SIZE, measure_text

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
