"""The functional simulator: what tensors does a checked program compute? (reference sections 5 and 7)

A stream's data is one tensor per field, axes outermost first: reversed(dims) ++ element axes. Every primitive works on
whole tensors; functions of the task are called in batch (`fns`). Streams of equal value number share their tensors, so
a subexpression that a program writes twice is computed once, and tensors are dropped after their last use. The shape of
every result is compared with its declared dims: the simulator does not trust the checker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from opsmith.records import Diagnostic
from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.step.language.types import StreamType, fields_of, layout, tensor_shape

if TYPE_CHECKING:
    from opsmith.targets.step.execution.fns import BatchedFn

WORK_FACTOR = 256  # a run may stream this many times the elements of its inputs, parameters and outputs ...
WORK_FLOOR = 4_000_000  # ... or this many, whichever is more


class RunError(Exception):
    """The candidate failed while running; `diagnostic` is a RUN finding."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


class Bindings(Protocol):
    """What a run needs of one trial: sizes, input tensors by name, and the task's functions prepared for batches."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def input_data(self) -> Mapping[str, Tensor]: ...
    @property
    def fns(self) -> Mapping[str, BatchedFn]: ...


Data = list[Tensor]


@dataclass
class _Route:
    """One executed Partition: its index as [positions, N] and the positions that each expert received."""

    index: Tensor
    positions: list[Tensor]


@dataclass
class Execution:
    """One run of a graph. `data` is by value number; `left` counts the reads still to come."""

    graph: Graph
    bindings: Bindings
    sizes: dict[str, int]
    data: dict[int, Data]
    left: dict[int, int]
    routes: dict[int, _Route] = field(default_factory=dict)

    def take(self, stream: int) -> Data:
        """The tensors of an operand; they are dropped when nothing reads them any more."""
        value = self.graph.values[stream]
        tensors = self.data[value]
        self.left[value] -= 1
        if not self.left[value]:
            del self.data[value]
        return tensors

    def shape(self, stream: int) -> tuple[int, ...]:
        """The stream axes of a stream, outermost first."""
        return tuple(dim.value(self.sizes) for dim in reversed(self.graph.types[stream].dims))


def execute(graph: Graph, bindings: Bindings, io_elements: int) -> list[Data]:
    """The tensors of every returned stream, one per field.

    Units   io_elements: elements of inputs, parameters and outputs together; bounds the work, the same on every machine
    Errors  RunError for what a candidate did at run time; TaskFault from a function of the task
    """
    sizes = dict(bindings.sizes)
    _check_work(graph, sizes, max(WORK_FLOOR, WORK_FACTOR * io_elements))
    data = {graph.values[i]: [bindings.input_data[name]] for i, name in enumerate(graph.inputs)}
    nodes, reads = graph.schedule
    run = Execution(graph, bindings, sizes, data, dict(reads))
    for node in nodes:
        perform(run, node)
    return [run.data[graph.values[stream]] for stream in graph.outputs]


def _check_work(graph: Graph, sizes: Mapping[str, int], budget: int) -> None:
    total = 0
    for node in graph.nodes:
        for stream in node.results:
            kind = graph.types[stream]
            total += 0 if any(dim.is_dynamic for dim in kind.dims) else elements(kind, sizes)
        if total > budget:
            raise RunError(_fault(node, f"{total} elements streamed up to here", f"at most {budget} for this task", ""))


def elements(kind: StreamType, sizes: Mapping[str, int]) -> int:
    """How many numbers a stream of static dims carries."""
    return sum(math.prod(tensor_shape(part, kind.dims, sizes)) for part in fields_of(kind.dtype))


def perform(run: Execution, node: Node) -> None:
    """Execute one application: its results are in `run.data` as long as something reads them."""
    results = _KERNELS[node.op](run, node)
    for stream, tensors in zip(node.results, results, strict=True):
        _check_shape(run, node, stream, tensors)
        value = run.graph.values[stream]
        if run.left[value]:
            run.data[value] = tensors


def _check_shape(run: Execution, node: Node, stream: int, tensors: Data) -> None:
    kind = run.graph.types[stream]
    axes = run.shape(stream)
    for part, tensor in zip(fields_of(kind.dtype), tensors, strict=True):
        if tuple(tensor.shape) != axes + layout(part, run.sizes):
            raise AssertionError(f"{node.op}, line {node.line}: shape {tuple(tensor.shape)} for {kind} at {run.sizes}")


def _fault(node: Node, given: str, expected: str, remedy: str) -> Diagnostic:
    return Diagnostic("RUN", node.op, given, expected, remedy, node.line)


# -------------------------------------------------------------------- kernels: tensors in, tensors out
def _map(run: Execution, node: Node) -> list[Data]:
    fields = [tensor for stream in node.operands for tensor in run.take(stream)]
    axes = run.shape(node.results[0])
    batch = math.prod(axes)
    flat = [tensor.reshape(batch, *tensor.shape[len(axes) :]) for tensor in fields]
    return [[tensor.reshape(*axes, *tensor.shape[1:]) for tensor in _fn(run, node)(None, flat, batch)]]


def _fn(run: Execution, node: Node) -> BatchedFn:
    if node.fn is None:
        raise AssertionError(f"{node.op} without a fn")
    return run.bindings.fns[node.fn.func_name]


def _zip(run: Execution, node: Node) -> list[Data]:
    return [[tensor for stream in node.operands for tensor in run.take(stream)]]


def _reduce(run: Execution, node: Node, *, emit_all: bool) -> list[Data]:
    """Accum and Scan: the outer indices are a batch, the inner ones are taken in stream order."""
    axes = run.shape(node.operands[0])
    kept = len(axes) - node.ints[0]
    outer, inner = math.prod(axes[:kept]), math.prod(axes[kept:])
    flat = [t.reshape(outer, inner, *t.shape[len(axes) :]) for t in run.take(node.operands[0])]
    fn = _fn(run, node)
    state = fn.init_state(outer)
    states = []
    for i in range(inner):
        state = fn(state, [tensor[:, i] for tensor in flat], outer)
        if emit_all:
            states.append(state)
    if not emit_all:
        return [[tensor.reshape(*axes[:kept], *tensor.shape[1:]) for tensor in state]]
    if not states:
        return [[tensor.new_empty((*axes, *tensor.shape[1:])) for tensor in state]]
    stacked = [torch.stack(column, dim=1) for column in zip(*states, strict=True)]
    return [[tensor.reshape(*axes, *tensor.shape[2:]) for tensor in stacked]]


def _accum(run: Execution, node: Node) -> list[Data]:
    return _reduce(run, node, emit_all=False)


def _scan(run: Execution, node: Node) -> list[Data]:
    return _reduce(run, node, emit_all=True)


def _reshaped(run: Execution, node: Node) -> list[Data]:
    """Promote, Flatten and Reshape change stream axes only; explicit sizes, so that empty streams work too."""
    before, axes = len(run.graph.types[node.operands[0]].dims), run.shape(node.results[0])
    return [[tensor.reshape(*axes, *tensor.shape[before:]) for tensor in run.take(node.operands[0])]]


def _repeat(run: Execution, node: Node) -> list[Data]:
    axes = run.shape(node.results[0])
    data = run.take(node.operands[0])
    for reference in node.operands[1:]:
        run.take(reference)
    rank = len(axes) - 1
    return [[tensor.unsqueeze(rank).expand(*axes, *tensor.shape[rank:]) for tensor in data]]


def _unchanged(run: Execution, node: Node) -> list[Data]:
    """Bufferize and Streamify move the border between stream and element axes; the tensors stay."""
    return [run.take(node.operands[0])]


def _partition(run: Execution, node: Node) -> list[Data]:
    outer = len(run.graph.types[node.operands[1]].dims)
    data, index = run.take(node.operands[0]), run.take(node.operands[1])[0]
    flat_index = index.reshape(-1, index.shape[-1]) if index.numel() else index.reshape(0, index.shape[-1])
    _check_index(node, flat_index)
    number = node.partition if node.partition is not None else -1
    route = _Route(flat_index, [column.nonzero().squeeze(1) for column in flat_index.unbind(1)])
    run.routes[number] = route
    for i, positions in enumerate(route.positions):
        run.sizes[f"?{number}.{i}"] = len(positions)
    flat = [tensor.reshape(len(flat_index), *tensor.shape[outer:]) for tensor in data]
    return [[tensor.index_select(0, positions) for tensor in flat] for positions in route.positions]


def _check_index(node: Node, index: Tensor) -> None:
    wrong = (index != 0) & (index != 1)
    if not wrong.any():
        return
    position, expert = (int(i) for i in wrong.nonzero()[0])
    given = f"{index[position, expert].item():g} at index position ({position}), expert {expert}"
    raise RunError(_fault(node, given, "0 or 1", "threshold the scores in the fn that makes the index"))


def _merge(run: Execution, node: Node) -> list[Data]:
    route = run.routes[node.partition if node.partition is not None else -1]
    *items, index_stream = node.operands
    index = run.take(index_stream)[0]
    if node.compare_index:
        _compare_index(node, index.reshape(route.index.shape), route.index)
    axes = run.shape(node.results[0])
    outer = len(run.graph.types[index_stream].dims)
    positions, inner = math.prod(axes[:outer]), math.prod(axes[outer:])
    fn = _fn(run, node)
    state = [tensor.reshape(positions, inner, *tensor.shape[1:]) for tensor in fn.init_state(positions * inner)]
    for stream, chosen in zip(items, route.positions, strict=True):
        _merge_expert(run, fn, state, stream, chosen, inner, len(axes) - outer + 1)
    return [[tensor.reshape(*axes, *tensor.shape[2:]) for tensor in state]]


def _merge_expert(
    run: Execution, fn: BatchedFn, state: Data, stream: int, chosen: Tensor, inner: int, rank: int
) -> None:
    """Feed one expert's items into the states of the positions that selected it."""
    batch = len(chosen) * inner
    items = [tensor.reshape(batch, *tensor.shape[rank:]) for tensor in run.take(stream)]
    if not batch:
        return
    before = [tensor.index_select(0, chosen).reshape(batch, *tensor.shape[2:]) for tensor in state]
    for tensor, after in zip(state, fn(before, items, batch), strict=True):
        tensor.index_copy_(0, chosen, after.reshape(len(chosen), inner, *after.shape[1:]))


def _compare_index(node: Node, given: Tensor, expected: Tensor) -> None:
    different = (given != expected).any(1)
    if different.any():
        position = int(different.nonzero()[0])
        given_text = f"an index that differs from Partition's at position ({position})"
        raise RunError(_fault(node, given_text, "the same index", "Copy the index, use one half in each"))


_KERNELS: dict[str, Callable[[Execution, Node], Sequence[Data]]] = {
    "Map": _map,
    "Zip": _zip,
    "Accum": _accum,
    "Scan": _scan,
    "Promote": _reshaped,
    "Flatten": _reshaped,
    "Reshape": _reshaped,
    "Repeat": _repeat,
    "RepeatRef": _repeat,
    "Bufferize": _unchanged,
    "Streamify": _unchanged,
    "Partition": _partition,
    "Merge": _merge,
}
