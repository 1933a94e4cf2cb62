"""Building a program's graph while it is interpreted: streams with identities and value numbers, and nodes.

The value number of an input is its own; that of a result is fixed by primitive, arguments, function and the operands'
value numbers. Functions are pure, so equal value numbers mean equal data. Copy and Identity are transparent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.affine import Consumption
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import StreamType
from opsmith.targets.step.language.values import Opaque


@dataclass(eq=False, slots=True)
class AbstractStream(Opaque):
    """An abstract stream: one identity per result of each executed application. `type` None: unknown."""

    noun: ClassVar[str] = "stream"
    number: int
    type: StreamType | None
    value: int
    line: int | None  # None: an input
    op: str
    uses: list[Consumption] = field(default_factory=list)

    def __str__(self) -> str:
        origin = f"made by {self.op} on line {self.line}" if self.line else "input"
        return f"{self.name or 'the result'} ({origin})"


@dataclass(eq=False, slots=True)
class FnValue(Opaque):
    """A fn of the task as a program's value."""

    noun: ClassVar[str] = "fnvalue"
    fn: FnSpec


@dataclass(frozen=True)
class Routing:
    """One Partition of the program: its index, its line and its number of streams."""

    index: AbstractStream
    line: int
    count: int


class GraphBuilder:
    """Collects streams and nodes at the given sizes; `reads` are the symbols whose number shaped the graph."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.streams: list[AbstractStream] = []
        self.input_values: set[int] = set()
        self.nodes: list[OpNode] = []
        self.routings: list[Routing] = []  # by Partition number
        self.warnings: list[str] = []
        self.reads: set[str] = set()
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number_value(self, *key: Any) -> int:
        """The value number of an expression; equal keys are equal values."""
        return self._numbers.setdefault(key, len(self._numbers))

    def add_stream(
        self, kind: StreamType | None, value: int, line: int | None, op: str, name: str = ""
    ) -> AbstractStream:
        """A new stream with an identity of its own."""
        stream = AbstractStream(name, len(self.streams), kind, value, line, op)
        self.streams.append(stream)
        if line is None:
            self.input_values.add(value)
        return stream

    def add_unknown(self, op: str, line: int) -> AbstractStream:
        """A stream of unknown type, equal to nothing."""
        return self.add_stream(None, self.number_value("unknown", len(self.streams)), line, op)

    def number_application(
        self,
        op: str,
        operands: Sequence[int],
        fn: FnSpec | None = None,
        ints: tuple[int, ...] = (),
        dim: Dim | None = None,
    ) -> int:
        """The value number of an application's only result, from its arguments and its operands' value numbers."""
        key = (op, fn.func_name if fn is not None else None, ints, dim, *operands)
        return self._numbers.setdefault(key, len(self._numbers))

    def emit_node(
        self,
        op: str,
        line: int,
        operands: Sequence[AbstractStream],
        result: StreamType,
        fn: FnSpec | None = None,
        ints: tuple[int, ...] = (),
        dim: Dim | None = None,
        value: int | None = None,
    ) -> AbstractStream:
        """Record an application with one result; `value` where it is not that of the arguments and operands."""
        if value is None:
            value = self.number_application(op, [stream.value for stream in operands], fn, ints, dim)
        stream = self.add_stream(result, value, line, op)
        numbers = tuple([stream.number for stream in operands])
        self.nodes.append(OpNode(op, numbers, (stream.number,), line, fn, ints, dim))
        return stream

    def emit_values(
        self,
        op: str,
        line: int,
        operands: Sequence[AbstractStream],
        results: Iterable[tuple[StreamType, int]],
        **attributes: Any,
    ) -> list[AbstractStream]:
        """Record an application whose results have these types and value numbers."""
        streams = [self.add_stream(kind, value, line, op) for kind, value in results]
        numbers = tuple([stream.number for stream in operands])
        self.nodes.append(OpNode(op, numbers, tuple([stream.number for stream in streams]), line, **attributes))
        return streams

    def build_graph(self, inputs: Sequence[str], returned: Sequence[AbstractStream]) -> Graph:
        """The finished graph of a well-typed program."""
        return Graph(
            tuple(inputs),
            tuple(self.nodes),
            tuple([stream.number for stream in returned]),
            tuple([stream.type for stream in self.streams if stream.type is not None]),
            tuple([stream.value for stream in self.streams]),
            frozenset(self.reads),
            dict(self.sizes),
        )
