"""One rule per primitive: its type rule (`ops`) applied to the operands, and its node in the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.targets.step.language import ops
from opsmith.targets.step.language.build import AbstractStream, GraphBuilder, Routing
from opsmith.targets.step.language.ops import OpError
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import Multihot, StreamType

Types = list[StreamType]  # of the operands
_KEPT = 4096  # results of each type rule; rules are pure, and candidates for a task type the same expressions

_TYPES: Mapping[
    str, Callable[..., StreamType]
] = {  # of primitives whose result says all: the operands' types, then keywords
    op: lru_cache(_KEPT)(rule)
    for op, rule in (
        ("Zip", ops.infer_zip),
        ("Accum", ops.infer_accum),
        ("Scan", ops.infer_scan),
        ("Promote", ops.infer_promote),
        ("Flatten", ops.infer_flatten),
        ("Repeat", ops.infer_repeat),
        ("RepeatRef", ops.infer_repeat_ref),
        ("Bufferize", ops.infer_bufferize),
        ("Streamify", ops.infer_streamify),
    )
}
_CARRIED = frozenset({"fn", "n"})  # keywords that a node has a place of its own for
_map_type = lru_cache(_KEPT)(ops.infer_map)


def apply_rule(
    graph: GraphBuilder, op: str, streams: list[AbstractStream], types: Types, line: int, config: Mapping[str, Any]
) -> Any:
    """The results of an application, recorded in the graph. Raises OpError."""
    if op in _RULES:
        return _RULES[op](graph, streams, types, line, **config)
    result = _TYPES[op](*types, **config)
    numbers = [value for key, value in config.items() if key not in _CARRIED]  # all else tells two nodes apart, too
    ints = numbers[0] if numbers and isinstance(numbers[0], tuple) else tuple(numbers)
    return graph.emit_node(op, line, streams, result, config.get("fn"), ints, config.get("n"))


def _emit_map(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, fn: FnSpec
) -> AbstractStream:
    """Several streams are zipped first, so the value is that of a Map of Zips."""
    result = _map_type(fn, tuple(types))
    value = streams[0].value
    for stream in streams[1:]:
        value = graph.number_application("Zip", (value, stream.value))
    return graph.emit_node("Map", line, streams, result, fn, value=graph.number_application("Map", (value,), fn))


def _emit_reshape(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, S: Dim, L: tuple[int, ...]
) -> AbstractStream:
    kind = types[0]
    graph.reads |= S.symbols.union(*(kind.dims[i].symbols for i in L if 0 <= i < len(kind.dims)))
    return graph.emit_node("Reshape", line, streams, ops.infer_reshape(kind, S, L, graph.sizes), ints=L, dim=S)


def _emit_repeat_ref(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int) -> AbstractStream:
    """The reference's values are not read, so the value is that of a Repeat."""
    result = _TYPES["RepeatRef"](*types)
    value = graph.number_application("Repeat", (streams[0].value,), dim=result.dims[0])
    return graph.emit_node("RepeatRef", line, streams, result, value=value)


def _emit_copy(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int
) -> tuple[AbstractStream, AbstractStream]:
    value = streams[0].value
    first, second = graph.emit_values("Copy", line, streams, [(kind, value) for kind in ops.infer_copy(types[0])])
    return first, second


def _emit_identity(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int) -> AbstractStream:
    return graph.emit_node("Identity", line, streams, ops.infer_identity(types[0]), value=streams[0].value)


def _emit_partition(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, N: int
) -> list[AbstractStream]:
    data, index = streams
    kind = types[1].dtype
    length = None
    if isinstance(kind, Multihot):
        length = kind.length.value(graph.sizes) if kind.length.symbols <= graph.sizes.keys() else None
        graph.reads |= kind.length.symbols
    number = len(graph.routings)
    routed_types = ops.infer_partition(types[0], types[1], N, length, number)
    graph.routings.append(Routing(index, line, N))
    results = [
        (kind, graph.number_value("Partition", number, i, data.value, index.value))
        for i, kind in enumerate(routed_types)
    ]
    return graph.emit_values("Partition", line, streams, results, ints=(N,), partition=number)


def _emit_merge(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, fn: FnSpec
) -> AbstractStream:
    *items, index = streams
    number = ops.merged_partition(types[:-1])
    routing = graph.routings[number]
    if len(items) != routing.count:
        expected = f"all {routing.count} streams of the Partition on line {routing.line}"
        raise OpError(f"{len(items)} streams", expected, "list every one, in order")
    compare = routing.index.value != index.value
    if compare:
        _check_index(graph, index, routing, line)
    result = ops.infer_merge(fn, types[:-1], types[-1])
    value = graph.number_application("Merge", [stream.value for stream in streams], fn)
    return graph.emit_values("Merge", line, streams, [(result, value)], fn=fn, partition=number, compare_index=compare)[
        0
    ]


def _check_index(graph: GraphBuilder, index: AbstractStream, routing: Routing, line: int) -> None:
    original, name = routing.index, routing.index.name or "X"
    are_inputs = {index.value, original.value} <= graph.input_values  # or copies of inputs
    if index.type != original.type or are_inputs:
        raise OpError(
            f"index {index}: {index.type}",
            f"the index of Partition on line {routing.line}, {original}: {original.type}",
            f"{name}_a, {name}_b = step.Copy().apply({name}); one for each",
        )
    graph.warnings.append(
        f"line {line}: Merge's index {index.name or 'expression'} is another expression than that of Partition "
        f"on line {routing.line}; their values are compared when the program runs"
    )


_RULES: Mapping[str, Callable[..., Any]] = {  # of those whose values, sizes or routes take part
    "Map": _emit_map,
    "Reshape": _emit_reshape,
    "RepeatRef": _emit_repeat_ref,
    "Copy": _emit_copy,
    "Identity": _emit_identity,
    "Partition": _emit_partition,
    "Merge": _emit_merge,
}
