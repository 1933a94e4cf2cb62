"""The functional simulator: what tensors do checked programs of one task compute?

A batch of programs is executed as one graph (`schedule`), all draws of a stack at once (`stack`). What fails, fails for
the programs that have it only. Tensors are dropped after their last use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from opsmith.records import Diagnostic
from opsmith.targets.step.execution.flow import Flow
from opsmith.targets.step.execution.folds import Deferred
from opsmith.targets.step.execution.kernels import KERNELS
from opsmith.targets.step.execution.scene import RunError, Scene
from opsmith.targets.step.execution.schedule import Batch, Member, Step, schedule
from opsmith.targets.step.execution.stack import Bindings, Routes, Stack
from opsmith.targets.step.language.dims import DimError
from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.trial import TaskFault

__all__ = ["Bindings", "RunError", "execute", "execute_batch", "streamed_elements"]

WORK_FACTOR = 256  # a run may touch this many times the elements of its inputs, parameters and outputs ...
STREAM_FACTOR = 32  # ... and one stream may have this many times as many ...
WORK_FLOOR = 4_000_000  # ... or this many, whichever is more
MAX_ENTRIES = 32_768  # that the Accums and Scans of a program call a fn for, one after the other

_VIEWS = frozenset(("Zip", "Copy", "Identity", "Repeat", "RepeatRef", "Bufferize", "Streamify"))

Data = list[Tensor]
Outputs = list[Data]  # per output, per field, with the draws as first axis


def execute(graph: Graph, bindings: Bindings, io_elements: int) -> list[Data]:
    """The tensors of every returned stream of one program on one draw, one per field: [*reversed(dims), *element].

    Units   io_elements: elements of inputs, parameters and outputs together; bounds the work, the same on every machine
    Errors  RunError for what a candidate did at run time; TaskFault from a function of the task
    """
    stack = Stack([bindings])
    streamed_elements(graph, stack, io_elements)
    (made,) = execute_batch([graph], stack)
    if isinstance(made, Exception):
        raise made
    return [[tensor.squeeze(0) for tensor in fields] for fields in made]


def streamed_elements(graph: Graph, stack: Stack, io_elements: int) -> int:
    """How many numbers one draw of a program reads and writes at most; changes of axes alone touch none.

    Errors  RunError when that, one of its streams, or its loops, are too long
    """
    work, largest = (max(WORK_FLOOR, factor * io_elements) for factor in (WORK_FACTOR, STREAM_FACTOR))
    routes = _longest_routes(graph, stack) if graph.partitions else ()
    total = entries = 0
    for node in graph.nodes:
        try:
            total += _touched(graph, node, stack, routes, largest)
            entries += _entries(graph, node, stack, routes)
        except DimError as error:
            raise _refusal(node, str(error), "a whole size at every shape", "dims of whole symbols") from None
        if total > work:
            raise _refusal(node, f"{total} elements streamed up to here", f"at most {work} for this task")
        if entries > MAX_ENTRIES:
            expected = f"at most {MAX_ENTRIES}, except for sums, maxima and minima"
            raise _refusal(node, f"{entries} entries folded one after the other up to here", expected)
    return total


def _touched(graph: Graph, node: Node, stack: Stack, routes: Routes, largest: int) -> int:
    made = [stack.elements(graph.types[stream], routes) for stream in node.results]
    if max(made) > largest:
        raise _refusal(node, f"a stream of {max(made)} elements", f"at most {largest} for this task")
    if node.op in _VIEWS:
        return 0
    return sum(made) + sum([stack.elements(graph.types[stream], routes) for stream in node.operands])


def _refusal(node: Node, given: str, expected: str, remedy: str = "") -> RunError:
    return RunError(Diagnostic("RUN", node.op, given, expected, remedy, node.line))


def _longest_routes(graph: Graph, stack: Stack) -> Routes:
    """Every dynamic dim as long as its Partition's index has positions."""
    sizes = dict(stack.sizes)
    found: list[tuple[str, int]] = []
    for node in graph.nodes:
        if node.op == "Partition":
            positions = math.prod(dim.value(sizes) for dim in graph.types[node.operands[1]].dims)
            found += [(f"?{node.partition}.{number}", positions) for number in range(len(node.results))]
            sizes.update(found)
    return tuple(found)


def _entries(graph: Graph, node: Node, stack: Stack, routes: Routes) -> int:
    """How many entries an Accum or a Scan takes one after the other."""
    if node.op not in ("Accum", "Scan") or node.fn is None or stack.fn(node.fn.func_name).reduction is not None:
        return 0
    sizes = {**stack.sizes, **dict(routes)}
    return math.prod(dim.value(sizes) for dim in graph.types[node.operands[0]].dims[: node.ints[0]])


def execute_batch(graphs: Sequence[Graph], stack: Stack) -> list[Outputs | RunError | TaskFault]:
    """What each program returns on the draws of a stack, or why it does not."""
    batch = schedule(tuple(graphs))
    run = _Run(batch, Scene(stack, {}))
    with torch.no_grad():
        for step in batch.steps:
            run.perform(step)
    return [run.outcome(member) for member in batch.members]


@dataclass
class _Run:
    """`flows` is by value number; `left` counts the reads still to come; `failed` is by the step's first result."""

    batch: Batch
    scene: Scene
    flows: dict[int, Flow | Deferred] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    failed: dict[int, RunError | TaskFault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = self.scene.stack.inputs
        self.flows = {at: Flow([tensors[name]], rank) for at, (name, rank) in enumerate(self.batch.inputs)}
        self.left = dict(self.batch.reads)

    def perform(self, step: Step) -> None:
        """Execute one step, unless something that it needs has failed."""
        operands = [self._take(value) for value in step.operands]
        if None in operands:
            return
        try:
            results = KERNELS[step.op](self.scene, step, operands)
        except (RunError, TaskFault) as error:
            self.failed[step.results[0]] = error
            return
        for value, flow in zip(step.results, results, strict=True):
            if self.left[value]:
                self.flows[value] = flow

    def _take(self, value: int) -> Flow | Deferred | None:
        """The data of an operand, dropped here when nothing else reads it; None when it was not made."""
        self.left[value] -= 1
        return self.flows.get(value) if self.left[value] else self.flows.pop(value, None)

    def outcome(self, member: Member) -> Outputs | RunError | TaskFault:
        for value, line in member.lines.items() if self.failed else ():
            if value in self.failed:
                return _at_line(self.failed[value], line)
        flows = [self.flows[value] for value in member.outputs]
        return [flow.tensors for flow in flows if isinstance(flow, Flow)]


def _at_line(error: RunError | TaskFault, line: int) -> RunError | TaskFault:
    """The finding with the line that the step has in this program."""
    return RunError(replace(error.diagnostic, line=line)) if isinstance(error, RunError) else error
