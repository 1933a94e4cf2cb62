"""The shape of an application's argument: one stream, a pair, or a list and an index.

Each function returns the streams that are consumed, each with its role and with the expression that names it where the
call writes it out. `OpError` for a wrong shape, `Reported` where an operand was reported before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from opsmith.targets.step.language.build import AbstractStream
from opsmith.targets.step.language.ops import OpError
from opsmith.targets.step.language.values import Unknown, describe_value


class Reported(Exception):
    """An operand is unknown: what made it so was reported before."""


Operands = list[tuple[AbstractStream, str, ast.expr | None]]


def _stream_of(value: Any, expected: str, remedy: str = "") -> AbstractStream:
    if isinstance(value, AbstractStream):
        return value
    if isinstance(value, Unknown):
        raise Reported
    raise OpError(describe_value(value), expected, remedy)


def _list_elements(node: ast.expr | None, count: int) -> Sequence[ast.expr | None]:
    """The source expressions of a tuple's elements, where it is written out in the call."""
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == count:
        return node.elts
    return [None] * count


def _list_streams(values: Sequence[Any], node: ast.expr | None, expected: str) -> Operands:
    """Each value as a stream without a role."""
    places = _list_elements(node, len(values))
    return [(_stream_of(value, expected), "", place) for value, place in zip(values, places, strict=True)]


_PAIRS = {  # the second stream's role, and the remedy
    "Zip": ("", "step.Zip().apply((step.Zip().apply((E0, E1)), E2)), or Map, which zips any number"),
    "RepeatRef": ("reference", ".apply((data, reference))"),
    "Partition": ("index", ".apply((data, index))"),
}


def _one_stream(op: str, argument: Any, node: ast.expr) -> Operands:
    if isinstance(argument, AbstractStream):
        return [(argument, "", node)]
    if isinstance(argument, tuple) and argument and all(isinstance(element, AbstractStream) for element in argument):
        if len(argument) == 2 and argument[0].op == "Copy":
            raise OpError("the pair of streams from Copy", "one stream", "A, B = step.Copy().apply(E0)")
        remedy = "step.Zip().apply((E0, E1)) first" if op in ("Accum", "Scan") else "apply it to each stream"
        raise OpError(f"a tuple of {len(argument)} streams", "one stream", remedy)
    return [(_stream_of(argument, "one stream", f"[step.{op}(...).apply(s) for s in list]"), "", node)]


def _map_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    if isinstance(argument, AbstractStream):
        return [(argument, "", node)]
    if isinstance(argument, list):
        description = f"a list of {len(argument)} streams"
        raise OpError(description, "a stream or a tuple", "[step.Map(fn=fn_x).apply(s) for s in E2]")
    if not isinstance(argument, tuple):
        return [(_stream_of(argument, "a stream or a tuple of streams"), "", node)]
    if not argument:
        raise OpError("an empty tuple", "a stream or a tuple of streams")
    return _list_streams(argument, node, "streams in the tuple")


def _require_pair(argument: Any, expected: str, remedy: str) -> Sequence[Any]:
    if isinstance(argument, Unknown):
        raise Reported
    if not isinstance(argument, (tuple, list)) or len(argument) != 2:
        description = f"{len(argument)} streams" if isinstance(argument, (tuple, list)) else describe_value(argument)
        raise OpError(description, expected, remedy)
    return argument


def _two_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    role, remedy = _PAIRS[op]
    first, second = _list_streams(_require_pair(argument, "2 streams", remedy), node, "a stream")
    return [first, (second[0], role, second[2])]


def _merge_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    streams, index = _require_pair(argument, "a pair: (list of streams, index)", ".apply(([X0, X1], index))")
    places = _list_elements(node, 2)
    if isinstance(streams, Unknown):
        raise Reported
    if not isinstance(streams, (list, tuple)) or not streams:
        raise OpError(describe_value(streams), "a list of streams first", ".apply(([X0, X1], index))")
    operands = _list_streams(streams, places[0], "streams in the list")
    return [*operands, (_stream_of(index, "an index stream"), "index", places[1])]


_SHAPES: dict[str, Callable[[str, Any, ast.expr], Operands]] = {
    "Map": _map_streams,
    "Zip": _two_streams,
    "RepeatRef": _two_streams,
    "Partition": _two_streams,
    "Merge": _merge_streams,
}


def list_operands(op: str, argument: Any, node: ast.expr) -> Operands:
    """The streams that `op` consumes when it is applied to `argument`, written as `node`."""
    return _SHAPES.get(op, _one_stream)(op, argument, node)
