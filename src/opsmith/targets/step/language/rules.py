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

_map_type, _zip_type = lru_cache(_KEPT)(ops.infer_map), lru_cache(_KEPT)(ops.infer_zip)
_accum_type, _scan_type = lru_cache(_KEPT)(ops.infer_accum), lru_cache(_KEPT)(ops.infer_scan)
_promote_type, _flatten_type = lru_cache(_KEPT)(ops.infer_promote), lru_cache(_KEPT)(ops.infer_flatten)
_repeat_type, _repeat_ref_type = lru_cache(_KEPT)(ops.infer_repeat), lru_cache(_KEPT)(ops.infer_repeat_ref)
_bufferize_type, _streamify_type = lru_cache(_KEPT)(ops.infer_bufferize), lru_cache(_KEPT)(ops.infer_streamify)


def _emit_map(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, fn: FnSpec
) -> AbstractStream:
    """Several streams are zipped first, so the value is that of a Map of Zips."""
    result = _map_type(fn, tuple(types))
    value = streams[0].value
    for stream in streams[1:]:
        value = graph.number_application("Zip", (value, stream.value))
    return graph.emit_node("Map", line, streams, result, fn, value=graph.number_application("Map", (value,), fn))


def _emit_zip(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int) -> AbstractStream:
    return graph.emit_node("Zip", line, streams, _zip_type(types[0], types[1]))


def _emit_accum(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, fn: FnSpec, b: int
) -> AbstractStream:
    return graph.emit_node("Accum", line, streams, _accum_type(fn, types[0], b), fn, (b,))


def _emit_scan(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, fn: FnSpec, b: int
) -> AbstractStream:
    return graph.emit_node("Scan", line, streams, _scan_type(fn, types[0], b), fn, (b,))


def _emit_promote(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, b: int
) -> AbstractStream:
    return graph.emit_node("Promote", line, streams, _promote_type(types[0], b), ints=(b,))


def _emit_flatten(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, L: tuple[int, ...]
) -> AbstractStream:
    return graph.emit_node("Flatten", line, streams, _flatten_type(types[0], L), ints=L)


def _emit_reshape(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, S: Dim, L: tuple[int, ...]
) -> AbstractStream:
    kind = types[0]
    graph.reads |= S.symbols.union(*(kind.dims[i].symbols for i in L if 0 <= i < len(kind.dims)))
    return graph.emit_node("Reshape", line, streams, ops.infer_reshape(kind, S, L, graph.sizes), ints=L, dim=S)


def _emit_repeat(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, n: Dim) -> AbstractStream:
    return graph.emit_node("Repeat", line, streams, _repeat_type(types[0], n), dim=n)


def _emit_repeat_ref(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int) -> AbstractStream:
    """The reference's values are not read, so the value is that of a Repeat."""
    result = _repeat_ref_type(types[0], types[1])
    value = graph.number_application("Repeat", (streams[0].value,), dim=result.dims[0])
    return graph.emit_node("RepeatRef", line, streams, result, value=value)


def _emit_bufferize(
    graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int, a: int
) -> AbstractStream:
    return graph.emit_node("Bufferize", line, streams, _bufferize_type(types[0], a), ints=(a,))


def _emit_streamify(graph: GraphBuilder, streams: list[AbstractStream], types: Types, line: int) -> AbstractStream:
    return graph.emit_node("Streamify", line, streams, _streamify_type(types[0]))


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
    if index.type != original.type or (_is_input(graph, index) and _is_input(graph, original)):
        raise OpError(
            f"index {index}: {index.type}",
            f"the index of Partition on line {routing.line}, {original}: {original.type}",
            f"{name}_a, {name}_b = step.Copy().apply({name}); one for each",
        )
    graph.warnings.append(
        f"line {line}: Merge's index {index.name or 'expression'} is another expression than that of Partition "
        f"on line {routing.line}; their values are compared when the program runs"
    )


def _is_input(graph: GraphBuilder, stream: AbstractStream) -> bool:
    """Whether the stream is an input, or a copy of one."""
    return stream.value in graph.input_values


RULES: Mapping[str, Callable[..., Any]] = {
    "Map": _emit_map,
    "Zip": _emit_zip,
    "Accum": _emit_accum,
    "Scan": _emit_scan,
    "Promote": _emit_promote,
    "Flatten": _emit_flatten,
    "Reshape": _emit_reshape,
    "Repeat": _emit_repeat,
    "RepeatRef": _emit_repeat_ref,
    "Bufferize": _emit_bufferize,
    "Streamify": _emit_streamify,
    "Copy": _emit_copy,
    "Identity": _emit_identity,
    "Partition": _emit_partition,
    "Merge": _emit_merge,
}
