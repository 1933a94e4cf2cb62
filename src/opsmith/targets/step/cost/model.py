"""The cost model: what a program would cost on a streaming dataflow accelerator.

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

from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import Buffer, DType, Multihot, StreamType, fields_of, scalar_of

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
    critical: tuple[CostRow, ...] = ()  # the rows on that path, in its order; none where it is not known

    @property
    def off_chip_bytes(self) -> int | None:
        return _sum_known([row.off_chip_bytes for row in self.rows])

    @property
    def on_chip_bytes(self) -> int | None:
        return _sum_known([row.on_chip_bytes for row in self.rows])

    @property
    def flops(self) -> int | None:
        return _sum_known([row.flops for row in self.rows])

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

    def list_figures(self) -> dict[str, Any]:
        """The totals by name, then `nodes`, every row as a mapping, and `critical_path`, the slowest chain of them."""
        names = ("off_chip_bytes", "on_chip_bytes", "cycles", "flops", "operational_intensity")
        totals = {name: getattr(self, name) for name in names}
        intensity = self.operational_intensity
        totals["operational_intensity"] = None if intensity is None else round(intensity, 3)
        critical = [{"name": row.name, "line": row.line, "latency": row.latency} for row in self.critical]
        return totals | {"nodes": [asdict(row) for row in self.rows], "critical_path": critical}


def estimate_cost(
    spec: TaskSpec,
    graph: Graph,
    sizes: Mapping[str, int],
    fns: Mapping[str, FnCost],
    bandwidth: Mapping[str, int] | None = None,
) -> CostReport:
    """The cost of a checked program.

    Units   bytes, cycles, FLOPs; `sizes` by symbol, dynamic ones (`?0.1`) included where they were measured;
            `bandwidth`: FLOPs per cycle of the primitives that use a fn, by func_name (default COMPUTE_BANDWIDTH)

    >>> from opsmith.targets.step.language.check import check_program
    >>> from opsmith.targets.step.ir import read_spec
    >>> spec = read_spec('''
    ... inputs: [{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}]
    ... outputs: [{name: S0, dtype: "Buffer(fp32, [M])", dims: [N], data_transform: ["input_data['E0']"]}]
    ... ''')
    >>> graph = check_program(spec, "return step.Bufferize(a=1).apply(E0)").graph
    >>> report = estimate_cost(spec, graph, spec.sizes, {})
    >>> report.off_chip_bytes, report.on_chip_bytes, report.cycles
    (280, 92, 42)
    """
    return _Model(spec, graph, sizes, fns, bandwidth or {}).build_report()


@dataclass
class _Model:
    spec: TaskSpec
    graph: Graph
    sizes: Mapping[str, int]
    fns: Mapping[str, FnCost]
    bandwidth: Mapping[str, int]
    rows: list[CostRow] = field(default_factory=list)
    arrival: dict[int, int | None] = field(default_factory=dict)  # by stream: longest path up to its first element
    chains: dict[int, tuple[CostRow, ...]] = field(default_factory=dict)  # by stream: the rows on that path

    def build_report(self) -> CostReport:
        used = {stream for node in self.graph.nodes for stream in node.operands} | set(self.graph.outputs)
        for stream in range(len(self.graph.inputs)):
            if stream in used:
                row = self._add_transfer(f"Load {self.graph.inputs[stream]}", stream)
                self.arrival[stream] = row.latency
                self.chains[stream] = (row,)
        for node in self.graph.nodes:
            self._add_node(node)
        ends = [(self.arrival[stream], chain) for stream, chain in self.chains.items()]
        for stream, output in zip(self.graph.outputs, self.spec.outputs, strict=True):
            row = self._add_transfer(f"Store {output.name}", stream)
            ends.append((_sum_known([self.arrival[stream], row.latency]), (*self.chains[stream], row)))
        path = _find_maximum([latency for latency, _ in ends])
        critical = next((chain for latency, chain in ends if latency == path), ()) if path is not None else ()
        return CostReport(tuple(self.rows), path, critical)

    def _add_transfer(self, name: str, stream: int) -> CostRow:
        """An implied Load or Store, with its double buffer."""
        kind = self.graph.types[stream]
        size, count = self._count_bytes(kind.dtype), self._multiply_dims(kind.dims)
        latency = None if size is None else math.ceil(size / OFF_CHIP_BANDWIDTH)
        row = CostRow(name, None, _multiply_known(count, size), _multiply_known(2, size), count, latency)
        self.rows.append(row)
        return row

    def _add_node(self, node: OpNode) -> None:
        row = _RULES.get(node.op, _plain_row)(self, node)
        self.rows.append(row)
        start = _find_maximum([self.arrival[stream] for stream in node.operands])
        before = next((self.chains[stream] for stream in node.operands if self.arrival[stream] == start), ())
        for stream in node.results:
            self.arrival[stream] = _sum_known([start, row.latency])
            self.chains[stream] = (*before, row)
        for tensor in _list_parameters(self.spec, node.fn):
            size = _multiply_known(self._multiply_dims(tensor.dims), self._count_bytes(tensor.dtype))
            self.rows.append(CostRow(f"parameter {tensor.name}", node.line, size))

    # ---- sizes
    def _multiply_dims(self, dims: tuple[Dim, ...]) -> int | None:
        """The number of elements; None where a dim was not measured."""
        if any(not dim.symbols <= self.sizes.keys() for dim in dims):
            return None
        return math.prod(dim.value(self.sizes) for dim in dims)

    def _count_bytes(self, dtype: DType, buffers_only: bool = False) -> int | None:
        """The size of one element; of its Buffers only, where scalars and Multihots pass by FIFO."""
        sizes: list[int | None] = []
        for field_type in fields_of(dtype):
            inner = field_type.elem if isinstance(field_type, Buffer) else field_type
            if buffers_only and not isinstance(field_type, Buffer):
                continue
            number = (
                self._multiply_dims((inner.length,))
                if isinstance(inner, Multihot)
                else BYTES_BY_DTYPE[scalar_of(field_type).name]
            )
            sizes.append(
                _multiply_known(number, self._multiply_dims(field_type.dims) if isinstance(field_type, Buffer) else 1)
            )
        return _sum_known(sizes)

    def type_of(self, stream: int) -> StreamType:
        return self.graph.types[stream]

    def count_elements(self, stream: int) -> int | None:
        return self._multiply_dims(self.type_of(stream).dims)

    def count_inner(self, stream: int, count: int) -> int | None:
        return self._multiply_dims(self.type_of(stream).dims[:count])

    def element_bytes(self, stream: int) -> int | None:
        return self._count_bytes(self.type_of(stream).dtype)

    # ---- functions
    def fn_cost(self, node: OpNode) -> FnCost:
        return self.fns.get(node.fn.func_name, FnCost()) if node.fn is not None else FnCost()

    def count_cycles(self, node: OpNode) -> int | None:
        """Cycles per input element of a higher-order primitive: its memory or its arithmetic, at least 1."""
        assert node.fn is not None, f"{node.op} without a fn"
        bytes_in, bytes_out = (
            self._count_bytes(node.fn.input_dtype, True),
            self._count_bytes(node.fn.output_dtype, True),
        )
        if bytes_in is None or bytes_out is None:
            return None
        compute = self.fn_cost(node).flops / self.bandwidth.get(node.fn.func_name, COMPUTE_BANDWIDTH)
        return max(1, math.ceil(max(bytes_in / ON_CHIP_BANDWIDTH, compute, bytes_out / ON_CHIP_BANDWIDTH)))


# -------------------------------------------------------------------- the table, row by row
def _make_row(model: _Model, node: OpNode, on_chip: int | None, busy: int | None, latency: int | None) -> CostRow:
    calls: int | None = 0
    if node.op in HIGHER_ORDER:
        items = node.operands[:-1] if node.op == "Merge" else node.operands[:1]
        calls = _sum_known([model.count_elements(stream) for stream in items])
    name = f"{node.op}({node.fn.func_name})" if node.fn is not None else node.op
    return CostRow(name, node.line, 0, on_chip, busy, latency, _multiply_known(calls, model.fn_cost(node).flops))


def _plain_row(model: _Model, node: OpNode) -> CostRow:
    """Zip, Copy, Promote, Flatten, Reshape."""
    return _make_row(model, node, 0, model.count_elements(node.operands[0]), 1)


def _identity_row(model: _Model, node: OpNode) -> CostRow:
    return _make_row(model, node, 0, 0, 0)


def _map_row(model: _Model, node: OpNode) -> CostRow:
    c = model.count_cycles(node)
    return _make_row(
        model, node, model.fn_cost(node).matmul_bytes, _multiply_known(model.count_elements(node.operands[0]), c), c
    )


def _state_bytes(model: _Model, node: OpNode) -> int | None:
    return _sum_known([model.element_bytes(node.results[0]), model.fn_cost(node).matmul_bytes])


def _accum_row(model: _Model, node: OpNode) -> CostRow:
    c, stream = model.count_cycles(node), node.operands[0]
    latency = _multiply_known(model.count_inner(stream, node.ints[0]), c)
    return _make_row(model, node, _state_bytes(model, node), _multiply_known(model.count_elements(stream), c), latency)


def _scan_row(model: _Model, node: OpNode) -> CostRow:
    c = model.count_cycles(node)
    return _make_row(
        model, node, _state_bytes(model, node), _multiply_known(model.count_elements(node.operands[0]), c), c
    )


def _bufferize_row(model: _Model, node: OpNode) -> CostRow:
    stream = node.operands[0]
    size, inner = model.element_bytes(stream), model.count_inner(stream, node.ints[0])
    return _make_row(
        model,
        node,
        _sum_known([size, _multiply_known(2, _multiply_known(inner, size))]),
        model.count_elements(stream),
        inner,
    )


def _repeat_row(model: _Model, node: OpNode) -> CostRow:
    return _make_row(model, node, model.element_bytes(node.operands[0]), model.count_elements(node.results[0]), 1)


def _streamify_row(model: _Model, node: OpNode) -> CostRow:
    return _make_row(model, node, 0, model.count_elements(node.results[0]), 1)


def _partition_row(model: _Model, node: OpNode) -> CostRow:
    routed = [model.count_elements(stream) for stream in node.results]
    return _make_row(model, node, 0, _sum_known([model.count_elements(node.operands[1]), *routed]), 2)


def _merge_row(model: _Model, node: OpNode) -> CostRow:
    *items, index = node.operands
    c = model.count_cycles(node)
    routed = [_multiply_known(model.count_elements(stream), c) for stream in items]
    busy = _sum_known([model.count_elements(index), *routed])
    return _make_row(model, node, model.element_bytes(node.results[0]), busy, _sum_known([1, c]))


_RULES: Mapping[str, Callable[[_Model, OpNode], CostRow]] = {
    "Map": _map_row,
    "Accum": _accum_row,
    "Scan": _scan_row,
    "Bufferize": _bufferize_row,
    "Repeat": _repeat_row,
    "RepeatRef": _repeat_row,
    "Partition": _partition_row,
    "Merge": _merge_row,
    "Streamify": _streamify_row,
    "Identity": _identity_row,
}


def _list_parameters(spec: TaskSpec, fn: FnSpec | None) -> list[TensorSpec]:
    """The parameters that a fn's body mentions as `input_data['name']`."""
    if fn is None:
        return []
    names = {
        node.slice.value
        for node in ast.walk(ast.parse(f"def f():\n{_indent_text(fn.apply)}"))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "input_data"
        and isinstance(node.slice, ast.Constant)
    }
    return [tensor for tensor in spec.parameters if tensor.name in names]


def _indent_text(text: str) -> str:
    return "\n".join(f" {line}" for line in text.split("\n"))


def _multiply_known(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first * second


def _sum_known(numbers: list[int | None]) -> int | None:
    measured = [number for number in numbers if number is not None]
    return sum(measured) if len(measured) == len(numbers) else None


def _find_maximum(numbers: list[int | None]) -> int | None:
    measured = [number for number in numbers if number is not None]
    return max(measured, default=0) if len(measured) == len(numbers) else None
