"""What a target says so that a program can be drawn: the form of a dataflow graph, and the protocol of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from opsmith.records import Task

Kind = Literal["input", "operation", "output", "unused"]


@dataclass(frozen=True)
class Node:
    """One application, or an end of the graph. `unused`: where a result goes that nothing consumes."""

    id: str
    label: str  # what it does: Map
    detail: str = ""  # with which function and numbers: fn_exp, b=1
    kind: Kind = "operation"


@dataclass(frozen=True)
class Edge:
    """What flows from one node to another."""

    source: str
    target: str
    type_text: str
    operand: int = 0  # its place among several of the target, from 1; 0: the only one


@dataclass(frozen=True)
class Dataflow:
    """A program as a graph. The nodes stand in an order in which they can run, so that there is no circle."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        place = {node.id: at for at, node in enumerate(self.nodes)}
        if len(place) < len(self.nodes):
            raise ValueError("Dataflow: two nodes have one id")
        for edge in self.edges:
            if edge.source not in place or edge.target not in place or place[edge.source] >= place[edge.target]:
                raise ValueError(f"Dataflow: edge {edge.source} -> {edge.target} leads to no later node")


@runtime_checkable
class Drawn(Protocol):
    """What a target adds whose programs are graphs."""

    def dataflow(self, task: Task, source: str) -> Dataflow | None:
        """The program's graph; None where it has none: it does not parse, or is not well typed."""
        ...
