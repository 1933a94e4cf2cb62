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

from opsmith.records import Diagnostic
from opsmith.step.fns import EagerFn, Fn
from opsmith.step.sizes import Quotient, Size, plain
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.flow import Flow
from opsmith.targets.step.execution.kernels import KERNELS
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.execution.scene import Route, RunError, Scene
from opsmith.targets.step.execution.schedule import step_of
from opsmith.targets.step.execution.stack import Bindings, Stack
from opsmith.targets.step.language.build import FnValue
from opsmith.targets.step.language.build import Stream as AbstractStream
from opsmith.targets.step.language.check import Typing
from opsmith.targets.step.language.dims import Dim, symbol
from opsmith.targets.step.language.graph import Node
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import DType, StreamType, fields_of, tensor_shape
from opsmith.targets.step.language.values import Primitive, Sized

Data = list[Tensor]

_NO_SOURCE = ast.Constant(None)  # the checker asks for the argument's source expression; here there is none


class StepError(Exception):
    """What the checker, the simulator or a function found; `str(error)` is the message in blocks."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(["", *(found.block() for found in diagnostics)]))
        self.diagnostics = tuple(diagnostics)


class Context(dict[Any, int]):
    """Sizes by symbol, and everything that streams made from them have in common.

    >>> from opsmith.step.sizes import Dim
    >>> Context({Dim("M"): 5, "N": 7})["M"]
    5
    """

    def __init__(self, sizes: Mapping[Any, int]) -> None:
        super().__init__()
        for key, size in sizes.items():
            self[key] = size
        self._trace = Trace()

    def __getitem__(self, key: Any) -> int:
        return super().__getitem__(symbol(key) if isinstance(key, str) else plain(key))

    def __setitem__(self, key: Any, size: int) -> None:
        super().__setitem__(symbol(key) if isinstance(key, str) else plain(key), int(size))

    @property
    def sizes(self) -> dict[str, int]:
        """Symbol name -> size."""
        return {str(key): size for key, size in self.items()}

    def input(self, stream: StreamType, name: str) -> AbstractStream:
        """A new abstract input stream; it equals no other one."""
        return self._trace.input(stream, name)

    def apply(self, op: str, keywords: Mapping[str, Any], argument: Any, line: int) -> Any:
        """Check and execute one application. Raises StepError."""
        streams: dict[int, Stream] = {}
        abstract = _abstract(argument, streams)
        made, node = self._trace.check(op, keywords, abstract, self.sizes, line)
        data = self._trace.execute(node, {number: stream.data for number, stream in streams.items()}, self.sizes)
        return self._wrap(made, data)

    def _wrap(self, made: Any, data: Mapping[int, list[Tensor]]) -> Any:
        if isinstance(made, AbstractStream):
            assert made.type is not None, "a checked application has a type"
            return Stream(made.name, made.type.dtype, made.type.dims, data[made.number], self, made)
        return type(made)(self._wrap(part, data) for part in made)


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
        made: AbstractStream | None = None,
    ) -> None:
        self.name, self.ctx = name, ctx
        self.type = StreamType(dtype, tuple(plain(dim) for dim in dims))
        self.data = list(data)
        self.abstract = made if made is not None else ctx.input(self.type, name)
        if made is None:
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
        wanted = [(tensor_shape(part, self.type.dims, self.ctx.sizes), torch_dtype(part)) for part in fields]
        given = [(tuple(tensor.shape), tensor.dtype) for tensor in self.data]
        if given != wanted:
            raise StepError([Diagnostic("TASK", f"stream {self.name}: {self.type}", f"data {given}", f"{wanted}")])


def _abstract(value: Any, streams: dict[int, Stream]) -> Any:
    """The checker's view of an argument; `streams` collects the streams in it by number."""
    if isinstance(value, Stream):
        streams[value.abstract.number] = value
        return value.abstract
    if isinstance(value, tuple | list):
        return type(value)(_abstract(part, streams) for part in value)
    return value


def context_of(argument: Any) -> Context | None:
    """The one context of all streams in an argument; None when it holds none. Raises StepError for several."""
    found: list[Context] = []
    pending = [argument]
    while pending:
        value = pending.pop()
        if isinstance(value, Stream):
            found += [value.ctx] if not any(value.ctx is known for known in found) else []
        elif isinstance(value, tuple | list):
            pending += value
    if len(found) > 1:
        remedy = "make all streams with one ctx = step.Context({M: 5})"
        raise StepError([Diagnostic("TYPE", "apply", "streams of two contexts", "streams of one", remedy)])
    return found[0] if found else None


@dataclass
class _Bindings:
    sizes: Mapping[str, int]
    fns: Mapping[str, EagerFn]
    input_data: Mapping[str, Tensor] = field(default_factory=dict)
    random_global: bool = False


class Trace:
    """The applications made so far, and how they routed."""

    def __init__(self) -> None:
        self._typing = Typing(TaskSpec((), ()), {})
        self._fns: dict[str, EagerFn] = {}
        self._routes: dict[int, Route] = {}

    def input(self, kind: StreamType, name: str) -> AbstractStream:
        value = self._typing.number("input", len(self._typing.streams))
        return self._typing.stream(kind, value, None, "input", name)

    def check(
        self, op: str, keywords: Mapping[str, Any], argument: Any, sizes: Mapping[str, int], line: int
    ) -> tuple[Any, Node]:
        """The abstract results of an application, and its node. Raises StepError."""
        typing = self._typing
        typing.sizes = sizes
        config = typing.configure(op, {key: self._value(value, sizes) for key, value in keywords.items()}, line)
        self._raise_errors()
        made = typing.apply(Primitive(op, config, line), argument, _NO_SOURCE, line)
        self._raise_errors()
        for warning in typing.warnings:
            warnings.warn(warning, stacklevel=5)
        typing.warnings.clear()
        return made, typing.nodes[-1]

    def _raise_errors(self) -> None:
        found = self._typing.findings()
        self._typing.errors.clear()
        if found:
            raise StepError(found)

    def _value(self, value: Any, sizes: Mapping[str, int]) -> Any:
        """A keyword's value as the checker knows it."""
        if isinstance(value, Size | Quotient):
            return Sized(int(value), value.dim)
        if isinstance(value, Dim):
            return plain(value)
        if isinstance(value, Fn):
            return FnValue(value.name, self._known(value, sizes).fn)
        return [self._value(part, sizes) for part in value] if isinstance(value, tuple | list) else value

    def _known(self, fn: Fn, sizes: Mapping[str, int]) -> EagerFn:
        """The fn at these sizes, under its name, or under a longer one where another fn of this trace has it."""
        key = fn.name
        while key in self._fns and self._fns[key].source is not fn:
            key += "'"
        if key not in self._fns or self._fns[key].sizes != sizes:
            self._fns[key] = EagerFn(fn, sizes, key)
        return self._fns[key]

    def execute(
        self, node: Node, data: Mapping[int, list[Tensor]], sizes: Mapping[str, int]
    ) -> dict[int, list[Tensor]]:
        """The tensors of each result of a node, by stream number. Raises StepError."""
        if node.op in ("Copy", "Identity"):
            return {number: list(data[node.operands[0]]) for number in node.results}
        types = {stream.number: stream.type for stream in self._typing.streams if stream.type is not None}
        operands = [
            Flow([tensor.unsqueeze(0) for tensor in data[number]], len(types[number].dims) + 1)
            for number in node.operands
        ]
        scene = Scene(Stack([cast(Bindings, _Bindings(sizes, self._fns))]), self._routes)
        step = step_of(node, types, node.partition if node.partition is not None else -1, node.operands, node.results)
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
