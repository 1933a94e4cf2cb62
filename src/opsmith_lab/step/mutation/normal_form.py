"""The normal form of a program: equal for two that are the same by the laws of the primitives, at any data and sizes.

Every field of every stream gets a term, and equal terms have equal data in row-major order; with equal types, which the
checker guarantees of outputs, programs of equal terms are equal. The laws:

    view       Promote, Flatten, Reshape, Bufferize, Streamify, Copy, Identity keep the row-major data, so each is its
               operand; types alone tell them apart, and a stream's type is no part of its term
    fields     Zip appends fields; Map of several streams zips them first; a fn whose text returns input fields
               untouched selects fields
    repeat     a Repeat copies chunks of one element each; by 1 is a view; of a Repeat is one Repeat when the inner
               one's runs or chunks are its chunks; RepeatRef repeats by its reference's innermost dim
    pointwise  Map applies its fn to the elements in order: stream dims do not matter
    runs       Accum and Scan read runs of prod(d[:b]) elements; over runs of one they agree, and a fn whose first
               step from init returns input fields untouched selects fields
    routing    Partition depends on data and index, Merge on its items, in order, and the index
    fns        equal texts and types are one fn; fields that a fn's text treats alike may trade places

A law that is wrong would hide a wrong program, so each is tested against the simulator. What is true but not proven by
these laws stays unequal: unequal terms say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from operator import mul

from opsmith.problems.dims import Dim, make_literal, make_symbol
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import StreamType, element_dims, fields_of
from opsmith_lab.step.mutation.fn_laws import find_exchangeable, find_first_step, find_projection, identity_of

Fields = tuple[int, ...]  # one term number per field of a stream
ONE = make_literal(1)
VIEWS = frozenset({"Promote", "Flatten", "Reshape", "Bufferize", "Streamify", "Copy", "Identity"})


class Terms:
    """Hash-consed terms of one task; numbers of equal terms are equal across all programs that share the table."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._terms: list[tuple[Hashable, ...]] = []

    def number_term(self, *term: Hashable) -> int:
        if term not in self._numbers:
            self._numbers[term] = len(self._terms)
            self._terms.append(term)
        return self._numbers[term]

    def term_at(self, number: int) -> tuple[Hashable, ...]:
        return self._terms[number]


def normal_form(terms: Terms, graph: Graph) -> tuple[Fields, ...]:
    """The terms of a well-typed program's outputs."""
    walk = _Walk(terms, graph)
    for node in graph.nodes:
        walk.visit_node(node)
    return tuple(walk.fields[stream] for stream in graph.outputs)


class _Walk:
    """The terms of one graph's streams. `routed` renames `?p.i` to what it counts, so that p does not matter."""

    def __init__(self, terms: Terms, graph: Graph) -> None:
        self.terms, self.graph = terms, graph
        self.fields: dict[int, Fields] = {}
        self.routed: dict[str, Dim] = {}
        for stream, name in enumerate(graph.inputs):
            count = len(fields_of(graph.types[stream].dtype))
            self.fields[stream] = tuple(terms.number_term("input", name, field) for field in range(count))

    def visit_node(self, node: OpNode) -> None:
        if node.op in VIEWS:
            results = [self.fields[node.operands[0]]] * len(node.results)
        else:
            results = _LAWS[node.op](self, node)
        self.fields.update(zip(node.results, results, strict=True))

    def zip_fields(self, streams: Sequence[int]) -> Fields:
        return tuple(field for stream in streams for field in self.fields[stream])

    def multiply_dims(self, dims: Sequence[Dim]) -> Dim:
        """The product of dims, in terms that do not depend on how Partitions are numbered."""
        product = reduce(mul, dims, ONE)
        size = Dim(product.coefficient)
        for name, power in product.powers:
            factor = self.routed.get(name, make_symbol(name))
            for _ in range(abs(power)):
                size = size * factor if power > 0 else size / factor
        return size

    def type_of(self, stream: int) -> StreamType:
        return self.graph.types[stream]

    def apply_fn(self, op: str, fn: FnSpec, arguments: Fields, *key: Hashable) -> Fields:
        """One term per field that fn returns."""
        call = self.terms.number_term(op, identity_of(fn), *key, _order_arguments(fn, arguments))
        return tuple(self.terms.number_term("field", call, number) for number in range(len(fields_of(fn.output_dtype))))


