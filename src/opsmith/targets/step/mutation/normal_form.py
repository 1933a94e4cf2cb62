"""When are two programs the same by the laws of the primitives, whatever the data and the sizes?

Every field of every stream gets a term, and equal terms have equal data in row-major order; with equal types, which the
checker guarantees of outputs, programs of equal terms are equal. The laws (section numbers of the language reference):

    view       Promote, Flatten, Reshape, Bufferize, Streamify, Copy, Identity keep the row-major data (5.5 to 5.13),
               so each is its operand; types alone tell them apart, and a stream's type is no part of its term
    fields     Zip appends fields (5.2); Map of several streams zips them first (5.1); a fn whose text returns input
               fields untouched selects fields
    repeat     a Repeat copies chunks of one element each (5.8); by 1 is a view; of a Repeat is one Repeat when the
               inner one's runs or chunks are its chunks; RepeatRef repeats by its reference's innermost dim (5.9)
    pointwise  Map applies its fn to the elements in order (5.1): stream dims do not matter
    runs       Accum and Scan read runs of prod(d[:b]) elements (5.3, 5.4); over runs of one they agree, and a fn whose
               first step from init returns input fields untouched selects fields
    routing    Partition depends on data and index (5.14), Merge on its items, in order, and the index (5.15)
    fns        equal texts and types are one fn; fields that a fn's text treats alike may trade places

A law that is wrong would hide a wrong program, so each is tested against the simulator. What is true but not proven by
these laws stays unequal: unequal terms say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from operator import mul

from opsmith.targets.step.language.dims import Dim, literal, symbol
from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import StreamType, element_dims, fields_of
from opsmith.targets.step.mutation.fn_laws import exchangeable, first_step, identity_of, projection

Fields = tuple[int, ...]  # one term number per field of a stream
ONE = literal(1)
VIEWS = frozenset({"Promote", "Flatten", "Reshape", "Bufferize", "Streamify", "Copy", "Identity"})


class Terms:
    """Hash-consed terms of one task; numbers of equal terms are equal across all programs that share the table."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._terms: list[tuple[Hashable, ...]] = []

    def number(self, *term: Hashable) -> int:
        if term not in self._numbers:
            self._numbers[term] = len(self._terms)
            self._terms.append(term)
        return self._numbers[term]

    def term(self, number: int) -> tuple[Hashable, ...]:
        return self._terms[number]


def normal_form(terms: Terms, graph: Graph) -> tuple[Fields, ...]:
    """The terms of a well-typed program's outputs."""
    walk = _Walk(terms, graph)
    for node in graph.nodes:
        walk.visit(node)
    return tuple(walk.fields[stream] for stream in graph.outputs)


class _Walk:
    """The terms of one graph's streams. `routed` renames `?p.i` to what it counts, so that p does not matter."""

    def __init__(self, terms: Terms, graph: Graph) -> None:
        self.terms, self.graph = terms, graph
        self.fields: dict[int, Fields] = {}
        self.routed: dict[str, Dim] = {}
        for stream, name in enumerate(graph.inputs):
            count = len(fields_of(graph.types[stream].dtype))
            self.fields[stream] = tuple(terms.number("input", name, field) for field in range(count))

    def visit(self, node: Node) -> None:
        if node.op in VIEWS:
            results = [self.fields[node.operands[0]]] * len(node.results)
        else:
            results = _LAWS[node.op](self, node)
        self.fields.update(zip(node.results, results, strict=True))

    def zipped(self, streams: Sequence[int]) -> Fields:
        return tuple(field for stream in streams for field in self.fields[stream])

    def size(self, dims: Sequence[Dim]) -> Dim:
        """The product of dims, in terms that do not depend on how Partitions are numbered."""
        product = reduce(mul, dims, ONE)
        size = Dim(product.coefficient)
        for name, power in product.powers:
            factor = self.routed.get(name, symbol(name))
            for _ in range(abs(power)):
                size = size * factor if power > 0 else size / factor
        return size

    def kind(self, stream: int) -> StreamType:
        return self.graph.types[stream]

    def applied(self, op: str, fn: Fn, arguments: Fields, *key: Hashable) -> Fields:
        """One term per field that fn returns."""
        call = self.terms.number(op, identity_of(fn), *key, _ordered(fn, arguments))
        return tuple(self.terms.number("field", call, at) for at in range(len(fields_of(fn.output_dtype))))


