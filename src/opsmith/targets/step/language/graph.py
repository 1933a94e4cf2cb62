"""The dataflow graph of one program: which primitive consumes which stream? (reference section 4)

`check` builds it, `run` executes it, `cost` weighs it, `affine` counts in it. Streams are numbered in program order;
a stream's value number is equal for two streams exactly when they are the same expression over the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import StreamType, element_dims, fields_of


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
    def distinct(self) -> tuple[Node, ...]:
        """The nodes that compute a value not computed before."""
        done = set(self.values[: len(self.inputs)])
        nodes = []
        for node in self.nodes:
            values = [self.values[stream] for stream in node.results]
            if node.op not in ("Copy", "Identity") and not done.issuperset(values):
                nodes.append(node)
                done.update(values)
        return tuple(nodes)

    @cached_property
    def is_stackable(self) -> bool:
        """Whether several draws can share tensors: routed streams keep their dynamic dim outermost."""
        return not self.partitions or all(map(self._keeps_draws_apart, self.nodes))

    def _keeps_draws_apart(self, node: Node) -> bool:
        results = [self.types[stream] for stream in node.results]
        if any(_is_dynamic_inside(kind) for kind in results):
            return False
        if node.op in ("Partition", "Merge"):
            return True
        source = _is_dynamic(self.types[node.operands[0]])
        return all(source == _is_dynamic(kind) for kind in results)


def _is_dynamic(kind: StreamType) -> bool:
    return bool(kind.dims) and kind.dims[-1].is_dynamic


@lru_cache(maxsize=4096)
def _is_dynamic_inside(kind: StreamType) -> bool:
    inner = (*kind.dims[:-1], *(dim for part in fields_of(kind.dtype) for dim in element_dims(part)))
    return any(dim.is_dynamic for dim in inner)
