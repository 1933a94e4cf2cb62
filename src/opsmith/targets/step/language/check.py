"""The static checker: whether a text is a well-typed, affine program of a task.

One abstract interpretation does LANG, TYPE, OUT and AFFINE together; all findings are returned, none is raised. After a
TYPE error the result is of unknown type, which passes silently, so that one mistake gives one message and the affine
count still covers the whole program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.problems.dims import Dim, DimError, make_literal, make_symbol
from opsmith.records import Diagnostic, Stage
from opsmith.targets.step.language.affine import Consumption, affine_findings
from opsmith.targets.step.language.build import AbstractStream, FnValue, GraphBuilder
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.operands import Operands, Reported, list_operands
from opsmith.targets.step.language.ops import MAX_AXES, OpError
from opsmith.targets.step.language.program import Interpreter
from opsmith.targets.step.language.rules import apply_rule
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.language.values import (
    UNKNOWN,
    Primitive,
    Sized,
    Unknown,
    describe_value,
    list_leaves,
    report_mistake,
)

MAX_FINDINGS = 20
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass
class Report:
    """What the checker found about one program: a graph to run, or errors.

    `unrolled` is the graph of every well-typed program, also of one that breaks the affine rule only.
    """

    unrolled: Graph | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[str, ...]
    streams: tuple[AbstractStream, ...] = ()

    @property
    def graph(self) -> Graph | None:
        return None if self.errors else self.unrolled

    @property
    def stage(self) -> Stage:
        """The first stage that refused, RUN when none did."""
        kinds = {error.kind for error in self.errors}
        if "LANG" in kinds:
            return Stage("PARSE")
        if kinds & {"TYPE", "OUT"}:
            return Stage("TYPE")
        return Stage("AFFINE") if "AFFINE" in kinds else Stage.RUN


def check_program(spec: TaskSpec, source: str, sizes: Mapping[str, int] | None = None) -> Report:
    """Check a program against its task at `sizes` (default: the task's own)."""
    typing = Typing(spec, sizes if sizes is not None else spec.sizes)
    return examine_program(typing, Interpreter(typing.list_names(), typing), source)


def examine_program(typing: Typing, interpreter: Interpreter, source: str) -> Report:
    """Check a program by what an interpreter makes of it, whose applications `typing` types."""
    returned = interpreter.run_program(source)
    typing.lines = interpreter.lines
    if not interpreter.errors:
        typing.check_outputs(returned)
    typed = (*interpreter.errors, *typing.list_findings())
    graph = None if typed else typing.build_graph(tuple(typing.inputs), returned)
    errors = (*typed, *affine_findings(typing.streams, interpreter.lines))
    warnings = tuple(dict.fromkeys(interpreter.warnings + typing.warnings))[:MAX_FINDINGS]  # a loop repeats them
    return Report(graph, errors, warnings, tuple(typing.streams))


@dataclass
class Program:
    """A checked program; where a size shapes its graph (a loop over E, say), other sizes are checked anew."""

    spec: TaskSpec
    source: str
    report: Report
    _latest: tuple[Mapping[str, int], Report] | None = field(default=None, repr=False)  # at other sizes

    def report_at(self, sizes: Mapping[str, int]) -> Report:
        """The report at these sizes."""
        base = self.report.graph
        if base is not None and all(base.sizes.get(name) == sizes.get(name) for name in base.reads):
            return self.report
        if self._latest is None or self._latest[0] != sizes:
            self.remember_report(sizes, check_program(self.spec, self.source, sizes))
        assert self._latest is not None
        return self._latest[1]

    def remember_report(self, sizes: Mapping[str, int], report: Report) -> None:
        """Keep the report at these sizes, until there is another one."""
        self._latest = dict(sizes), report


def _list_vocabulary(spec: TaskSpec, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What every program of the task may mention, but its inputs."""
    vocabulary: dict[str, Any] = {name: make_symbol(name) for name in (*sizes, *spec.problem.symbols)}
    vocabulary |= {f"{name}_value": Sized(value, make_symbol(name)) for name, value in sizes.items()}
    return vocabulary | {fn.func_name: FnValue(fn.func_name, fn) for fn in spec.fns}


class Typing(GraphBuilder):
    """The Applier that types every application and builds the graph."""

    def __init__(self, spec: TaskSpec, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)
        self.spec = spec
        self.errors: list[tuple[OpError, str, int, str]] = []
        self.lines: list[str] = []
        self.inputs = {
            entry.name: self.add_stream(entry.type, self.number_value("input", entry.name), None, "input", entry.name)
            for entry in spec.inputs
        }

    def list_names(self) -> dict[str, Any]:
        """Everything a program may mention: symbols, sizes, fns, inputs."""
        if self.sizes is not self.spec.sizes:
            return _list_vocabulary(self.spec, self.sizes) | self.inputs
        if "vocabulary" not in self.spec.derived:
            self.spec.derived["vocabulary"] = _list_vocabulary(self.spec, self.sizes)
        vocabulary: dict[str, Any] = self.spec.derived["vocabulary"]
        return vocabulary | self.inputs

    def bind_name(self, name: str, value: Any) -> None:
        if isinstance(value, AbstractStream) and not value.name:
            value.name = name

    def read_size(self, sized: Sized) -> int:
        self.reads |= sized.dim.symbols
        return sized.value

    def configure_primitive(self, op: str, keywords: Mapping[str, Any], line: int) -> dict[str, Any] | None:
        """The checked arguments; None after an error or where one is unknown: then so is the application's result."""
        config = {}
        try:
            for key, value in keywords.items():
                if value is not UNKNOWN:
                    config[key] = _ARGUMENTS[key](self, op, key, value)
        except OpError as error:
            self._report_error(error, op, line)
        return config if len(config) == len(keywords) else None

    def apply_primitive(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        op, config = primitive.op, primitive.config
        consumed = self._list_operands(op, argument, node, line)
        if consumed is None:
            return self._unknown_result(op, config, line)
        streams, types = [], []
        for stream, role, place in consumed:
            stream.uses.append(Consumption(line, op, role, place))
            streams.append(stream)
            if stream.type is not None:
                types.append(stream.type)
        if config is None or len(types) < len(streams):
            return self._unknown_result(op, config, line)
        try:
            return apply_rule(self, op, streams, types, line, config)
        except OpError as error:
            if op == "Map" and len(streams) == 2 and streams[0].op == streams[1].op == "Copy":
                error.given = f"a pair from Copy, zipped to {error.given}"
                error.remedy = "A, B = step.Copy().apply(E0), then Map one of them"
            self._report_error(self._sharpen_remedy(error), op, line, streams)
            return self._unknown_result(op, config, line)

    def _fn_argument(self, op: str, key: str, value: Any) -> FnSpec:
        if not isinstance(value, FnValue):
            offered = ", ".join(fn.func_name for fn in self.spec.fns) or "none"
            raise OpError(describe_value(value), f"one of the task's fns: {offered}", f"{op}({key}=...)")
        return value.fn

    def _list_argument(self, op: str, key: str, value: Any) -> tuple[int, ...]:
        if not isinstance(value, (list, tuple)):
            raise OpError(
                f"{key} = {describe_value(value)}", "a list of whole numbers", f"{key}=[{describe_value(value)}]"
            )
        if len(value) > MAX_AXES:
            raise OpError(f"{key} = {describe_value(value)}", f"at most {MAX_AXES} whole numbers: one per dim")
        return tuple([self._int_argument(op, key, entry) for entry in value])

    def _count_argument(self, op: str, key: str, value: Any) -> int:
        if not isinstance(value, Dim):
            return self._int_argument(op, key, value)
        names = list(value.symbols)
        if value != make_symbol(names[0] if names else "") or names[0] not in self.sizes:
            raise OpError(f"{key} = {value}", "a whole number, E_value or E", f"{key}=E_value")
        return self.read_size(Sized(self.sizes[names[0]], value))

    def _dim_argument(self, op: str, key: str, value: Any) -> Dim:
        if isinstance(value, Sized):
            value = value.dim
        if type(value) is int:
            if value < 1:
                raise OpError(f"{key} = {value}", "a dim >= 1")
            value = make_literal(value)
        if not isinstance(value, Dim):
            raise OpError(f"{key} = {describe_value(value)}", "a dim: a symbol, a product of symbols or a whole number")
        try:
            number = value.value(self.sizes)
        except DimError as error:
            raise OpError(f"{key} = {value}: {error}", "a dim with a whole value") from None
        if number < 1:
            raise OpError(f"{key} = {value} = {number}", "a dim >= 1")
        return value

    def _int_argument(self, op: str, key: str, value: Any) -> int:
        if isinstance(value, Sized):
            return self.read_size(value)
        if type(value) is not int:
            remedy = f"{key}={value}_value" if isinstance(value, Dim) else ""
            raise OpError(f"{key} = {describe_value(value)}", "a whole number", remedy)
        return value

    def _list_operands(self, op: str, argument: Any, node: ast.expr, line: int) -> Operands | None:
        """What an application consumes; None after an error."""
        try:
            return list_operands(op, argument, node)
        except Reported:
            self._consume_loose(op, argument, line)
        except OpError as error:
            self._consume_loose(op, argument, line)
            self._report_error(error, op, line)
        return None

    def _consume_loose(self, op: str, argument: Any, line: int) -> None:
        """Count what a wrongly shaped argument consumes all the same."""
        for leaf in list_leaves(argument):
            if isinstance(leaf, AbstractStream):
                leaf.uses.append(Consumption(line, op, "", None))

    def _unknown_result(self, op: str, config: dict[str, Any] | None, line: int) -> Any:
        if op == "Copy":
            return (self.add_unknown(op, line), self.add_unknown(op, line))
        if op == "Partition":
            count = (config or {}).get("N")
            return [self.add_unknown(op, line) for _ in range(count)] if count and count <= 1000 else UNKNOWN
        return self.add_unknown(op, line)

    def check_outputs(self, returned: Any) -> None:
        outputs = self.spec.outputs
        line = len(self.lines)
        if any(isinstance(value, Unknown) for value in returned):
            return
        for value in returned:
            if not isinstance(value, AbstractStream):
                self._report_output(f"{describe_value(value)}", "streams", "return the streams themselves", line)
                return
        if len(returned) != len(outputs):
            names = ", ".join(output.name for output in outputs)
            self._report_output(
                f"{len(returned)} outputs", f"{len(outputs)}: {names}", "return them in that order", line
            )
            return
        for stream, output in zip(returned, outputs, strict=True):
            if stream.type is not None and stream.type != output.type:
                error = OpError(str(stream.type), str(output.type), dims=(stream.type.dims, output.dims))
                remedy = (
                    self._sharpen_remedy(error).remedy
                    or "Streamify, Bufferize, Flatten or Promote change dims without changing data"
                )
                self._report_output(f"{stream}: {stream.type}", f"{output.name}: {output.type}", remedy, line)

    def _report_output(self, given: str, expected: str, remedy: str, line: int) -> None:
        self._keep_error(OpError(given, expected, remedy), "the returned streams", line, "OUT")

    def _keep_error(self, error: OpError, where: str, line: int, kind: str) -> None:
        if len(self.errors) < MAX_FINDINGS:
            self.errors.append((error, where, line, kind))

    def _report_error(self, error: OpError, op: str, line: int, streams: Sequence[AbstractStream] = ()) -> None:
        where = op
        if error.operand is not None and error.operand < len(streams):
            place = _ORDINALS[error.operand] if error.operand < len(_ORDINALS) else f"number {error.operand + 1}"
            where = f"{op}, {place} stream, {streams[error.operand]}"
        elif len(streams) == 1:
            where = f"{op} of {streams[0]}"
        self._keep_error(error, where, line, "TYPE")

    def _sharpen_remedy(self, error: OpError) -> OpError:
        """Say it when a number was written where its symbol is meant: `4 is the value of D here; write n=D`."""
        for dim, expected_dim in zip(*error.dims, strict=False) if error.dims else ():
            for number, name in ((dim, expected_dim), (expected_dim, dim)):
                if not number.powers and name.powers and number == self._literal_of(name):
                    error.remedy = f"{number} is the value of {name} here; write {name}, not {number}"
        return error

    def _literal_of(self, dim: Dim) -> Dim | None:
        """The dim's number as a dim, where it has one at these sizes."""
        try:
            return make_literal(dim.value(self.sizes))
        except DimError:
            return None

    def list_findings(self) -> list[Diagnostic]:
        """The collected errors with the text of their lines."""
        return [report_mistake(kind, where, error, self.lines, line) for error, where, line, kind in self.errors]


_ARGUMENTS: Mapping[str, Callable[[Typing, str, str, Any], Any]] = {
    "fn": Typing._fn_argument,
    "n": Typing._dim_argument,
    "S": Typing._dim_argument,
    "L": Typing._list_argument,
    "N": Typing._count_argument,
    "a": Typing._int_argument,
    "b": Typing._int_argument,
}
