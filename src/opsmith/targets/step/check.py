"""The static checker: is this text a well-typed, affine program of the task? (reference section 4)

One abstract interpretation does LANG, TYPE, OUT and AFFINE together; all findings are returned, none is raised. After a
TYPE error the result is of unknown type, which passes silently, so that one mistake gives one message and the affine
count still covers the whole program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.records import Diagnostic, Stage
from opsmith.targets.step import ops
from opsmith.targets.step.affine import Consumption, affine_findings
from opsmith.targets.step.dims import Dim, DimError, literal, symbol
from opsmith.targets.step.graph import Graph, Node
from opsmith.targets.step.ops import OpError
from opsmith.targets.step.program import UNKNOWN, Interpreter, LangError, Opaque, Primitive, Sized, Unknown, describe
from opsmith.targets.step.spec import Fn, TaskSpec
from opsmith.targets.step.types import Multihot, StreamType

MAX_FINDINGS = 20
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass(eq=False, slots=True)
class Stream(Opaque):
    """An abstract stream: one identity per result of each executed application. `type` None: unknown."""

    number: int
    type: StreamType | None
    value: int
    line: int | None  # None: an input
    op: str
    statement: ast.stmt | None = None  # the assignment that first named it
    uses: list[Consumption] = field(default_factory=list)

    def __str__(self) -> str:
        made = f"made by {self.op} on line {self.line}" if self.line else "input"
        return f"{self.name or 'the result'} ({made})"


@dataclass(eq=False, slots=True)
class FnValue(Opaque):
    """A fn of the task as a program's value."""

    fn: Fn


@dataclass
class Report:
    """What the checker found about one program: a graph to run, or errors.

    `unrolled` is the graph of every well-typed program, also of one that breaks the affine rule only.
    """

    unrolled: Graph | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[str, ...]
    streams: tuple[Stream, ...] = ()

    @property
    def graph(self) -> Graph | None:
        return None if self.errors else self.unrolled

    @property
    def stage(self) -> Stage:
        """The first stage that refused, RUN when none did."""
        kinds = {error.kind for error in self.errors}
        if "LANG" in kinds:
            return Stage.PARSE
        if kinds & {"TYPE", "OUT"}:
            return Stage.TYPE
        return Stage.AFFINE if "AFFINE" in kinds else Stage.RUN


def check_program(spec: TaskSpec, source: str, sizes: Mapping[str, int] | None = None) -> Report:
    """Check a program against its task at `sizes` (default: the task's own)."""
    typing = Typing(spec, sizes if sizes is not None else spec.sizes)
    interpreter = Interpreter(typing.names(), typing)
    returned = interpreter.run(source)
    typing.lines = interpreter.lines
    if not interpreter.errors:
        typing.check_outputs(returned)
    typed = (*interpreter.errors, *typing.findings())
    graph = None if typed else typing.graph(returned)
    errors = (*typed, *affine_findings(typing.streams, interpreter.lines))
    return Report(graph, errors, tuple(interpreter.warnings + typing.warnings), tuple(typing.streams))


