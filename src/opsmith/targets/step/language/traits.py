"""Traits read off a program's graph: whether it manipulates shapes, and whether it uses a stream twice.

The primitives that change the shape of a stream are those with which the counts of the paper's table 2 come out on its
own tasks: 7 Arith-Once, 8 Arith-Reuse, 7 Shape-Once, 4 Shape-Reuse. Bufferize and Streamify are not among them, though
the caption of figure 17 counts them: they move data between stream and buffer and keep its shape, and with them nearly
every oracle would be a Shape task.
"""

from __future__ import annotations

from opsmith.targets.step.language.graph import Graph

SHAPE = frozenset({"Promote", "Flatten", "Reshape", "Repeat", "RepeatRef"})


def manipulates_shapes(graph: Graph) -> bool:
    """Whether a primitive changes the shape of a stream."""
    return any(node.op in SHAPE for node in graph.nodes)


def reuses_streams(graph: Graph) -> bool:
    """Whether a Copy hands one stream to two consumers."""
    consumed = {stream for node in graph.nodes for stream in node.operands} | set(graph.outputs)
    return any(node.op == "Copy" and consumed.issuperset(node.results) for node in graph.nodes)
