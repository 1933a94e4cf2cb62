"""One rule per primitive: its type rule (`ops`) applied to the operands, and its node in the graph. (section 5)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from opsmith.targets.step.language import ops
from opsmith.targets.step.language.build import GraphBuilder, Routing, Stream
from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.ops import OpError
from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import Multihot, StreamType

Types = list[StreamType]  # of the operands
_KEPT = 4096  # results of each type rule; rules are pure, and candidates for a task type the same expressions

_map_type, _zip_type = lru_cache(_KEPT)(ops.map_), lru_cache(_KEPT)(ops.zip_)
_accum_type, _scan_type = lru_cache(_KEPT)(ops.accum), lru_cache(_KEPT)(ops.scan)
_promote_type, _flatten_type = lru_cache(_KEPT)(ops.promote), lru_cache(_KEPT)(ops.flatten)
_repeat_type, _repeat_ref_type = lru_cache(_KEPT)(ops.repeat), lru_cache(_KEPT)(ops.repeat_ref)
_bufferize_type, _streamify_type = lru_cache(_KEPT)(ops.bufferize), lru_cache(_KEPT)(ops.streamify)


def _map(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, fn: Fn) -> Stream:
    """Several streams are zipped first, so the value is that of a Map of Zips."""
    result = _map_type(fn, tuple(types))
    value = streams[0].value
    for stream in streams[1:]:
        value = graph.value("Zip", (value, stream.value))
    return graph.emit("Map", line, streams, result, fn, value=graph.value("Map", (value,), fn))


def _zip(graph: GraphBuilder, streams: list[Stream], types: Types, line: int) -> Stream:
    return graph.emit("Zip", line, streams, _zip_type(types[0], types[1]))


def _accum(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, fn: Fn, b: int) -> Stream:
    return graph.emit("Accum", line, streams, _accum_type(fn, types[0], b), fn, (b,))


def _scan(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, fn: Fn, b: int) -> Stream:
    return graph.emit("Scan", line, streams, _scan_type(fn, types[0], b), fn, (b,))


def _promote(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, b: int) -> Stream:
    return graph.emit("Promote", line, streams, _promote_type(types[0], b), ints=(b,))


def _flatten(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, L: tuple[int, ...]) -> Stream:
    return graph.emit("Flatten", line, streams, _flatten_type(types[0], L), ints=L)


def _reshape(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, S: Dim, L: tuple[int, ...]) -> Stream:
    kind = types[0]
    graph.reads |= S.symbols.union(*(kind.dims[i].symbols for i in L if 0 <= i < len(kind.dims)))
    return graph.emit("Reshape", line, streams, ops.reshape(kind, S, L, graph.sizes), ints=L, dim=S)


def _repeat(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, n: Dim) -> Stream:
    return graph.emit("Repeat", line, streams, _repeat_type(types[0], n), dim=n)


def _repeat_ref(graph: GraphBuilder, streams: list[Stream], types: Types, line: int) -> Stream:
    """The reference's values are not read, so the value is that of a Repeat."""
    result = _repeat_ref_type(types[0], types[1])
    value = graph.value("Repeat", (streams[0].value,), dim=result.dims[0])
    return graph.emit("RepeatRef", line, streams, result, value=value)


def _bufferize(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, a: int) -> Stream:
    return graph.emit("Bufferize", line, streams, _bufferize_type(types[0], a), ints=(a,))


def _streamify(graph: GraphBuilder, streams: list[Stream], types: Types, line: int) -> Stream:
    return graph.emit("Streamify", line, streams, _streamify_type(types[0]))


def _copy(graph: GraphBuilder, streams: list[Stream], types: Types, line: int) -> tuple[Stream, Stream]:
    value = streams[0].value
    first, second = graph.emit_values("Copy", line, streams, [(kind, value) for kind in ops.copy(types[0])])
    return first, second


def _identity(graph: GraphBuilder, streams: list[Stream], types: Types, line: int) -> Stream:
    return graph.emit("Identity", line, streams, ops.identity(types[0]), value=streams[0].value)


def _partition(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, N: int) -> list[Stream]:
    data, index = streams
    kind = types[1].dtype
    length = None
    if isinstance(kind, Multihot):
        length = kind.length.value(graph.sizes) if kind.length.symbols <= graph.sizes.keys() else None
        graph.reads |= kind.length.symbols
    number = len(graph.routings)
    made = ops.partition(types[0], types[1], N, length, number)
    graph.routings.append(Routing(index, line, N))
    results = [(kind, graph.number("Partition", number, i, data.value, index.value)) for i, kind in enumerate(made)]
    return graph.emit_values("Partition", line, streams, results, ints=(N,), partition=number)


def _merge(graph: GraphBuilder, streams: list[Stream], types: Types, line: int, fn: Fn) -> Stream:
    *items, index = streams
    number = ops.merged_partition(types[:-1])
    routing = graph.routings[number]
    if len(items) != routing.count:
        expected = f"all {routing.count} streams of the Partition on line {routing.line}"
        raise OpError(f"{len(items)} streams", expected, "list every one, in order")
    compare = routing.index.value != index.value
    if compare:
        _same_index(graph, index, routing, line)
    result = ops.merge(fn, types[:-1], types[-1])
    value = graph.value("Merge", [stream.value for stream in streams], fn)
    return graph.emit_values("Merge", line, streams, [(result, value)], fn=fn, partition=number, compare_index=compare)[
        0
    ]


def _same_index(graph: GraphBuilder, index: Stream, routing: Routing, line: int) -> None:
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


def _is_input(graph: GraphBuilder, stream: Stream) -> bool:
    """Whether the stream is an input, or a copy of one."""
    return stream.value in graph.input_values


RULES: Mapping[str, Callable[..., Any]] = {
    "Map": _map,
    "Zip": _zip,
    "Accum": _accum,
    "Scan": _scan,
    "Promote": _promote,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Repeat": _repeat,
    "RepeatRef": _repeat_ref,
    "Bufferize": _bufferize,
    "Streamify": _streamify,
    "Copy": _copy,
    "Identity": _identity,
    "Partition": _partition,
    "Merge": _merge,
}