class Typing:
    """The Applier that types every application and builds the graph."""

    def __init__(self, spec: TaskSpec, sizes: Mapping[str, int]) -> None:
        self.spec, self.sizes = spec, sizes
        self.streams: list[Stream] = []
        self.nodes: list[Node] = []
        self.errors: list[tuple[OpError, str, int, str]] = []
        self.warnings: list[str] = []
        self.lines: list[str] = []
        self.reads: set[str] = set()
        self._value_numbers: dict[tuple[Any, ...], int] = {}
        self._partitions: list[tuple[int, Stream, int]] = []  # (value of the index, index, N), by number
        self._inputs = {
            entry.name: self._stream(entry.type, ("input", entry.name), None, "input") for entry in spec.inputs
        }
        for name, stream in self._inputs.items():
            stream.name = name

    def names(self) -> dict[str, Any]:
        """Everything a program may mention: symbols, sizes, fns, inputs."""
        known: dict[str, Any] = {name: symbol(name) for name in (*self.sizes, *self.spec.symbols)}
        known |= {f"{name}_value": Sized(value, symbol(name)) for name, value in self.sizes.items()}
        known |= {fn.func_name: FnValue(fn.func_name, fn) for fn in self.spec.fns}
        return known | self._inputs

    def graph(self, returned: Sequence[Stream]) -> Graph:
        return Graph(
            tuple(self._inputs),
            tuple(self.nodes),
            tuple(stream.number for stream in returned),
            tuple(stream.type for stream in self.streams if stream.type is not None),
            tuple(stream.value for stream in self.streams),
            frozenset(self.reads),
            dict(self.sizes),
        )

    # ---------------------------------------------------------------- the Applier protocol
    def bind(self, name: str, value: Any, statement: ast.stmt) -> None:
        if isinstance(value, Stream) and not value.name:
            value.name, value.statement = name, statement

    def read_size(self, sized: Sized) -> int:
        self.reads |= sized.dim.symbols
        return sized.value

    def configure(self, op: str, keywords: Mapping[str, Any], line: int) -> dict[str, Any] | None:
        """The checked arguments, or None after an error (the application's result is then unknown)."""
        try:
            return {
                key: None if isinstance(value, Unknown) else self._argument(op, key, value)
                for key, value in keywords.items()
            }
        except OpError as error:
            self._error(error, op, line)
            return None

    def apply(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        op, config = primitive.op, primitive.config
        operands = self._operands(op, argument, node, line)
        if operands is None:
            return self._unknown_result(op, config, line)
        for stream, role, place in operands:
            stream.uses.append(Consumption(line, op, role, place))
        streams = [stream for stream, _, _ in operands]
        if config is None or None in config.values() or any(stream.type is None for stream in streams):
            return self._unknown_result(op, config, line)
        try:
            return _RULES[op](self, streams, line, **config)
        except OpError as error:
            if op == "Map" and len(streams) == 2 and streams[0].op == streams[1].op == "Copy":
                error.given = f"a pair from Copy, zipped to {error.given}"
                error.remedy = "A, B = step.Copy().apply(E0), then Map one of them"
            self._error(self._sharpen(error), op, line, streams)
            return self._unknown_result(op, config, line)

    # ---------------------------------------------------------------- arguments
    def _argument(self, op: str, key: str, value: Any) -> Any:
        if key == "fn":
            if not isinstance(value, FnValue):
                offered = ", ".join(fn.func_name for fn in self.spec.fns) or "none"
                raise OpError(describe(value), f"one of the task's fns: {offered}", f"{op}(fn=...)")
            return value.fn
        if key in ("n", "S"):
            return self._dim_argument(key, value)
        if key == "L":
            if not isinstance(value, (list, tuple)):
                raise OpError(f"L = {describe(value)}", "a list of whole numbers", f"L=[{describe(value)}]")
            return tuple(self._int_argument("L", entry) for entry in value)
        if key == "N" and isinstance(value, Dim):
            return self._symbol_count(value)
        return self._int_argument(key, value)

    def _symbol_count(self, value: Dim) -> int:
        names = list(value.symbols)
        if value != symbol(names[0] if names else "") or names[0] not in self.sizes:
            raise OpError(f"N = {value}", "a whole number, E_value or E", "N=E_value")
        return self.read_size(Sized(self.sizes[names[0]], value))

    def _dim_argument(self, key: str, value: Any) -> Dim:
        if isinstance(value, Sized):
            value = value.dim
        if type(value) is int:
            if value < 1:
                raise OpError(f"{key} = {value}", "a dim >= 1")
            value = literal(value)
        if not isinstance(value, Dim):
            raise OpError(f"{key} = {describe(value)}", "a dim: a symbol, a product of symbols or a whole number")
        try:
            number = value.value(self.sizes)
        except DimError as error:
            raise OpError(f"{key} = {value}: {error}", "a dim with a whole value") from None
        if number < 1:
            raise OpError(f"{key} = {value} = {number}", "a dim >= 1")
        return value

    def _int_argument(self, key: str, value: Any) -> int:
        if isinstance(value, Sized):
            return self.read_size(value)
        if type(value) is not int:
            remedy = f"{key}={value}_value" if isinstance(value, Dim) else ""
            raise OpError(f"{key} = {describe(value)}", "a whole number", remedy)
        return value

    # ---------------------------------------------------------------- operands
    def _operands(
        self, op: str, argument: Any, node: ast.expr, line: int
    ) -> list[tuple[Stream, str, ast.expr | None]] | None:
        """The streams an application consumes with role and source expression; None after an error."""
        try:
            return _OPERANDS.get(op, _one_stream)(op, argument, node)
        except _SilentError:
            self._consume_loose(op, argument, line)
            return None
        except OpError as error:
            self._consume_loose(op, argument, line)
            self._error(error, op, line)
            return None

    def _consume_loose(self, op: str, argument: Any, line: int) -> None:
        """Count what a wrongly shaped argument consumes all the same."""
        pending, seen = [argument], 0
        while pending and seen < 1000:
            seen += 1
            item = pending.pop()
            if isinstance(item, Stream):
                item.uses.append(Consumption(line, op, "", None))
            elif isinstance(item, (list, tuple)):
                pending += item[:100]

    def _unknown_result(self, op: str, config: dict[str, Any] | None, line: int) -> Any:
        if op == "Copy":
            return (self._loose(op, line), self._loose(op, line))
        if op == "Partition":
            count = (config or {}).get("N")
            return [self._loose(op, line) for _ in range(count)] if count and count <= 1000 else UNKNOWN
        return self._loose(op, line)

    def _loose(self, op: str, line: int) -> Stream:
        return self._stream(None, ("unknown", len(self.streams)), line, op)

    def _stream(self, kind: StreamType | None, key: tuple[Any, ...], line: int | None, op: str) -> Stream:
        value = self._value_numbers.setdefault(key, len(self._value_numbers))
        stream = Stream("", len(self.streams), kind, value, line, op)
        self.streams.append(stream)
        return stream

    def _emit(
        self,
        op: str,
        line: int,
        operands: Sequence[Stream],
        types: Sequence[StreamType],
        key: tuple[Any, ...],
        **extra: Any,
    ) -> list[Stream]:
        """Record an application; results are equal in value exactly when `key` is."""
        many = len(types) > 1
        results = [self._stream(kind, (*key, i) if many else key, line, op) for i, kind in enumerate(types)]
        numbers = tuple(stream.number for stream in operands)
        self.nodes.append(Node(op, numbers, tuple(stream.number for stream in results), line, **extra))
        return results

    # ---------------------------------------------------------------- results and findings
    def check_outputs(self, returned: Any) -> None:
        wanted = self.spec.outputs
        line = len(self.lines)
        if any(isinstance(value, Unknown) for value in returned):
            return
        for value in returned:
            if not isinstance(value, Stream):
                self._out(f"{describe(value)}", "streams", "return the streams themselves", line)
                return
        if len(returned) != len(wanted):
            names = ", ".join(output.name for output in wanted)
            self._out(f"{len(returned)} outputs", f"{len(wanted)}: {names}", "return them in that order", line)
            return
        for stream, output in zip(returned, wanted, strict=True):
            if stream.type is not None and stream.type != output.type:
                error = OpError(str(stream.type), str(output.type), dims=(stream.type.dims, output.dims))
                remedy = (
                    self._sharpen(error).remedy
                    or "Streamify, Bufferize, Flatten or Promote change dims without changing data"
                )
                self._out(f"{stream}: {stream.type}", f"{output.name}: {output.type}", remedy, line)

    def _out(self, given: str, expected: str, remedy: str, line: int) -> None:
        self.errors.append((OpError(given, expected, remedy), "the returned streams", line, "OUT"))

    def _error(self, error: OpError, op: str, line: int, streams: Sequence[Stream] = ()) -> None:
        where = op
        if error.operand is not None and error.operand < len(streams):
            place = _ORDINALS[error.operand] if error.operand < len(_ORDINALS) else f"number {error.operand + 1}"
            where = f"{op}, {place} stream, {streams[error.operand]}"
        elif len(streams) == 1:
            where = f"{op} of {streams[0]}"
        self.errors.append((error, where, line, "TYPE"))

    def _sharpen(self, error: OpError) -> OpError:
        """Say it when a number was written where its symbol is meant: `4 is the value of D here; write n=D`."""
        for given, expected in zip(*error.dims, strict=False) if error.dims else ():
            for number, name in ((given, expected), (expected, given)):
                if number.powers or number == name or not name.powers:
                    continue
                if name.symbols <= self.sizes.keys() and number == literal(name.value(self.sizes)):
                    error.remedy = f"{number} is the value of {name} here; write {name}, not {number}"
        return error

    def findings(self) -> list[Diagnostic]:
        """The collected errors with the text of their lines."""
        found = []
        for error, where, line, kind in self.errors[:MAX_FINDINGS]:
            text = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
            found.append(Diagnostic(kind, where, error.given, error.expected, error.remedy, line, None, text))
        return found


class _SilentError(Exception):
    """An operand is unknown: it was reported before."""


Operands = list[tuple[Stream, str, ast.expr | None]]


def _stream_of(value: Any, expected: str, remedy: str = "") -> Stream:
    if isinstance(value, Unknown):
        raise _SilentError
    if not isinstance(value, Stream):
        raise OpError(describe(value), expected, remedy)
    return value


def _parts(node: ast.expr, count: int) -> Sequence[ast.expr | None]:
    """The source expressions of a tuple's elements, where it is written out in the call."""
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == count:
        return node.elts
    return [None] * count


def _one_stream(op: str, argument: Any, node: ast.expr) -> Operands:
    if isinstance(argument, tuple) and argument and all(isinstance(part, Stream) for part in argument):
        if len(argument) == 2 and argument[0].op == "Copy":
            raise OpError("the pair of streams from Copy", "one stream", "A, B = step.Copy().apply(E0)")
        remedy = "step.Zip().apply((E0, E1)) first" if op in ("Accum", "Scan") else "apply it to each stream"
        raise OpError(f"a tuple of {len(argument)} streams", "one stream", remedy)
    return [(_stream_of(argument, "one stream", f"[step.{op}(...).apply(s) for s in list]"), "", node)]


def _map_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    if isinstance(argument, list):
        given = f"a list of {len(argument)} streams"
        raise OpError(given, "a stream or a tuple", "[step.Map(fn=fn_x).apply(s) for s in E2]")
    if not isinstance(argument, tuple):
        return [(_stream_of(argument, "a stream or a tuple of streams"), "", node)]
    if not argument:
        raise OpError("an empty tuple", "a stream or a tuple of streams")
    places = _parts(node, len(argument))
    return [(_stream_of(part, "streams in the tuple"), "", place) for part, place in zip(argument, places, strict=True)]


def _pair(argument: Any, expected: str, remedy: str) -> Sequence[Any]:
    if isinstance(argument, Unknown):
        raise _SilentError
    if not isinstance(argument, (tuple, list)) or len(argument) != 2:
        given = f"{len(argument)} streams" if isinstance(argument, (tuple, list)) else describe(argument)
        raise OpError(given, expected, remedy)
    return argument


def _two_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    remedy = {
        "Zip": "step.Zip().apply((step.Zip().apply((E0, E1)), E2)), or Map, which zips any number",
        "RepeatRef": ".apply((data, reference))",
        "Partition": ".apply((data, index))",
    }[op]
    first, second = _pair(argument, "2 streams", remedy)
    places = _parts(node, 2)
    role = {"Partition": "index", "RepeatRef": "reference"}.get(op, "")
    return [(_stream_of(first, "a stream"), "", places[0]), (_stream_of(second, "a stream"), role, places[1])]


def _merge_streams(op: str, argument: Any, node: ast.expr) -> Operands:
    streams, index = _pair(argument, "a pair: (list of streams, index)", ".apply(([X0, X1], index))")
    places = _parts(node, 2)
    if isinstance(streams, Unknown):
        raise _SilentError
    if not isinstance(streams, (list, tuple)) or not streams:
        raise OpError(describe(streams), "a list of streams first", ".apply(([X0, X1], index))")
    inner = _parts(places[0], len(streams)) if places[0] is not None else [None] * len(streams)
    found: Operands = [
        (_stream_of(part, "streams in the list"), "", place) for part, place in zip(streams, inner, strict=True)
    ]
    return [*found, (_stream_of(index, "an index stream"), "index", places[1])]


_OPERANDS: dict[str, Callable[[str, Any, ast.expr], Operands]] = {
    "Map": _map_streams,
    "Zip": _two_streams,
    "RepeatRef": _two_streams,
    "Partition": _two_streams,
    "Merge": _merge_streams,
}


# -------------------------------------------------------------------- the rules, one per primitive
def _type(stream: Stream) -> StreamType:
    if stream.type is None:
        raise AssertionError("unknown types never reach a rule")
    return stream.type


def _map(typing: Typing, streams: list[Stream], line: int, fn: Fn) -> Stream:
    result = ops.map_(fn, [_type(stream) for stream in streams])
    value = streams[0].value
    for stream in streams[1:]:
        value = typing._value_numbers.setdefault(("Zip", value, stream.value), len(typing._value_numbers))
    return typing._emit("Map", line, streams, [result], ("Map", fn.func_name, value), fn=fn)[0]


def _zip(typing: Typing, streams: list[Stream], line: int) -> Stream:
    result = ops.zip_(_type(streams[0]), _type(streams[1]))
    return typing._emit("Zip", line, streams, [result], ("Zip", streams[0].value, streams[1].value))[0]


def _accum(typing: Typing, streams: list[Stream], line: int, fn: Fn, b: int) -> Stream:
    result = ops.accum(fn, _type(streams[0]), b)
    return typing._emit(
        "Accum", line, streams, [result], ("Accum", fn.func_name, b, streams[0].value), fn=fn, ints=(b,)
    )[0]


def _scan(typing: Typing, streams: list[Stream], line: int, fn: Fn, b: int) -> Stream:
    result = ops.scan(fn, _type(streams[0]), b)
    return typing._emit("Scan", line, streams, [result], ("Scan", fn.func_name, b, streams[0].value), fn=fn, ints=(b,))[
        0
    ]


def _promote(typing: Typing, streams: list[Stream], line: int, b: int) -> Stream:
    result = ops.promote(_type(streams[0]), b)
    return typing._emit("Promote", line, streams, [result], ("Promote", b, streams[0].value), ints=(b,))[0]


def _flatten(typing: Typing, streams: list[Stream], line: int, L: tuple[int, ...]) -> Stream:
    result = ops.flatten(_type(streams[0]), L)
    return typing._emit("Flatten", line, streams, [result], ("Flatten", L, streams[0].value), ints=L)[0]


def _reshape(typing: Typing, streams: list[Stream], line: int, S: Dim, L: tuple[int, ...]) -> Stream:
    kind = _type(streams[0])
    typing.reads |= S.symbols.union(*(kind.dims[i].symbols for i in L if 0 <= i < len(kind.dims)))
    result = ops.reshape(kind, S, L, typing.sizes)
    return typing._emit("Reshape", line, streams, [result], ("Reshape", S, L, streams[0].value), ints=L, dim=S)[0]


def _repeat(typing: Typing, streams: list[Stream], line: int, n: Dim) -> Stream:
    result = ops.repeat(_type(streams[0]), n)
    return typing._emit("Repeat", line, streams, [result], ("Repeat", n, streams[0].value), dim=n)[0]


def _repeat_ref(typing: Typing, streams: list[Stream], line: int) -> Stream:
    result = ops.repeat_ref(_type(streams[0]), _type(streams[1]))
    key = ("Repeat", result.dims[0], streams[0].value)
    return typing._emit("RepeatRef", line, streams, [result], key)[0]


def _bufferize(typing: Typing, streams: list[Stream], line: int, a: int) -> Stream:
    result = ops.bufferize(_type(streams[0]), a)
    return typing._emit("Bufferize", line, streams, [result], ("Bufferize", a, streams[0].value), ints=(a,))[0]


def _streamify(typing: Typing, streams: list[Stream], line: int) -> Stream:
    result = ops.streamify(_type(streams[0]))
    return typing._emit("Streamify", line, streams, [result], ("Streamify", streams[0].value))[0]


def _copy(typing: Typing, streams: list[Stream], line: int) -> tuple[Stream, Stream]:
    pair = typing._emit("Copy", line, streams, ops.copy(_type(streams[0])), ("Copy", len(typing.nodes)))
    for stream in pair:
        stream.value = streams[0].value
    return pair[0], pair[1]


def _identity(typing: Typing, streams: list[Stream], line: int) -> Stream:
    result = typing._emit("Identity", line, streams, [_type(streams[0])], ("Identity", len(typing.nodes)))[0]
    result.value = streams[0].value
    return result


def _partition(typing: Typing, streams: list[Stream], line: int, N: int) -> list[Stream]:
    data, index = streams
    kind = _type(index).dtype
    length = None
    if isinstance(kind, Multihot):
        length = kind.length.value(typing.sizes) if kind.length.symbols <= typing.sizes.keys() else None
        typing.reads |= kind.length.symbols
    number = len(typing._partitions)
    types = ops.partition(_type(data), _type(index), N, length, number)
    typing._partitions.append((index.value, index, N))
    key = ("Partition", number, data.value, index.value)
    return typing._emit("Partition", line, streams, types, key, ints=(N,), partition=number)


def _merge(typing: Typing, streams: list[Stream], line: int, fn: Fn) -> Stream:
    *items, index = streams
    number = ops.merged_partition([_type(stream) for stream in items])
    value, original, count = typing._partitions[number]
    if len(items) != count:
        raise OpError(
            f"{len(items)} streams", f"all {count} streams of the Partition on line {original_line(typing, number)}"
        )
    compare = value != index.value
    if compare:
        _same_index(typing, index, original, number, line)
    result = ops.merge(fn, [_type(stream) for stream in items], _type(index))
    key = ("Merge", fn.func_name, *(stream.value for stream in streams))
    return typing._emit("Merge", line, streams, [result], key, fn=fn, partition=number, compare_index=compare)[0]


def original_line(typing: Typing, number: int) -> int:
    """The line of Partition `number`."""
    return next(node.line for node in typing.nodes if node.partition == number and node.op == "Partition")


def _same_index(typing: Typing, index: Stream, original: Stream, number: int, line: int) -> None:
    partition_line = original_line(typing, number)
    if _type(index) != _type(original) or (index.op == "input" and _root(typing, original).op == "input"):
        raise OpError(
            f"index {index}: {index.type}",
            f"the index of Partition on line {partition_line}, {original}: {original.type}",
            f"{original.name}_a, {original.name}_b = step.Copy().apply({original.name}); one for each",
        )
    typing.warnings.append(
        f"line {line}: Merge's index {index.name or 'expression'} is another expression than that of Partition "
        f"on line {partition_line}; their values are compared when the program runs"
    )


def _root(typing: Typing, stream: Stream) -> Stream:
    """The first stream with that value: a copied input counts as the input."""
    return next(other for other in typing.streams if other.value == stream.value)


_RULES: dict[str, Callable[..., Any]] = {
    "Map": _map,
    "Zip": _zip,
    "Accum": _accum,
    "Scan": _scan,
    "Promote": _promote,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Repeat": _repeat,
    "RepeatRef": _repeat_ref,
    "Bufferize": _bufferize,
    "Streamify": _streamify,
    "Copy": _copy,
    "Identity": _identity,
    "Partition": _partition,
    "Merge": _merge,
}

__all__ = ["FnValue", "LangError", "Report", "Stream", "Typing", "check_program"]
