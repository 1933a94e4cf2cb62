"""Streams that hold data, and the context in which primitives are applied to them.

A `Context` types each application with the checker's own code and executes it at once with the simulator's kernels.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from opsmith.problems.dims import Dim, make_symbol
from opsmith.records import Diagnostic
from opsmith.step.fns import EagerFn, OfferedFn
from opsmith.step.sizes import Quotient, Size, plain_dim
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.flow import Flow
from opsmith.targets.step.execution.kernels import KERNELS
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.execution.scene import Route, RunError, Scene
from opsmith.targets.step.execution.schedule import make_step
from opsmith.targets.step.execution.stack import Stack, StackableDraw
from opsmith.targets.step.language.build import AbstractStream, FnValue
from opsmith.targets.step.language.check import Typing
from opsmith.targets.step.language.graph import OpNode
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import DType, StreamType, fields_of, tensor_shape
from opsmith.targets.step.language.values import Primitive, Sized

Data = list[Tensor]

_NO_SOURCE = ast.Constant(None)  # the checker asks for the argument's source expression; here there is none


class StepError(Exception):
    """What the checker, the simulator or a function found; `str(error)` is the message in blocks."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(["", *(finding.block() for finding in diagnostics)]))
        self.diagnostics = tuple(diagnostics)


class Context(dict[Any, int]):
    """Sizes by symbol, and everything that streams made from them have in common.

    >>> from opsmith.step import Dim
    >>> Context({Dim("M"): 5, "N": 7})["M"]
    5
    """

    def __init__(self, sizes: Mapping[Any, int]) -> None:
        super().__init__()
        for key, size in sizes.items():
            self[key] = size
        self._trace = EagerTrace()

    def __getitem__(self, key: Any) -> int:
        return super().__getitem__(make_symbol(key) if isinstance(key, str) else plain_dim(key))

    def __setitem__(self, key: Any, size: int) -> None:
        super().__setitem__(make_symbol(key) if isinstance(key, str) else plain_dim(key), int(size))

    @property
    def sizes(self) -> dict[str, int]:
        """Symbol name -> size."""
        return {str(key): size for key, size in self.items()}

    def input(self, stream: StreamType, name: str) -> AbstractStream:
        """A new abstract input stream; it equals no other one."""
        return self._trace.add_input(stream, name)

    def apply(self, op: str, keywords: Mapping[str, Any], argument: Any, line: int) -> Any:
        """Check and execute one application. Raises StepError."""
        streams: dict[int, Stream] = {}
        abstract = _abstract_argument(argument, streams)
        result, node = self._trace.check_application(op, keywords, abstract, self.sizes, line)
        data = self._trace.execute_node(node, {number: stream.data for number, stream in streams.items()}, self.sizes)
        return self._wrap(result, data)

    def _wrap(self, result: Any, data: Mapping[int, list[Tensor]]) -> Any:
        if isinstance(result, AbstractStream):
            assert result.type is not None, "a checked application has a type"
            return Stream(result.name, result.type.dtype, result.type.dims, data[result.number], self, result)
        return type(result)(self._wrap(entry, data) for entry in result)


class Stream:
    """A stream with its data: one tensor per field of `dtype`, of shape reversed(dims) ++ element axes.

    Shapes  dims innermost first; data outermost axis first
    Errors  StepError when a tensor has another shape or dtype than declared

    >>> from opsmith.step import Dim, Scalar
    >>> M, N = Dim("M"), Dim("N")
    >>> Stream("E0", Scalar("fp32"), [M, N], [torch.zeros(3, 2)], Context({M: 2, N: 3}))
    Stream E0: fp32 [M, N]
    """

    def __init__(
        self,
        name: str,
        dtype: DType,
        dims: Sequence[Any],
        data: Sequence[Tensor],
        ctx: Context,
        abstract: AbstractStream | None = None,
    ) -> None:
        self.name, self.ctx = name, ctx
        self.type = StreamType(dtype, tuple(plain_dim(dim) for dim in dims))
        self.data = list(data)
        self.abstract = abstract if abstract is not None else ctx.input(self.type, name)
        if abstract is None:
            self._check_data()

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def dims(self) -> list[Dim]:
        """Innermost first."""
        return list(self.type.dims)

    shape = dims

    @property
    def rank(self) -> int:
        return self.type.rank

    def __repr__(self) -> str:
        return f"Stream {self.name}: {self.type}"

    def _check_data(self) -> None:
        fields = fields_of(self.dtype)
        expected = [(tensor_shape(field, self.type.dims, self.ctx.sizes), torch_dtype(field)) for field in fields]
        shapes = [(tuple(tensor.shape), tensor.dtype) for tensor in self.data]
        if shapes != expected:
            raise StepError([Diagnostic("TASK", f"stream {self.name}: {self.type}", f"data {shapes}", f"{expected}")])


