"""Bounds: how much a program may stream, hold and fold before it is refused for its size.

Counted from types and sizes before anything runs, so that a verdict is the same on every machine:

    streamed  numbers that primitives read and write in one draw; a view (Zip, Repeat, Bufferize, ...) touches none
    held      numbers in memory at once; a view holds none of its own, nor does a Map that an Accum takes in parts
    entries   that an Accum or a Scan takes one after the other

Streamed and held are what time and memory follow: a stream of any length passes as long as nobody has to write it down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from opsmith.problems.dims import DimError
from opsmith.targets.step.execution.held import list_peaks
from opsmith.targets.step.execution.kernels import VIEWS
from opsmith.targets.step.execution.scene import make_run_error
from opsmith.targets.step.execution.stack import Sizes, Stack
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.types import StreamType

STREAMED_PER_IO = 256  # numbers streamed for each one of inputs, parameters and outputs, ...
STREAMED_PER_POINT = 16  # ... or for each point of the task's symbols (M*N*K*D, say), but of these ...
LEAST_STREAMED, MOST_STREAMED = 4_000_000, 1 << 27  # ... at least and at most so many
HELD_PER_IO = 32  # numbers held for each one of inputs, parameters and outputs, ...
LEAST_HELD = 25 << 20  # ... or this many, whichever is more: 200 MiB in float64
MAX_ENTRIES = 32_768  # folded with something else than a sum, a maximum or a minimum


def count_streamed(graph: Graph, stack: Stack, io_elements: int, points: int = 1) -> int:
    """How many numbers one draw of a program reads and writes at most.

    Units   io_elements: elements of inputs, parameters and outputs together; points: the sizes of the task's symbols
            multiplied, which is what a loop nest over all of them would visit
    Errors  RunError when that, one of its streams, what it holds at once, or its loops, are too long
    """
    for_points = min(max(STREAMED_PER_POINT * points, LEAST_STREAMED), MOST_STREAMED)
    limit = max(for_points, STREAMED_PER_IO * io_elements)
    routed = _longest_routes(graph, stack) if graph.partitions else None
    total = _count_at_once(graph, stack, routed, limit)
    if total is None:
        total = _count_by_node(graph, stack, routed, limit)
    if total > LEAST_HELD:  # nobody holds more than he streams
        most = max(LEAST_HELD, HELD_PER_IO * io_elements)
        for node, held in list_peaks(graph, lambda kind: stack.count_elements(kind, routed)):
            if held > most:
                raise make_run_error(node, f"{held} elements held at once", f"at most {most} for this task")
    return total


@dataclass(frozen=True)
class _Traffic:
    """What a graph moves, whatever its sizes: how often the numbers of each type are touched, and what folds."""

    touches: tuple[tuple[StreamType, int], ...]  # 0: by views only
    folds: tuple[OpNode, ...]


@lru_cache(maxsize=256)
def _measure_traffic(graph: Graph) -> _Traffic:
    touches: dict[StreamType, int] = {}
    for node in graph.nodes:
        is_view = node.op in VIEWS
        for stream in node.results if is_view else (*node.results, *node.operands):
            kind = graph.types[stream]
            touches[kind] = touches.get(kind, 0) + (not is_view)
    folds = tuple(node for node in graph.nodes if node.op in ("Accum", "Scan") and node.fn is not None)
    return _Traffic(tuple(touches.items()), folds)


def _count_at_once(graph: Graph, stack: Stack, routed: Sizes | None, limit: int) -> int | None:
    """The numbers touched; None where a node is to be refused, which `_count_by_node` finds."""
    traffic = _measure_traffic(graph)
    try:
        counts = [stack.count_elements(kind, routed) for kind, _ in traffic.touches]
        entries = sum([_count_entries(graph, node, stack, routed) for node in traffic.folds])
    except DimError:
        return None
    total = sum([count * times for count, (_, times) in zip(counts, traffic.touches, strict=True)])
    return None if entries > MAX_ENTRIES or max(total, *counts, 0) > limit else total


def _count_by_node(graph: Graph, stack: Stack, routed: Sizes | None, limit: int) -> int:
    """The same, node by node: the first that streams or folds too much is refused."""
    total = entries = 0
    for node in graph.nodes:
        try:
            total += _count_touched(graph, node, stack, routed, limit)
            entries += _count_entries(graph, node, stack, routed)
        except DimError as error:
            raise make_run_error(node, str(error), "a whole size at every shape", "dims of whole symbols") from None
        if total > limit:
            raise make_run_error(node, f"{total} elements streamed up to here", f"at most {limit} for this task")
        if entries > MAX_ENTRIES:
            expected = f"at most {MAX_ENTRIES}, except for sums, maxima and minima"
            raise make_run_error(node, f"{entries} entries folded one after the other up to here", expected)
    return total


def _count_touched(graph: Graph, node: OpNode, stack: Stack, routed: Sizes | None, limit: int) -> int:
    counts = [stack.count_elements(graph.types[stream], routed) for stream in node.results]
    if max(counts) > limit:
        raise make_run_error(node, f"a stream of {max(counts)} elements", f"at most {limit} for this task")
    if node.op in VIEWS:
        return 0
    return sum(counts) + sum([stack.count_elements(graph.types[stream], routed) for stream in node.operands])


def _longest_routes(graph: Graph, stack: Stack) -> Sizes:
    """All sizes, every dynamic dim as long as its Partition's index has positions."""
    sizes = dict(stack.sizes)
    for node in graph.partitions.values():
        positions = math.prod(dim.value(sizes) for dim in graph.types[node.operands[1]].dims)
        sizes.update((f"?{node.partition}.{number}", positions) for number in range(len(node.results)))
    return sizes


def _count_entries(graph: Graph, node: OpNode, stack: Stack, routed: Sizes | None) -> int:
    """How many entries an Accum or a Scan takes one after the other."""
    if node.op not in ("Accum", "Scan") or node.fn is None or stack.find_fn(node.fn.func_name).reduction is not None:
        return 0
    sizes = stack.sizes if routed is None else routed
    return math.prod(dim.value(sizes) for dim in graph.types[node.operands[0]].dims[: node.ints[0]])
