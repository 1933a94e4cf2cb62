"""The cost model: what a program would cost on a streaming dataflow accelerator.

Traffic and memory follow the equations of the STeP paper (ASPLOS 2026); the language has no off-chip operators, so that
Loads and Stores are implied, and cycles are those of one pipelined pass with FIFOs that are never full. Use it to rank
programs of one task, not as a cycle count of a chip. Sizes that a Partition makes at run time are measured before
(`cost`).
"""

from __future__ import annotations

import ast
import math
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.targets.step.ir.code import list_mentions
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import Buffer, DType, Multihot, fields_of

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
    """One node."""

    name: str
    line: int | None = None  # None: implied by the program's inputs and outputs
    off_chip_bytes: int = 0
    on_chip_bytes: int = 0
    busy: int = 0  # cycles in which the node is at work
    latency: int = 0  # cycles until its first result
    flops: int = 0


@dataclass(frozen=True)
class CostReport:
    """All nodes, and the longest path through them by latency."""

    rows: tuple[CostRow, ...]
    path: int  # cycles
    critical: tuple[CostRow, ...]  # the rows on that path, in its order

    @property
    def off_chip_bytes(self) -> int:
        return sum(row.off_chip_bytes for row in self.rows)

    @property
    def on_chip_bytes(self) -> int:
        return sum(row.on_chip_bytes for row in self.rows)

    @property
    def flops(self) -> int:
        return sum(row.flops for row in self.rows)

    @property
    def cycles(self) -> int:
        """One pass with all operators at work at once: the busiest of them or the traffic, then the path."""
        return max(math.ceil(self.off_chip_bytes / OFF_CHIP_BANDWIDTH), *(row.busy for row in self.rows)) + self.path

    @property
    def operational_intensity(self) -> float | None:
        """FLOPs per off-chip byte."""
        return self.flops / self.off_chip_bytes if self.off_chip_bytes else None

    def list_figures(self) -> dict[str, Any]:
        """The totals by name, then `nodes`, every row as a mapping, and `critical_path`, the slowest chain of them."""
        names = ("off_chip_bytes", "on_chip_bytes", "cycles", "flops", "operational_intensity")
        totals = {name: getattr(self, name) for name in names}
        intensity = self.operational_intensity
        totals["operational_intensity"] = None if intensity is None else round(intensity, 3)
        critical = [{"name": row.name, "line": row.line, "latency": row.latency} for row in self.critical]
        return totals | {"nodes": [asdict(row) for row in self.rows], "critical_path": critical}