def _ordered(fn: Fn, arguments: Fields) -> Fields:
    """The arguments with exchangeable ones in order of their numbers."""
    found = list(arguments)
    for _ in found:  # as often as a bubble sort may need
        for i, j in exchangeable(fn):
            if found[i] > found[j]:
                found[i], found[j] = found[j], found[i]
    return tuple(found)


def _zip(walk: _Walk, node: Node) -> list[Fields]:
    return [walk.zipped(node.operands)]


def _map(walk: _Walk, node: Node) -> list[Fields]:
    fn, arguments = _fn(node), walk.zipped(node.operands)
    kept = projection(fn)
    return [walk.applied("Map", fn, arguments) if kept is None else tuple(arguments[at] for at in kept)]


def _reduction(walk: _Walk, node: Node) -> list[Fields]:
    fn, arguments = _fn(node), walk.zipped(node.operands)
    run = walk.size(walk.kind(node.operands[0]).dims[: node.ints[0]])
    if run != ONE:
        return [walk.applied(node.op, fn, arguments, run)]
    kept = first_step(fn)
    return [walk.applied("step", fn, arguments) if kept is None else tuple(arguments[at] for at in kept)]


def _repeat(walk: _Walk, node: Node) -> list[Fields]:
    data = node.operands[0]
    count = walk.size(walk.kind(node.results[0]).dims[:1])
    chunks = [walk.size(element_dims(field)) for field in fields_of(walk.kind(data).dtype)]
    return [tuple(_repeated(walk.terms, *part, count) for part in zip(walk.fields[data], chunks, strict=True))]


def _repeated(terms: Terms, field: int, chunk: Dim, count: Dim) -> int:
    if count == ONE:
        return field
    match terms.term(field):
        case ("Repeat", int(inner), Dim() as inner_chunk, Dim() as inner_count):
            if chunk in (inner_chunk, inner_chunk * inner_count):
                return terms.number("Repeat", inner, inner_chunk, inner_count * count)
    return terms.number("Repeat", field, chunk, count)


def _partition(walk: _Walk, node: Node) -> list[Fields]:
    data, (index,) = walk.fields[node.operands[0]], walk.fields[node.operands[1]]
    ways = range(len(node.results))
    for way in ways:
        walk.routed[f"?{node.partition}.{way}"] = symbol(f"?{index}:{way}")
    return [tuple(walk.terms.number("Partition", field, index, way) for field in data) for way in ways]


def _merge(walk: _Walk, node: Node) -> list[Fields]:
    *items, index = (walk.fields[stream] for stream in node.operands)
    fn = _fn(node)
    inner = walk.size(walk.kind(node.operands[0]).dims[:-1])
    merged = walk.terms.number("Merge", identity_of(fn), inner, tuple(_ordered(fn, item) for item in items), index)
    return [tuple(walk.terms.number("field", merged, at) for at in range(len(fields_of(fn.output_dtype))))]


def _fn(node: Node) -> Fn:
    if node.fn is None:
        raise AssertionError(f"{node.op} always has a fn")
    return node.fn


_LAWS: Mapping[str, Callable[[_Walk, Node], list[Fields]]] = {
    "Zip": _zip,
    "Map": _map,
    "Accum": _reduction,
    "Scan": _reduction,
    "Repeat": _repeat,
    "RepeatRef": _repeat,
    "Partition": _partition,
    "Merge": _merge,
}
