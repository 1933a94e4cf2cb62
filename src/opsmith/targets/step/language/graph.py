"""The dataflow graph of one program: which primitive consumes which stream? (reference section 4)

`check` builds it, `run` executes it, `cost` weighs it, `affine` counts in it. Streams are numbered in program order;
a stream's value number is equal for two streams exactly when they are the same expression over the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import StreamType


class Node(NamedTuple):
    """One application over stream numbers; Merge's operands are its streams, then the index."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    line: int
    fn: Fn | None = None
    ints: tuple[int, ...] = ()  # b, a or N; the entries of L
    dim: Dim | None = None  # n of Repeat, S of Reshape
    partition: int | None = None  # number of the Partition; of the one a Merge belongs to
    compare_index: bool = False  # Merge: the index is another expression than Partition's, so compare the values


@dataclass(frozen=True, eq=False)
class Graph:
    """A well-typed program, unrolled. `types` and `values` are indexed by stream number; inputs come first.

    A graph is equal to nothing but itself, so that what is computed from it can be kept.
    """

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    types: tuple[StreamType, ...]
    values: tuple[int, ...]
    reads: frozenset[str] = field(default_factory=frozenset)  # symbols whose number shaped the graph
    sizes: Mapping[str, int] = field(default_factory=dict)  # the sizes it was checked at

    @cached_property
    def partitions(self) -> Mapping[int, Node]:
        """The Partition nodes by their number."""
        return {node.partition: node for node in self.nodes if node.op == "Partition" and node.partition is not None}

    @cached_property
    def schedule(self) -> tuple[tuple[Node, ...], Mapping[int, int]]:
        """The nodes that compute a value not computed before, and how often each value number is read by them."""
        done = set(self.values[: len(self.inputs)])
        reads = dict.fromkeys(self.values, 0)
        nodes = []
        for node in self.nodes:
            if node.op in ("Copy", "Identity") or all(self.values[stream] in done for stream in node.results):
                continue
            nodes.append(node)
            done.update(self.values[stream] for stream in node.results)
            for stream in node.operands:
                reads[self.values[stream]] += 1
        for stream in self.outputs:
            reads[self.values[stream]] += 1
        return tuple(nodes), reads