def _order_arguments(fn: FnSpec, arguments: Fields) -> Fields:
    """The arguments with exchangeable ones in order of their numbers."""
    ordered = list(arguments)
    for _ in ordered:  # as often as a bubble sort may need
        for i, j in find_exchangeable(fn):
            if ordered[i] > ordered[j]:
                ordered[i], ordered[j] = ordered[j], ordered[i]
    return tuple(ordered)


def _zip_law(walk: _Walk, node: OpNode) -> list[Fields]:
    return [walk.zip_fields(node.operands)]


def _map_law(walk: _Walk, node: OpNode) -> list[Fields]:
    fn, arguments = _require_fn(node), walk.zip_fields(node.operands)
    selected = find_projection(fn)
    return [
        walk.apply_fn("Map", fn, arguments) if selected is None else tuple(arguments[number] for number in selected)
    ]


def _reduction_law(walk: _Walk, node: OpNode) -> list[Fields]:
    fn, arguments = _require_fn(node), walk.zip_fields(node.operands)
    run = walk.multiply_dims(walk.type_of(node.operands[0]).dims[: node.ints[0]])
    if run != ONE:
        return [walk.apply_fn(node.op, fn, arguments, run)]
    selected = find_first_step(fn)
    return [
        walk.apply_fn("step", fn, arguments) if selected is None else tuple(arguments[number] for number in selected)
    ]


def _repeat_law(walk: _Walk, node: OpNode) -> list[Fields]:
    data = node.operands[0]
    count = walk.multiply_dims(walk.type_of(node.results[0]).dims[:1])
    chunks = [walk.multiply_dims(element_dims(field)) for field in fields_of(walk.type_of(data).dtype)]
    pairs = zip(walk.fields[data], chunks, strict=True)
    return [tuple(_repeat_field(walk.terms, field, chunk, count) for field, chunk in pairs)]


def _repeat_field(terms: Terms, field: int, chunk: Dim, count: Dim) -> int:
    if count == ONE:
        return field
    match terms.term_at(field):
        case ("Repeat", int(inner), Dim() as inner_chunk, Dim() as inner_count):
            if chunk in (inner_chunk, inner_chunk * inner_count):
                return terms.number_term("Repeat", inner, inner_chunk, inner_count * count)
    return terms.number_term("Repeat", field, chunk, count)


def _partition_law(walk: _Walk, node: OpNode) -> list[Fields]:
    data, (index,) = walk.fields[node.operands[0]], walk.fields[node.operands[1]]
    ways = range(len(node.results))
    for way in ways:
        walk.routed[f"?{node.partition}.{way}"] = make_symbol(f"?{index}:{way}")
    return [tuple(walk.terms.number_term("Partition", field, index, way) for field in data) for way in ways]


def _merge_law(walk: _Walk, node: OpNode) -> list[Fields]:
    *branches, index = (walk.fields[stream] for stream in node.operands)
    fn = _require_fn(node)
    inner = walk.multiply_dims(walk.type_of(node.operands[0]).dims[:-1])
    merged = walk.terms.number_term(
        "Merge", identity_of(fn), inner, tuple(_order_arguments(fn, fields) for fields in branches), index
    )
    return [tuple(walk.terms.number_term("field", merged, number) for number in range(len(fields_of(fn.output_dtype))))]


def _require_fn(node: OpNode) -> FnSpec:
    if node.fn is None:
        raise AssertionError(f"{node.op} always has a fn")
    return node.fn


_LAWS: Mapping[str, Callable[[_Walk, OpNode], list[Fields]]] = {
    "Zip": _zip_law,
    "Map": _map_law,
    "Accum": _reduction_law,
    "Scan": _reduction_law,
    "Repeat": _repeat_law,
    "RepeatRef": _repeat_law,
    "Partition": _partition_law,
    "Merge": _merge_law,
}
