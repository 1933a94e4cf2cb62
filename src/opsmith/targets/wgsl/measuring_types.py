"""How large a type of WGSL is, by the language's rules of layout."""

from __future__ import annotations

import re

from opsmith.targets.wgsl.source import split_array
from opsmith.targets.wgsl.syntax import Module

_VECTOR = re.compile(r"vec([234])<(\w+)>")
_MATRIX = re.compile(r"mat([234])x([234])(?:<(\w+)>|([fh]))")
_SCALARS = {"f32": 4, "i32": 4, "u32": 4, "f16": 2, "bool": 4}


def split_vector(text: str) -> tuple[str, int]:
    """The entry of a vector of two or four and its width; of another type: the type, and 1.

    >>> split_vector("vec4<f32>"), split_vector("u32")
    (('f32', 4), ('u32', 1))
    """
    match = _VECTOR.fullmatch(text)
    return (match[2], int(match[1])) if match and match[1] != "3" else (text, 1)


def measure_type(module: Module, text: str) -> int | None:
    """Bytes of a type of a fixed size; None: its size cannot be said."""
    layout = _find_layout(module, text, 0)
    return layout[0] if layout is not None else None


def _find_layout(module: Module, text: str, depth: int) -> tuple[int, int] | None:
    """Size and alignment."""
    type_ = module.resolve_type(text)
    if depth > 8:
        return None
    if type_.startswith("atomic<") or type_ in _SCALARS:
        size = _SCALARS.get(type_, 4)
        return size, size
    if type_.startswith("array<"):
        return _find_array_layout(module, type_, depth)
    if type_ in module.structures:
        return _find_structure_layout(module, type_, depth)
    return _find_grouped_layout(type_)


def _find_grouped_layout(type_: str) -> tuple[int, int] | None:
    """That of a vector or a matrix."""
    vector, matrix = _VECTOR.fullmatch(type_), _MATRIX.fullmatch(type_)
    if vector is not None and vector[2] in _SCALARS:
        width, size = int(vector[1]), _SCALARS[vector[2]]
        return width * size, (4 if width == 3 else width) * size
    if matrix is not None:
        size = 2 if "f16" in (matrix[3] or "") or matrix[4] == "h" else 4
        rows = 4 if matrix[2] == "3" else int(matrix[2])
        return int(matrix[1]) * rows * size, rows * size
    return None


def _find_array_layout(module: Module, type_: str, depth: int) -> tuple[int, int] | None:
    element, length = split_array(type_)
    layout, count = _find_layout(module, element, depth + 1), module.compute_number(length)
    if layout is None or count is None or count < 1:
        return None
    return count * _round_up(*layout), layout[1]


def _find_structure_layout(module: Module, type_: str, depth: int) -> tuple[int, int] | None:
    end, widest = 0, 1
    for member in module.structures[type_]:
        layout = _find_layout(module, member.type, depth + 1)
        if layout is None:
            return None
        end, widest = _round_up(end, layout[1]) + layout[0], max(widest, layout[1])
    return _round_up(end, widest), widest


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
