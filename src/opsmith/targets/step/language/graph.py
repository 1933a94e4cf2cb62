"""The dataflow graph of one program: which primitive consumes which stream.

`check` builds it, `run` executes it, `cost` weighs it, `affine` counts in it. Streams are numbered in program order;
a stream's value number is equal for two streams exactly when they are the same expression over the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.ops import KEYWORDS
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import StreamType, inner_dims


class OpNode(NamedTuple):
    """One application over stream numbers; Merge's operands are its streams, then the index."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    line: int
    fn: FnSpec | None = None
    ints: tuple[int, ...] = ()  # b, a or N; the entries of L
    dim: Dim | None = None  # n of Repeat, S of Reshape
    partition: int | None = None  # number of the Partition; of the one a Merge belongs to
    compare_index: bool = False  # Merge: the index is another expression than Partition's, so compare the values

    def list_arguments(self) -> list[tuple[str, str]]:
        """Its keywords, each with what a program writes for it."""
        dim, numbers = str(self.dim), ", ".join(map(str, self.ints))
        written = {"fn": self.fn.func_name if self.fn else "", "L": f"[{numbers}]", "n": dim, "S": dim}
        return [(key, written.get(key, numbers)) for key in KEYWORDS[self.op]]


@dataclass(frozen=True, eq=False)
class Graph:
    """A well-typed program, unrolled. `types` and `values` are indexed by stream number; inputs come first.

    A graph is equal to nothing but itself, so that what is computed from it can be kept.
    """

    inputs: tuple[str, ...]
    nodes: tuple[OpNode, ...]
    outputs: tuple[int, ...]
    types: tuple[StreamType, ...]
    values: tuple[int, ...]
    reads: frozenset[str] = field(default_factory=frozenset)  # symbols whose number shaped the graph
    sizes: Mapping[str, int] = field(default_factory=dict)  # the sizes it was checked at

    @cached_property
    def partitions(self) -> Mapping[int, OpNode]:
        """The Partition nodes by their number."""
        return {node.partition: node for node in self.nodes if node.op == "Partition" and node.partition is not None}

    @cached_property
    def distinct(self) -> tuple[OpNode, ...]:
        """The nodes that compute a value not computed before."""
        computed = set(self.values[: len(self.inputs)])
        nodes = []
        for node in self.nodes:
            values = [self.values[stream] for stream in node.results]
            if node.op not in ("Copy", "Identity") and not computed.issuperset(values):
                nodes.append(node)
                computed.update(values)
        return tuple(nodes)

    def outputs_through(self, func_name: str) -> frozenset[int]:
        """The outputs, by number, that depend on what a fn gives."""
        reached: set[int] = set()
        for node in self.nodes:
            if (node.fn is not None and node.fn.func_name == func_name) or not reached.isdisjoint(node.operands):
                reached.update(node.results)
        return frozenset(number for number, stream in enumerate(self.outputs) if stream in reached)

    @cached_property
    def needed(self) -> tuple[OpNode, ...]:
        """The distinct nodes that an output depends on, or that compare an index: only these can change a verdict.

        A Partition whose streams nobody reads has its index as only operand.
        """
        read = {self.values[stream] for stream in self.outputs}
        nodes = []
        for node in reversed(self.distinct):
            is_read = node.compare_index or not read.isdisjoint([self.values[stream] for stream in node.results])
            if is_read or node.op == "Partition":
                reader = node if is_read else node._replace(operands=node.operands[1:])
                read.update([self.values[stream] for stream in reader.operands])
                nodes.append(reader)
        return tuple(reversed(nodes))

    @cached_property
    def has_unread_fns(self) -> bool:
        """Whether a fn is applied where no output depends on it."""
        every, needed = (sum(node.fn is not None for node in nodes) for nodes in (self.distinct, self.needed))
        return every > needed

    @cached_property
    def is_stackable(self) -> bool:
        """Whether several draws can share tensors: routed streams keep their dynamic dim outermost."""
        return not self.partitions or all(map(self._keeps_draws_apart, self.nodes))

    def _keeps_draws_apart(self, node: OpNode) -> bool:
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
    return any(dim.is_dynamic for dim in (*kind.dims[:-1], *inner_dims(kind.dtype)))
