"""Schedule: the order in which the programs of a batch are executed, so that what several share is computed once.

The programs of one task share their inputs and functions, so two applications are the same computation when primitive,
arguments, function and operands are the same. What no output depends on is left out, unless it is asked for. Every
computation of the batch is one `Step` over numbered values; values 0, 1, ... are the task's inputs. Isomorphic programs
have the same steps and the same outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import StreamType

Types = Sequence[StreamType] | Mapping[int, StreamType]


@dataclass(slots=True)
class ScheduledStep:
    """One computation over value numbers; Merge's operands are its streams, then the index.

    A Partition whose streams nobody reads has its index alone.
    """

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    line: int  # in the first program that has it
    fn: FnSpec | None = None
    ints: tuple[int, ...] = ()
    dim: Dim | None = None
    route: int = -1  # the number of a Partition in the batch; of the one a Merge belongs to
    compare_index: bool = False
    is_streamed: bool = False  # its only reader is an Accum, which may take it in parts


@dataclass(frozen=True)
class ScheduledProgram:
    """One program of a batch: the line of each of its steps, by the step's first result, and its outputs' values."""

    lines: Mapping[int, int]
    outputs: tuple[int, ...]


@dataclass
class Batch:
    """The steps of all programs, in an order in which they can be executed, and how often each value is read."""

    inputs: tuple[tuple[str, int], ...]  # name, rank with the axis of draws
    steps: list[ScheduledStep] = field(default_factory=list)
    members: list[ScheduledProgram] = field(default_factory=list)
    reads: dict[int, int] = field(default_factory=dict)


@lru_cache(maxsize=4)
def schedule_programs(graphs: tuple[Graph, ...], with_unread: bool = False) -> Batch:
    """The batch of these programs, all of one task. Kept, because the same programs run in many trials."""
    first = graphs[0]
    return _Scheduler(
        [(name, len(first.types[number].dims) + 1) for number, name in enumerate(first.inputs)]
    ).schedule_all(graphs, with_unread)


class _Scheduler:
    def __init__(self, inputs: Sequence[tuple[str, int]]) -> None:
        self._batch = Batch(tuple(inputs), reads=dict.fromkeys(range(len(inputs)), 0))
        self._known: dict[tuple[Any, ...], ScheduledStep] = {}

    def schedule_all(self, graphs: Sequence[Graph], with_unread: bool) -> Batch:
        for graph in graphs:
            nodes = graph.distinct if with_unread else graph.needed
            self._batch.members.append(self._schedule_program(graph, nodes))
        self._mark_streamed()
        return self._batch

    def _schedule_program(self, graph: Graph, nodes: Sequence[OpNode]) -> ScheduledProgram:
        values = {graph.values[stream]: stream for stream in range(len(graph.inputs))}  # of the program -> of the batch
        routes: dict[int, int] = {}  # number of a Partition in its program -> its step
        lines: dict[int, int] = {}
        for node in nodes:
            operands = tuple(values[graph.values[stream]] for stream in node.operands)
            step = self._find_step(graph, node, operands, routes)
            lines.setdefault(step.results[0], node.line)
            values.update(zip((graph.values[stream] for stream in node.results), step.results, strict=True))
        outputs = tuple(values[graph.values[stream]] for stream in graph.outputs)
        for value in outputs:
            self._batch.reads[value] += 1
        return ScheduledProgram(lines, outputs)

    def _find_step(
        self, graph: Graph, node: OpNode, operands: tuple[int, ...], routes: dict[int, int]
    ) -> ScheduledStep:
        """The step of a node: one that the batch has, or a new one."""
        route = routes[node.partition] if node.op == "Merge" and node.partition is not None else -1
        name = node.fn.func_name if node.fn is not None else None
        kind = graph.types[node.results[0]] if node.op == "Streamify" else None  # its dims are no arguments
        key = (node.op, name, node.ints, node.dim, kind, operands, route, node.compare_index)
        step = self._known.get(key)
        if step is None:
            step = self._known[key] = self._add_step(graph, node, operands, route)
        if node.op == "Partition" and node.partition is not None:
            routes[node.partition] = step.route
        return step

    def _add_step(self, graph: Graph, node: OpNode, operands: tuple[int, ...], route: int) -> ScheduledStep:
        batch = self._batch
        index, first = len(batch.steps), len(batch.reads)
        results = tuple(range(first, first + len(node.results)))
        step = make_step(node, graph.types, index if node.op == "Partition" else route, operands, results)
        batch.reads.update(dict.fromkeys(results, 0))
        for value in operands:
            batch.reads[value] += 1
        batch.steps.append(step)
        return step

    def _mark_streamed(self) -> None:
        """Find the Maps whose results nothing but one Accum reads."""
        map_by_result = {step.results[0]: step for step in self._batch.steps if step.op == "Map"}
        for step in self._batch.steps:
            source = map_by_result.get(step.operands[0]) if step.op == "Accum" else None
            if source is not None and self._batch.reads[source.results[0]] == 1:
                source.is_streamed = True


def make_step(
    node: OpNode, types: Types, route: int, operands: tuple[int, ...], results: tuple[int, ...]
) -> ScheduledStep:
    """A node as a step over these value numbers; `types` are by the node's own stream numbers."""
    ints = node.ints
    if node.op == "Streamify":  # how many dims leave the Buffers
        ints = (len(types[node.results[0]].dims) - len(types[node.operands[0]].dims),)
    return ScheduledStep(node.op, operands, results, node.line, node.fn, ints, node.dim, route, node.compare_index)