def estimate_cost(spec: TaskSpec, graph: Graph, sizes: Mapping[str, int], fns: Mapping[str, FnCost]) -> CostReport:
    """The cost of a checked program.

    Units   bytes, cycles, FLOPs; `sizes` by symbol, dynamic ones (`?0.1`) included

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
    return _Model(spec, graph, sizes, fns).build_report()


@dataclass
class _Model:
    spec: TaskSpec
    graph: Graph
    sizes: Mapping[str, int]
    fns: Mapping[str, FnCost]
    rows: list[CostRow] = field(default_factory=list)
    arrival: dict[int, int] = field(default_factory=dict)  # by stream: longest path up to its first element
    chains: dict[int, tuple[CostRow, ...]] = field(default_factory=dict)  # by stream: the rows on that path

    def build_report(self) -> CostReport:
        used = {stream for node in self.graph.nodes for stream in node.operands} | set(self.graph.outputs)
        for stream in range(len(self.graph.inputs)):
            if stream in used:
                row = self._add_transfer(f"Load {self.graph.inputs[stream]}", stream)
                self.arrival[stream], self.chains[stream] = row.latency, (row,)
        for node in self.graph.nodes:
            self._add_node(node)
        ends = [(self.arrival[stream], chain) for stream, chain in self.chains.items()]
        for stream, output in zip(self.graph.outputs, self.spec.outputs, strict=True):
            row = self._add_transfer(f"Store {output.name}", stream)
            ends.append((self.arrival[stream] + row.latency, (*self.chains[stream], row)))
        path, critical = max(ends, key=lambda end: end[0])
        return CostReport(tuple(self.rows), path, critical)

    def _add_transfer(self, name: str, stream: int) -> CostRow:
        """An implied Load or Store, with its double buffer."""
        size, count = self._element_bytes(stream), self._count_elements(stream)
        row = CostRow(name, None, count * size, 2 * size, count, math.ceil(size / OFF_CHIP_BANDWIDTH))
        self.rows.append(row)
        return row

    def _add_node(self, node: OpNode) -> None:
        row = self._weigh_node(node)
        self.rows.append(row)
        before = max(node.operands, key=lambda stream: self.arrival[stream])
        for stream in node.results:
            self.arrival[stream] = self.arrival[before] + row.latency
            self.chains[stream] = (*self.chains[before], row)
        for tensor in _list_parameters(self.spec, node.fn):
            size = self._multiply_dims(tensor.dims) * self._count_bytes(tensor.dtype)
            self.rows.append(CostRow(f"parameter {tensor.name}", node.line, size))

    def _weigh_node(self, node: OpNode) -> CostRow:
        """The table, row by row: bytes on chip, cycles at work and until the first result."""
        operands, results = ([self._count_elements(stream) for stream in of] for of in (node.operands, node.results))
        inner = self._multiply_dims(self.graph.types[node.operands[0]].dims[: sum(node.ints[:1])])
        size_in, size_out = self._element_bytes(node.operands[0]), self._element_bytes(node.results[0])
        fn = self.fns.get(node.fn.func_name, FnCost()) if node.fn is not None else FnCost()
        c = self._count_cycles(node.fn, fn) if node.fn is not None else 0
        calls = sum(operands[:-1] if node.op == "Merge" else operands[:1])
        figures = {
            "Map": (fn.matmul_bytes, calls * c, c),
            "Accum": (size_out + fn.matmul_bytes, calls * c, inner * c),
            "Scan": (size_out + fn.matmul_bytes, calls * c, c),
            "Bufferize": (size_in + 2 * inner * size_in, operands[0], inner),
            "Repeat": (size_in, results[0], 1),
            "RepeatRef": (size_in, results[0], 1),
            "Streamify": (0, results[0], 1),
            "Partition": (0, operands[-1] + sum(results), 2),
            "Merge": (size_out, operands[-1] + calls * c, 1 + c),
            "Identity": (0, 0, 0),
            **dict.fromkeys(("Zip", "Copy", "Promote", "Flatten", "Reshape"), (0, operands[0], 1)),
        }[node.op]
        name = f"{node.op}({node.fn.func_name})" if node.fn is not None else node.op
        return CostRow(name, node.line, 0, *figures, calls * fn.flops)

    # ---- sizes
    def _multiply_dims(self, dims: tuple[Dim, ...]) -> int:
        """The number of elements."""
        return math.prod(dim.value(self.sizes) for dim in dims)

    def _count_elements(self, stream: int) -> int:
        return self._multiply_dims(self.graph.types[stream].dims)

    def _element_bytes(self, stream: int) -> int:
        return self._count_bytes(self.graph.types[stream].dtype)

    def _count_bytes(self, dtype: DType, buffers_only: bool = False) -> int:
        """The size of one element; of its Buffers only, where scalars and Multihots pass by FIFO."""
        total = 0
        for own in fields_of(dtype):
            inner, dims = (own.elem, own.dims) if isinstance(own, Buffer) else (own, ())
            if dims or not buffers_only:
                size = inner.length.value(self.sizes) if isinstance(inner, Multihot) else BYTES_BY_DTYPE[inner.name]
                total += size * self._multiply_dims(dims)
        return total

    def _count_cycles(self, fn: FnSpec, cost: FnCost) -> int:
        """Cycles per input element of a higher-order primitive: its memory or its arithmetic, at least 1."""
        moved = max(self._count_bytes(fn.input_dtype, True), self._count_bytes(fn.output_dtype, True))
        return max(1, math.ceil(max(moved / ON_CHIP_BANDWIDTH, cost.flops / COMPUTE_BANDWIDTH)))


def _list_parameters(spec: TaskSpec, fn: FnSpec | None) -> list[TensorSpec]:
    """The parameters that a fn's body mentions as `input_data['name']`."""
    if fn is None:
        return []
    names = set(list_mentions(ast.parse(f"def f():\n{textwrap.indent(fn.apply, ' ')}")))
    return [tensor for tensor in spec.parameters if tensor.name in names]