def _abstract_argument(value: Any, streams: dict[int, Stream]) -> Any:
    """The checker's view of an argument; `streams` collects the streams in it by number."""
    if isinstance(value, Stream):
        streams[value.abstract.number] = value
        return value.abstract
    if isinstance(value, tuple | list):
        return type(value)(_abstract_argument(entry, streams) for entry in value)
    return value


def context_of(argument: Any) -> Context | None:
    """The one context of all streams in an argument; None when it holds none. Raises StepError for several."""
    contexts: list[Context] = []
    pending = [argument]
    while pending:
        value = pending.pop()
        if isinstance(value, Stream):
            contexts += [value.ctx] if not any(value.ctx is context for context in contexts) else []
        elif isinstance(value, tuple | list):
            pending += value
    if len(contexts) > 1:
        remedy = "make all streams with one ctx = step.Context({M: 5})"
        raise StepError([Diagnostic("TYPE", "apply", "streams of two contexts", "streams of one", remedy)])
    return contexts[0] if contexts else None


@dataclass
class _Bindings:
    sizes: Mapping[str, int]
    fns: Mapping[str, EagerFn]
    input_data: Mapping[str, Tensor] = field(default_factory=dict)
    random_global: bool = False


class EagerTrace:
    """The applications made so far, and how they routed."""

    def __init__(self) -> None:
        self._typing = Typing(TaskSpec((), ()), {})
        self._fns: dict[str, EagerFn] = {}
        self._routes: dict[int, Route] = {}

    def add_input(self, kind: StreamType, name: str) -> AbstractStream:
        value = self._typing.number_value("input", len(self._typing.streams))
        return self._typing.add_stream(kind, value, None, "input", name)

    def check_application(
        self, op: str, keywords: Mapping[str, Any], argument: Any, sizes: Mapping[str, int], line: int
    ) -> tuple[Any, OpNode]:
        """The abstract results of an application, and its node. Raises StepError."""
        typing = self._typing
        typing.sizes = sizes
        config = typing.configure_primitive(
            op, {key: self._read_keyword(value, sizes) for key, value in keywords.items()}, line
        )
        self._raise_errors()
        result = typing.apply_primitive(Primitive(op, config, line), argument, _NO_SOURCE, line)
        self._raise_errors()
        for warning in typing.warnings:
            warnings.warn(warning, stacklevel=5)
        typing.warnings.clear()
        return result, typing.nodes[-1]

    def _raise_errors(self) -> None:
        findings = self._typing.list_findings()
        self._typing.errors.clear()
        if findings:
            raise StepError(findings)

    def _read_keyword(self, value: Any, sizes: Mapping[str, int]) -> Any:
        """A keyword's value as the checker knows it."""
        if isinstance(value, Size | Quotient):
            return Sized(int(value), value.dim)
        if isinstance(value, Dim):
            return plain_dim(value)
        if isinstance(value, OfferedFn):
            return FnValue(value.name, self._fn_at(value, sizes).fn)
        return [self._read_keyword(entry, sizes) for entry in value] if isinstance(value, tuple | list) else value

    def _fn_at(self, fn: OfferedFn, sizes: Mapping[str, int]) -> EagerFn:
        """The fn at these sizes, under its name, or under a longer one where another fn of this trace has it."""
        key = fn.name
        while key in self._fns and self._fns[key].source is not fn:
            key += "'"
        if key not in self._fns or self._fns[key].sizes != sizes:
            self._fns[key] = EagerFn(fn, sizes, key)
        return self._fns[key]

    def execute_node(
        self, node: OpNode, data: Mapping[int, list[Tensor]], sizes: Mapping[str, int]
    ) -> dict[int, list[Tensor]]:
        """The tensors of each result of a node, by stream number. Raises StepError."""
        if node.op in ("Copy", "Identity"):
            return {number: list(data[node.operands[0]]) for number in node.results}
        types = {stream.number: stream.type for stream in self._typing.streams if stream.type is not None}
        operands = [
            Flow([tensor.unsqueeze(0) for tensor in data[number]], len(types[number].dims) + 1)
            for number in node.operands
        ]
        scene = Scene(Stack([cast(StackableDraw, _Bindings(sizes, self._fns))]), self._routes)
        step = make_step(node, types, node.partition if node.partition is not None else -1, node.operands, node.results)
        try:
            with torch.no_grad():
                results = KERNELS[node.op](scene, step, operands)
        except (RunError, TaskFault) as error:
            raise StepError([error.diagnostic]) from error
        return {
            number: [tensor.squeeze(0) for tensor in flow.tensors]
            for number, flow in zip(node.results, results, strict=True)
            if isinstance(flow, Flow)
        }
