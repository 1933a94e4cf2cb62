"""One rule per primitive: its type rule (`ops`) applied to the operands, and its node in the graph. (section 5)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opsmith.targets.step.language import ops
from opsmith.targets.step.language.build import GraphBuilder, Routing, Stream
from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.ops import OpError
from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import Multihot, StreamType


def _type(stream: Stream) -> StreamType:
    if stream.type is None:
        raise AssertionError("unknown types never reach a rule")
    return stream.type


def _map(graph: GraphBuilder, streams: list[Stream], line: int, fn: Fn) -> Stream:
    """Several streams are zipped first, so the value is that of a Map of Zips."""
    result = ops.map_(fn, [_type(stream) for stream in streams])
    value = streams[0].value
    for stream in streams[1:]:
        value = graph.value("Zip", (value, stream.value))
    return graph.emit("Map", line, streams, result, fn, value=graph.value("Map", (value,), fn))


def _zip(graph: GraphBuilder, streams: list[Stream], line: int) -> Stream:
    return graph.emit("Zip", line, streams, ops.zip_(_type(streams[0]), _type(streams[1])))


def _accum(graph: GraphBuilder, streams: list[Stream], line: int, fn: Fn, b: int) -> Stream:
    return graph.emit("Accum", line, streams, ops.accum(fn, _type(streams[0]), b), fn, (b,))


def _scan(graph: GraphBuilder, streams: list[Stream], line: int, fn: Fn, b: int) -> Stream:
    return graph.emit("Scan", line, streams, ops.scan(fn, _type(streams[0]), b), fn, (b,))


def _promote(graph: GraphBuilder, streams: list[Stream], line: int, b: int) -> Stream:
    return graph.emit("Promote", line, streams, ops.promote(_type(streams[0]), b), ints=(b,))


def _flatten(graph: GraphBuilder, streams: list[Stream], line: int, L: tuple[int, ...]) -> Stream:
    return graph.emit("Flatten", line, streams, ops.flatten(_type(streams[0]), L), ints=L)


def _reshape(graph: GraphBuilder, streams: list[Stream], line: int, S: Dim, L: tuple[int, ...]) -> Stream:
    kind = _type(streams[0])
    graph.reads |= S.symbols.union(*(kind.dims[i].symbols for i in L if 0 <= i < len(kind.dims)))
    return graph.emit("Reshape", line, streams, ops.reshape(kind, S, L, graph.sizes), ints=L, dim=S)


def _repeat(graph: GraphBuilder, streams: list[Stream], line: int, n: Dim) -> Stream:
    return graph.emit("Repeat", line, streams, ops.repeat(_type(streams[0]), n), dim=n)


def _repeat_ref(graph: GraphBuilder, streams: list[Stream], line: int) -> Stream:
    """The reference's values are not read, so the value is that of a Repeat."""
    result = ops.repeat_ref(_type(streams[0]), _type(streams[1]))
    value = graph.value("Repeat", (streams[0].value,), dim=result.dims[0])
    return graph.emit("RepeatRef", line, streams, result, value=value)


def _bufferize(graph: GraphBuilder, streams: list[Stream], line: int, a: int) -> Stream:
    return graph.emit("Bufferize", line, streams, ops.bufferize(_type(streams[0]), a), ints=(a,))


def _streamify(graph: GraphBuilder, streams: list[Stream], line: int) -> Stream:
    return graph.emit("Streamify", line, streams, ops.streamify(_type(streams[0])))


def _copy(graph: GraphBuilder, streams: list[Stream], line: int) -> tuple[Stream, Stream]:
    value = streams[0].value
    first, second = graph.emit_values("Copy", line, streams, [(kind, value) for kind in ops.copy(_type(streams[0]))])
    return first, second


def _identity(graph: GraphBuilder, streams: list[Stream], line: int) -> Stream:
    return graph.emit("Identity", line, streams, ops.identity(_type(streams[0])), value=streams[0].value)


def _partition(graph: GraphBuilder, streams: list[Stream], line: int, N: int) -> list[Stream]:
    data, index = streams
    kind = _type(index).dtype
    length = None
    if isinstance(kind, Multihot):
        length = kind.length.value(graph.sizes) if kind.length.symbols <= graph.sizes.keys() else None
        graph.reads |= kind.length.symbols
    number = len(graph.routings)
    types = ops.partition(_type(data), _type(index), N, length, number)
    graph.routings.append(Routing(index, line, N))
    results = [(kind, graph.number("Partition", number, i, data.value, index.value)) for i, kind in enumerate(types)]
    return graph.emit_values("Partition", line, streams, results, ints=(N,), partition=number)


def _merge(graph: GraphBuilder, streams: list[Stream], line: int, fn: Fn) -> Stream:
    *items, index = streams
    number = ops.merged_partition([_type(stream) for stream in items])
    routing = graph.routings[number]
    if len(items) != routing.count:
        expected = f"all {routing.count} streams of the Partition on line {routing.line}"
        raise OpError(f"{len(items)} streams", expected, "list every one, in order")
    compare = routing.index.value != index.value
    if compare:
        _same_index(graph, index, routing, line)
    result = ops.merge(fn, [_type(stream) for stream in items], _type(index))
    value = graph.value("Merge", [stream.value for stream in streams], fn)
    return graph.emit_values("Merge", line, streams, [(result, value)], fn=fn, partition=number, compare_index=compare)[
        0
    ]


def _same_index(graph: GraphBuilder, index: Stream, routing: Routing, line: int) -> None:
    original, name = routing.index, routing.index.name or "X"
    if _type(index) != _type(original) or (_is_input(graph, index) and _is_input(graph, original)):
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
    return next(other for other in graph.streams if other.value == stream.value).line is None


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
