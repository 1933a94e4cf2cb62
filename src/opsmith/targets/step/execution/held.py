"""Memory: how many numbers are held while each node of a program runs.

A view lies in the memory of what it was made from and keeps that alive. So does a Map that an Accum takes in parts.
Where entries are repeated (stride 0), what joins or splits axes must write them down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from opsmith.targets.step.execution.kernels import VIEWS
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.types import Scalar, StreamType

Count = Callable[[StreamType], int]  # the numbers of a stream; a Buffer's or a tuple's are all counted

_REPEATING = frozenset(("Repeat", "RepeatRef"))
_JOINING = frozenset(("Flatten", "Reshape"))  # views, unless entries are repeated


@dataclass(frozen=True)
class _Memory:
    """Where a value lies: the nodes that made its tensors (none: an input), and whether entries are repeated."""

    makers: frozenset[int] = frozenset()
    repeats: bool = False


def list_peaks(graph: Graph, count: Count) -> Iterator[tuple[OpNode, int]]:
    """Every node with the numbers that are held while it runs, inputs excepted."""
    memories = _Memories(graph, count)
    last_uses = memories.last_uses
    held = 0
    for number, node in enumerate(graph.distinct):
        held += memories.made[number]
        yield node, held + memories.scratch[number]
        held -= sum(memories.made[maker] for maker in last_uses.get(number, ()))


class _Memories:
    """By a node's place: the numbers that its results take, and those that it needs on the way."""

    def __init__(self, graph: Graph, count: Count) -> None:
        self._graph, self._count = graph, count
        self._of: dict[int, _Memory] = {}  # by value
        self.made: list[int] = []
        self.scratch: list[int] = []
        for number, node in enumerate(graph.distinct):
            self._enter_node(number, node)

    def _enter_node(self, number: int, node: OpNode) -> None:
        operands = [self._find_memory(stream) for stream in node.operands]
        repeats = any(memory.repeats for memory in operands)
        is_put_off = self._is_taken_in_parts(node)
        if is_put_off or self._is_view(node, repeats):
            shared = frozenset[int]().union(*(memory.makers for memory in operands))
            self._place_results(node, _Memory(shared, (repeats and not is_put_off) or node.op in _REPEATING))
            self.made.append(0)
        else:
            self._place_results(node, _Memory(frozenset((number,))))
            self.made.append(self._count_numbers(node.results))
        is_joining = node.op in ("Partition", "Merge") or (node.op in ("Accum", "Scan") and node.ints[0] > 1)
        copied = self._count_numbers(node.operands) if repeats and is_joining else 0
        self.scratch.append(copied + (self.made[number] if node.op in ("Scan", "Merge") else 0))

    def _find_memory(self, stream: int) -> _Memory:
        return self._of.get(self._graph.values[stream], _Memory())

    def _place_results(self, node: OpNode, memory: _Memory) -> None:
        self._of.update((self._graph.values[stream], memory) for stream in node.results)

    def _count_numbers(self, streams: tuple[int, ...]) -> int:
        return sum(self._count(self._graph.types[stream]) for stream in streams)

    @staticmethod
    def _is_view(node: OpNode, repeats: bool) -> bool:
        return node.op in VIEWS or node.op == "Promote" or (node.op in _JOINING and not repeats)

    def _is_taken_in_parts(self, node: OpNode) -> bool:
        """Whether it is a Map whose only reader is an Accum that leaves an axis along which it can be cut."""
        readers = self._readers_by_value.get(self._graph.values[node.results[0]], [])
        if node.op != "Map" or len(readers) != 1 or readers[0] is None or readers[0].op != "Accum":
            return False
        outer = self._graph.types[readers[0].results[0]].dims
        return self._count(StreamType(Scalar("fp32"), outer)) > 1

    @cached_property
    def _readers_by_value(self) -> dict[int, list[OpNode | None]]:
        """Who reads a value; None: whoever wanted the program's outputs."""
        readers: dict[int, list[OpNode | None]] = {}
        for node in self._graph.distinct:
            for stream in node.operands:
                readers.setdefault(self._graph.values[stream], []).append(node)
        for stream in self._graph.outputs:
            readers.setdefault(self._graph.values[stream], []).append(None)
        return readers

    @cached_property
    def last_uses(self) -> dict[int, list[int]]:
        """Whose memory is needed no longer after a node, by the node's place."""
        last = {number: number for number in range(len(self.made))}
        reads = [(number, node.operands) for number, node in enumerate(self._graph.distinct)]
        for number, streams in [*reads, (len(reads), self._graph.outputs)]:
            last.update((maker, number) for stream in streams for maker in self._find_memory(stream).makers)
        last_uses: dict[int, list[int]] = {}
        for maker, number in last.items():
            last_uses.setdefault(number, []).append(maker)
        return last_uses
