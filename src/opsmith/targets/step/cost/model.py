"""The cost model: what would a program cost on a streaming dataflow accelerator? (reference section 10)

Traffic and memory follow the equations of the STeP paper (ASPLOS 2026); the language has no off-chip operators, so that
Loads and Stores are implied, and cycles are those of one pipelined pass with FIFOs that are never full. Use it to rank
programs of one task, not as a cycle count of a chip. Sizes that a Partition makes at run time must be measured
(`cost`); without them the figures that depend on them are None.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.step.language.spec import Fn, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import SCALAR_BYTES, Buffer, DType, Multihot, StreamType, fields_of, scalar_of

ON_CHIP_BANDWIDTH = 64  # bytes per cycle of one unit
OFF_CHIP_BANDWIDTH = 1024  # bytes per cycle of the whole chip
COMPUTE_BANDWIDTH = 1024  # FLOPs per cycle of one higher-order primitive
TILE = 16  # rows of the hardware's tile
HIGHER_ORDER = frozenset({"Map", "Accum", "Scan", "Merge"})


@dataclass(frozen=True)
class FnCost:
    """What one call of a fn costs: operations, and bytes on chip for its matrix products."""

    flops: int = 0
    matmul_bytes: int = 0


@dataclass(frozen=True)
class CostRow:
    """One node. None: it depends on a size that was not measured."""

    name: str
    line: int | None = None  # None: implied by the program's inputs and outputs
    off_chip_bytes: int | None = 0
    on_chip_bytes: int | None = 0
    busy: int | None = 0  # cycles in which the node is at work
    latency: int | None = 0  # cycles until its first result
    flops: int | None = 0


@dataclass(frozen=True)
class CostReport:
    """All nodes, and the longest path through them by latency."""

    rows: tuple[CostRow, ...]
    path: int | None  # cycles

    @property
    def off_chip_bytes(self) -> int | None:
        return _sum([row.off_chip_bytes for row in self.rows])

    @property
    def on_chip_bytes(self) -> int | None:
        return _sum([row.on_chip_bytes for row in self.rows])

    @property
    def flops(self) -> int | None:
        return _sum([row.flops for row in self.rows])

    @property
    def cycles(self) -> int | None:
        """One pass with all operators at work at once: the busiest of them or the traffic, then the path."""
        busy, traffic = [row.busy for row in self.rows], self.off_chip_bytes
        if traffic is None or self.path is None or None in busy:
            return None
        return max(math.ceil(traffic / OFF_CHIP_BANDWIDTH), *(number or 0 for number in busy)) + self.path

    @property
    def operational_intensity(self) -> float | None:
        """FLOPs per off-chip byte."""
        if self.flops is None or not self.off_chip_bytes:
            return None
        return self.flops / self.off_chip_bytes

    def figures(self) -> dict[str, Any]:
        """The totals by name, then `nodes`: every row as a mapping."""
        names = ("off_chip_bytes", "on_chip_bytes", "cycles", "flops", "operational_intensity")
        totals = {name: getattr(self, name) for name in names}
        intensity = self.operational_intensity
        totals["operational_intensity"] = None if intensity is None else round(intensity, 3)
        return totals | {"nodes": [asdict(row) for row in self.rows]}


def cost(
    spec: TaskSpec,
    graph: Graph,
    sizes: Mapping[str, int],
    fns: Mapping[str, FnCost],
    bandwidth: Mapping[str, int] | None = None,
) -> CostReport:
    """The cost of a checked program.

    Units   bytes, cycles, FLOPs; `sizes` by symbol, dynamic ones (`?0.1`) included where they were measured;
            `bandwidth`: FLOPs per cycle of the primitives that use a fn, by func_name (default COMPUTE_BANDWIDTH)
    Source  reference section 10

    >>> from opsmith.targets.step.language.check import check_program
    >>> from opsmith.targets.step.ir import read_spec
    >>> spec = read_spec('''
    ... inputs: [{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}]
    ... outputs: [{name: S0, dtype: "Buffer(fp32, [M])", dims: [N], data_transform: ["input_data['E0']"]}]
    ... ''')
    >>> graph = check_program(spec, "return step.Bufferize(a=1).apply(E0)").graph
    >>> report = cost(spec, graph, spec.sizes, {})
    >>> report.off_chip_bytes, report.on_chip_bytes, report.cycles
    (280, 92, 42)
    """
    return _Model(spec, graph, sizes, fns, bandwidth or {}).report()


@dataclass
class _Model:
    spec: TaskSpec
    graph: Graph
    sizes: Mapping[str, int]
    fns: Mapping[str, FnCost]
    bandwidth: Mapping[str, int]
    rows: list[CostRow] = field(default_factory=list)
    arrival: dict[int, int | None] = field(default_factory=dict)  # by stream: longest path up to its first element

    def report(self) -> CostReport:
        used = {stream for node in self.graph.nodes for stream in node.operands} | set(self.graph.outputs)
        for stream in range(len(self.graph.inputs)):
            if stream in used:
                row = self._transfer(f"Load {self.graph.inputs[stream]}", stream)
                self.arrival[stream] = row.latency
        for node in self.graph.nodes:
            self._node(node)
        ends = list(self.arrival.values())
        for stream, output in zip(self.graph.outputs, self.spec.outputs, strict=True):
            ends.append(_sum([self.arrival[stream], self._transfer(f"Store {output.name}", stream).latency]))
        return CostReport(tuple(self.rows), _max(ends))

    def _transfer(self, name: str, stream: int) -> CostRow:
        """An implied Load or Store, with its double buffer."""
        kind = self.graph.types[stream]
        size, count = self._bytes(kind.dtype), self._count(kind.dims)
        latency = None if size is None else math.ceil(size / OFF_CHIP_BANDWIDTH)
        row = CostRow(name, None, _times(count, size), _times(2, size), count, latency)
        self.rows.append(row)
        return row

    def _node(self, node: Node) -> None:
        row = _RULES.get(node.op, _plain)(self, node)
        self.rows.append(row)
        start = _max([self.arrival[stream] for stream in node.operands])
        for stream in node.results:
            self.arrival[stream] = _sum([start, row.latency])
        for tensor in _parameters(self.spec, node.fn):
            size = _times(self._count(tensor.dims), self._bytes(tensor.dtype))
            self.rows.append(CostRow(f"parameter {tensor.name}", node.line, size))

    # ---- sizes
    def _count(self, dims: tuple[Dim, ...]) -> int | None:
        """The number of elements; None where a dim was not measured."""
        if any(not dim.symbols <= self.sizes.keys() for dim in dims):
            return None
        return math.prod(dim.value(self.sizes) for dim in dims)

    def _bytes(self, dtype: DType, buffers_only: bool = False) -> int | None:
        """The size of one element; of its Buffers only, where scalars and Multihots pass by FIFO."""
        sizes: list[int | None] = []
        for part in fields_of(dtype):
            inner = part.elem if isinstance(part, Buffer) else part
            if buffers_only and not isinstance(part, Buffer):
                continue
            number = self._count((inner.length,)) if isinstance(inner, Multihot) else SCALAR_BYTES[scalar_of(part).name]
            sizes.append(_times(number, self._count(part.dims) if isinstance(part, Buffer) else 1))
        return _sum(sizes)

    def kind(self, stream: int) -> StreamType:
        return self.graph.types[stream]

    def elements(self, stream: int) -> int | None:
        return self._count(self.kind(stream).dims)

    def inner(self, stream: int, count: int) -> int | None:
        return self._count(self.kind(stream).dims[:count])

    def element_bytes(self, stream: int) -> int | None:
        return self._bytes(self.kind(stream).dtype)

    # ---- functions
    def fn_cost(self, node: Node) -> FnCost:
        return self.fns.get(node.fn.func_name, FnCost()) if node.fn is not None else FnCost()

    def cycles(self, node: Node) -> int | None:
        """Cycles per input element of a higher-order primitive: its memory or its arithmetic, at least 1."""
        assert node.fn is not None, f"{node.op} without a fn"
        given, made = self._bytes(node.fn.input_dtype, True), self._bytes(node.fn.output_dtype, True)
        if given is None or made is None:
            return None
        compute = self.fn_cost(node).flops / self.bandwidth.get(node.fn.func_name, COMPUTE_BANDWIDTH)
        return max(1, math.ceil(max(given / ON_CHIP_BANDWIDTH, compute, made / ON_CHIP_BANDWIDTH)))


# -------------------------------------------------------------------- the table, row by row
def _row(model: _Model, node: Node, on_chip: int | None, busy: int | None, latency: int | None) -> CostRow:
    calls: int | None = 0
    if node.op in HIGHER_ORDER:
        items = node.operands[:-1] if node.op == "Merge" else node.operands[:1]
        calls = _sum([model.elements(stream) for stream in items])
    name = f"{node.op}({node.fn.func_name})" if node.fn is not None else node.op
    return CostRow(name, node.line, 0, on_chip, busy, latency, _times(calls, model.fn_cost(node).flops))


def _plain(model: _Model, node: Node) -> CostRow:
    """Zip, Copy, Promote, Flatten, Reshape."""
    return _row(model, node, 0, model.elements(node.operands[0]), 1)


def _identity(model: _Model, node: Node) -> CostRow:
    return _row(model, node, 0, 0, 0)


def _map(model: _Model, node: Node) -> CostRow:
    c = model.cycles(node)
    return _row(model, node, model.fn_cost(node).matmul_bytes, _times(model.elements(node.operands[0]), c), c)


def _state_bytes(model: _Model, node: Node) -> int | None:
    return _sum([model.element_bytes(node.results[0]), model.fn_cost(node).matmul_bytes])


def _accum(model: _Model, node: Node) -> CostRow:
    c, stream = model.cycles(node), node.operands[0]
    latency = _times(model.inner(stream, node.ints[0]), c)
    return _row(model, node, _state_bytes(model, node), _times(model.elements(stream), c), latency)


def _scan(model: _Model, node: Node) -> CostRow:
    c = model.cycles(node)
    return _row(model, node, _state_bytes(model, node), _times(model.elements(node.operands[0]), c), c)


def _bufferize(model: _Model, node: Node) -> CostRow:
    stream = node.operands[0]
    size, inner = model.element_bytes(stream), model.inner(stream, node.ints[0])
    return _row(model, node, _sum([size, _times(2, _times(inner, size))]), model.elements(stream), inner)


def _repeat(model: _Model, node: Node) -> CostRow:
    return _row(model, node, model.element_bytes(node.operands[0]), model.elements(node.results[0]), 1)


def _streamify(model: _Model, node: Node) -> CostRow:
    return _row(model, node, 0, model.elements(node.results[0]), 1)


def _partition(model: _Model, node: Node) -> CostRow:
    routed = [model.elements(stream) for stream in node.results]
    return _row(model, node, 0, _sum([model.elements(node.operands[1]), *routed]), 2)


def _merge(model: _Model, node: Node) -> CostRow:
    *items, index = node.operands
    c = model.cycles(node)
    routed = [_times(model.elements(stream), c) for stream in items]
    busy = _sum([model.elements(index), *routed])
    return _row(model, node, model.element_bytes(node.results[0]), busy, _sum([1, c]))


_RULES: Mapping[str, Callable[[_Model, Node], CostRow]] = {
    "Map": _map,
    "Accum": _accum,
    "Scan": _scan,
    "Bufferize": _bufferize,
    "Repeat": _repeat,
    "RepeatRef": _repeat,
    "Partition": _partition,
    "Merge": _merge,
    "Streamify": _streamify,
    "Identity": _identity,
}


def _parameters(spec: TaskSpec, fn: Fn | None) -> list[TensorSpec]:
    """The parameters that a fn's body mentions as `input_data['name']`."""
    if fn is None:
        return []
    names = {
        node.slice.value
        for node in ast.walk(ast.parse(f"def f():\n{_indented(fn.apply)}"))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "input_data"
        and isinstance(node.slice, ast.Constant)
    }
    return [tensor for tensor in spec.parameters if tensor.name in names]


def _indented(text: str) -> str:
    return "\n".join(f" {line}" for line in text.split("\n"))


def _times(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left * right


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _max(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return max(known, default=0) if len(known) == len(parts) else None
