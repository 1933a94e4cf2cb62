"""Statements: a judged graph as plain torch, a statement or a few for each primitive, named as its program names them.

A stream is a tensor for each field, its stream axes first, outermost first (`language.types.array_shape`). A fn stands
as its author wrote it, for one element; it is called on whole tensors where that was proven to mean the same, else
under `torch.vmap`. An Accum that no torch reduction computes is a loop in stream order. A Map that an Accum alone reads
is called inside of such a loop where it makes more than it is given: a sum of products never holds all products.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opsmith.problems.dims import Dim
from opsmith.targets.step.codegen.text import dim_code
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.language.types import (
    Field,
    StreamType,
    element_dims,
    fields_of,
    scalar_of,
    tuple_of,
)

_TORCH = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}
_TORCH |= {name: name for name in ("int32", "int64", "bool")}


@dataclass(frozen=True)
class FnForm:
    """How a fn is called on whole tensors. Found out by running it: `translation`.

    reduction: per field of the state `add`, `maximum` or `minimum`, the field of the input, and the start value, where
    torch reduces a whole axis by it; None: it does not.
    """

    is_direct: bool  # its body as it is; False: under torch.vmap
    reduction: tuple[tuple[str, int, float], ...] | None = None


class NoStatementsError(Exception):
    """Why a program has no form in plain torch, in words."""


@dataclass(frozen=True)
class TorchStream:
    """A stream in the text: an expression for each field."""

    kind: StreamType
    tensors: Sequence[str]
    is_repeated: bool = False  # a view that has entries many times

    @property
    def rank(self) -> int:
        """How many stream axes there are."""
        return len(self.kind.dims)

    @property
    def fields(self) -> Sequence[Field]:
        return fields_of(self.kind.dtype)


@dataclass
class StatementWriter:
    """Writes the statements of one graph."""

    spec: TaskSpec
    graph: Graph
    fns: Mapping[str, FnForm]
    taken: set[str]  # names that no variable may have
    given: Mapping[int, str]  # by line of the program, the name that it gives what its last application makes
    lines: list[str] = field(default_factory=list)
    used_fns: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)  # variables, in order

    def write_statements(self) -> list[str]:
        """The lines, the last of which returns the outputs. Raises NoStatementsError."""
        values, nodes = self.graph.values, self.graph.needed
        self._streams = {
            values[number]: TorchStream(self.graph.types[number], [name])
            for number, name in enumerate(self.graph.inputs)
        }
        self._views = set(self.graph.inputs)  # tensors that share memory with inputs
        self._reads = Counter(values[stream] for node in nodes for stream in node.operands)
        self._reads.update(values[stream] for stream in self.graph.outputs)
        self._indices: dict[Dim, str] = {}
        self._waiting: dict[int, OpNode] = {}  # Maps that a loop will call
        self._routes: dict[int, tuple[str, str]] = {}  # by Partition: which items each expert gets, and the index
        last = {node.line: node for node in nodes}
        accums = {values[node.operands[0]]: node for node in nodes if node.op == "Accum"}
        for node in nodes:
            self._node, self._is_last = node, last[node.line] is node
            result = values[node.results[0]]
            if node.op == "Map" and result in accums and self._reads[result] == 1 and self._joins(node, accums[result]):
                self._waiting[result] = node
                continue
            streams = getattr(self, f"_write_{node.op.lower()}")(node)
            self._streams.update(zip((values[stream] for stream in node.results), streams, strict=True))
        self.lines.append(f"return {self._write_outputs()}")
        return _drop_used(self.lines, self.made)

    def _write_outputs(self) -> str:
        rows = []
        for number in self.graph.outputs:
            stream = self._find(number)
            other = ".contiguous()" if stream.is_repeated else ""
            rows.append([f"{tensor}{'.clone()' if tensor in self._views else other}" for tensor in stream.tensors])
        texts = [row[0] if len(row) == 1 else f"({', '.join(row)})" for row in rows]
        return texts[0] if len(texts) == 1 else ", ".join(texts)

    def _joins(self, node: OpNode, accum: OpNode) -> bool:
        """Whether a Map is called inside the loop of the Accum that alone reads it."""
        operands = [self._find(stream) for stream in node.operands]
        assert accum.fn is not None
        held = {
            _count_entries(stream.kind.dims, kind)
            for stream in operands
            for kind in stream.fields
            if not stream.is_repeated
        }
        made = {_count_entries(self._kind(node).dims, kind) for kind in fields_of(self._kind(node).dtype)}
        return not made <= held or self.fns[accum.fn.func_name].reduction is None

    def _find(self, number: int) -> TorchStream:
        return self._streams[self.graph.values[number]]

    def _kind(self, node: OpNode, place: int = 0) -> StreamType:
        return self.graph.types[node.results[place]]

    # -- names and shapes

    def _name(self, count: int = 1, word: str = "", is_kept: bool = False) -> list[str]:
        """New names of what the current node makes: `count` of them. `is_kept`: nobody deletes them."""
        stem = self.given.get(self._node.line, "") if self._is_last and not word else ""
        fn = self._node.fn
        stem = stem or word or (fn.func_name.removeprefix("fn_") if fn is not None else self._node.op.lower())
        number = 1
        while True:
            own = stem if number == 1 else f"{stem}_{number}"
            names = [own] if count == 1 else [f"{own}_{place}" for place in range(count)]
            if self.taken.isdisjoint([own, *names]):
                self.taken.update([own, *names])
                self.made += [] if is_kept else names
                return names
            number += 1

    def _index_name(self, dim: Dim, outer: Sequence[str]) -> str:
        """That of a loop over a dim: the symbol in lower case, the same in every loop, but for those around it."""
        if self._indices.get(dim) in (None, *outer):
            letters = "".join(sorted(dim.symbols)).lower() if not dim.is_dynamic else "item"
            (self._indices[dim],) = self._name(word=letters if letters.isidentifier() else "i", is_kept=True)
        return self._indices[dim]

    def _length(self, dim: Dim, stream: TorchStream, axis: int) -> str:
        """How many entries an axis of a stream has."""
        return f"{stream.tensors[0]}.shape[{axis}]" if dim.is_dynamic else dim_code(dim, "", "//")

    def _lengths(self, stream: TorchStream, axes: int) -> list[str]:
        """Those of the first axes, which are stream axes."""
        dims = list(reversed(stream.kind.dims))[:axes]
        return [self._length(dim, stream, axis) for axis, dim in enumerate(dims)]

    def _assign(self, names: Sequence[str], text: str, indent: str = "") -> None:
        self.lines.append(f"{indent}{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")

    def _state(self, fn: FnSpec, lengths: Sequence[str]) -> list[str]:
        """The start values of a fold over these outer axes, as expressions."""
        assert fn.init is not None
        return [
            self._full(kind, lengths, start) for kind, start in zip(fields_of(fn.output_dtype), fn.init, strict=True)
        ]

    def _full(self, kind: Field, lengths: Sequence[str], start: float) -> str:
        """A tensor of one number with the element axes of a type; floats are of the type that its inputs have."""
        scalar = scalar_of(kind).name
        tensors = (*self.spec.inputs, *self.spec.parameters)
        like = next((entry.name for entry in tensors if scalar_of(fields_of(entry.dtype)[0]).name == scalar), None)
        shape = [*lengths, *(dim_code(dim, "", "//") for dim in element_dims(kind))]
        axes = f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
        number = f"{'-' if start < 0 else ''}torch.inf" if abs(start) == float("inf") else repr(start)
        if scalar == "bool":
            number = repr(bool(start))
        elif scalar.startswith("int"):
            number = repr(int(start))
        if like is not None:
            return f"{like}.new_zeros({axes})" if start == 0 else f"{like}.new_full({axes}, {number})"
        return f"torch.full({axes}, {number}, dtype=torch.{_TORCH[scalar]})"

    # -- primitives that change axes only

    def _write_view(self, node: OpNode, change: str, is_repeated: bool) -> list[TorchStream]:
        operand = self._find(node.operands[0])
        return self._write_views(node, [change] * len(operand.tensors), is_repeated)

    def _write_views(self, node: OpNode, changes: Sequence[str], is_repeated: bool) -> list[TorchStream]:
        """One change for each field."""
        tensors = self._find(node.operands[0]).tensors
        names = self._name(len(tensors))
        for name, tensor, change in zip(names, tensors, changes, strict=True):
            self.lines.append(f"{name} = {tensor}{change}")
        self._views.update(name for name, tensor in zip(names, tensors, strict=True) if tensor in self._views)
        return [TorchStream(self._kind(node), names, is_repeated)]

    def _write_zip(self, node: OpNode) -> list[TorchStream]:
        return [self._zip(node.operands)]

    def _zip(self, numbers: Sequence[int]) -> TorchStream:
        streams = [self._find(number) for number in numbers]
        kinds = [kind for stream in streams for kind in stream.fields]
        tensors = [tensor for stream in streams for tensor in stream.tensors]
        kind = StreamType(tuple_of(kinds), streams[0].kind.dims)
        return TorchStream(kind, tensors, any(stream.is_repeated for stream in streams))

    def _write_promote(self, node: OpNode) -> list[TorchStream]:
        operand = self._find(node.operands[0])
        return self._write_view(node, f".unsqueeze({operand.rank - node.ints[0]})", operand.is_repeated)

    def _write_flatten(self, node: OpNode) -> list[TorchStream]:
        rank = self._find(node.operands[0]).rank
        return self._write_view(node, f".flatten({rank - 1 - max(node.ints)}, {rank - min(node.ints)})", False)

    def _write_reshape(self, node: OpNode) -> list[TorchStream]:
        operand = self._find(node.operands[0])
        assert node.dim is not None
        change = ""
        for place in sorted(node.ints):  # from the innermost, so that the places of the others stay
            outer = operand.kind.dims[place] / node.dim
            change += (
                f".unflatten({operand.rank - 1 - place}, ({dim_code(outer, '', '//')}, {dim_code(node.dim, '', '//')}))"
            )
        return self._write_view(node, change, operand.is_repeated)

    def _write_repeat(self, node: OpNode) -> list[TorchStream]:
        assert node.dim is not None
        return self._repeat(node, dim_code(node.dim, "", "//"))

    def _write_repeatref(self, node: OpNode) -> list[TorchStream]:
        reference = self._find(node.operands[1])
        return self._repeat(node, self._length(reference.kind.dims[0], reference, reference.rank - 1))

    def _repeat(self, node: OpNode, times: str) -> list[TorchStream]:
        operand = self._find(node.operands[0])
        kept = ["-1"] * operand.rank
        sizes = [", ".join([*kept, times, *["-1"] * len(element_dims(kind))]) for kind in operand.fields]
        return self._write_views(node, [f".unsqueeze({operand.rank}).expand({text})" for text in sizes], True)

    def _write_bufferize(self, node: OpNode) -> list[TorchStream]:
        """The border between stream and element axes moves; the tensors stay. So for Streamify."""
        operand = self._find(node.operands[0])
        return [TorchStream(self._kind(node), operand.tensors, operand.is_repeated)]

    _write_streamify = _write_bufferize

    # -- functions

    def _call(self, fn: FnSpec, state: Sequence[str], inputs: Sequence[str], rank: int) -> tuple[str, list[str]]:
        """A call on tensors with `rank` batch axes, and what is taken of each result: an index, mostly none."""
        self.used_fns.add(fn.func_name)
        in_kinds, out_kinds = fields_of(fn.input_dtype), fields_of(fn.output_dtype)
        name, cuts = fn.func_name, [""] * len(out_kinds)
        if self.fns[fn.func_name].is_direct:
            kinds = [*in_kinds, *out_kinds]
            top = max(len(element_dims(kind)) for kind in kinds)
            state = [f"{text}{_pad(kind, top, 'None')}" for text, kind in zip(state, out_kinds, strict=False)]
            inputs = [f"{text}{_pad(kind, top, 'None')}" for text, kind in zip(inputs, in_kinds, strict=True)]
            cuts = [_pad(kind, top, "0") for kind in out_kinds]
        else:
            for _ in range(rank):
                name = f"torch.vmap({name})"
        own = f"[{', '.join(state)}], " if fn.stateful else ""
        return f"{name}({own}[{', '.join(inputs)}])", cuts

    def _assign_call(self, names: Sequence[str], call: tuple[str, list[str]], indent: str = "") -> None:
        text, cuts = call
        if len(names) == 1:
            self.lines.append(f"{indent}{names[0]} = {text}[0]{cuts[0]}")
            return
        self._assign(names, text, indent)
        for name, cut in zip(names, cuts, strict=True):
            self.lines += [f"{indent}{name} = {name}{cut}"] if cut else []

    def _write_map(self, node: OpNode) -> list[TorchStream]:
        assert node.fn is not None
        operand = self._zip(node.operands)
        kinds = fields_of(node.fn.output_dtype)
        names = self._name(len(kinds))
        text, cuts = self._call(node.fn, (), operand.tensors, operand.rank)
        if self._may_be_empty(node.fn, operand):
            lengths = ["0", *self._lengths(operand, operand.rank)[1:]]
            text += f" if len({operand.tensors[0]}) else [{', '.join(self._full(kind, lengths, 0) for kind in kinds)}]"
            text = f"({text})" if len(names) == 1 else text
        self._assign_call(names, (text, cuts))
        return [TorchStream(self._kind(node), names)]

    def _may_be_empty(self, fn: FnSpec, operand: TorchStream) -> bool:
        """Whether a call may meet no element at all, which torch.vmap cannot."""
        return operand.kind.dims[-1].is_dynamic and not self.fns[fn.func_name].is_direct

    def _write_accum(self, node: OpNode) -> list[TorchStream]:
        assert node.fn is not None
        value, b = self.graph.values[node.operands[0]], node.ints[0]
        waiting = self._waiting.get(value)
        operand = self._zip(waiting.operands) if waiting is not None else self._find(node.operands[0])
        outer = operand.rank - b
        names = self._name(len(fields_of(node.fn.output_dtype)))
        reduction = self.fns[node.fn.func_name].reduction
        is_static = not any(dim.is_dynamic for dim in operand.kind.dims[:b])
        if reduction is not None and waiting is None and is_static:
            axes = str(outer) if b == 1 else f"({', '.join(map(str, range(outer, operand.rank)))})"
            for name, (join, place, start) in zip(names, reduction, strict=True):
                self.lines.append(f"{name} = {_reduce(operand.tensors[place], join, axes, start)}")
            return [TorchStream(self._kind(node), names)]
        starts = self._state(node.fn, self._lengths(operand, outer))
        self.lines += [f"{name} = {start}" for name, start in zip(names, starts, strict=True)]
        own_fns = [node.fn, *([waiting.fn] if waiting is not None and waiting.fn is not None else [])]
        guard = any(self._may_be_empty(fn, operand) for fn in own_fns)
        self.lines += [f"if len({operand.tensors[0]}):"] if guard else []
        indent, elements = self._write_loops(operand, outer, "    " if guard else "")
        inputs = elements
        if waiting is not None:
            assert waiting.fn is not None
            call, cuts = self._call(waiting.fn, (), elements, outer)
            if any(cuts) or len(cuts) > 1:
                inputs = self._name(len(cuts), waiting.fn.func_name.removeprefix("fn_"), is_kept=True)
                self._assign_call(inputs, (call, cuts), indent)
            else:
                inputs = [f"{call}[0]"]
        self._assign_call(names, self._call(node.fn, names, inputs, outer), indent)
        return [TorchStream(self._kind(node), names)]

    def _write_loops(self, operand: TorchStream, outer: int, indent: str = "") -> tuple[str, list[str]]:
        """Loops over the inner stream axes, in stream order: the indent inside, and one element of each field."""
        indices: list[str] = []
        dims = list(reversed(operand.kind.dims))
        for axis in range(outer, operand.rank):
            index = self._index_name(dims[axis], indices)
            self.lines.append(f"{indent}for {index} in range({self._length(dims[axis], operand, axis)}):")
            indent += "    "
            indices.append(index)
        place = ", ".join([*[":"] * outer, *indices])
        return indent, [f"{tensor}[{place}]" for tensor in operand.tensors]

    def _write_scan(self, node: OpNode) -> list[TorchStream]:
        assert node.fn is not None
        operand, b = self._find(node.operands[0]), node.ints[0]
        outer, reduction = operand.rank - b, self.fns[node.fn.func_name].reduction
        names = self._name(len(fields_of(node.fn.output_dtype)))
        split = f".unflatten({outer}, ({', '.join(self._lengths(operand, operand.rank)[outer:])}))" if b > 1 else ""
        if reduction is not None and not any(dim.is_dynamic for dim in operand.kind.dims[:b]):
            joined = f".flatten({outer}, {operand.rank - 1})" if b > 1 else ""
            for name, (join, place, start) in zip(names, reduction, strict=True):
                tensor = f"{operand.tensors[place]}{joined}"
                self.lines.append(f"{name} = {_reduce_running(tensor, join, outer, start)}{split}")
            return [TorchStream(self._kind(node), names)]
        state, (states,) = self._name(word="state"), self._name(word="states")
        fields = self._state(node.fn, self._lengths(operand, outer))
        self.lines += [f"{state[0]} = [{', '.join(fields)}]", f"{states} = []"]
        indent, elements = self._write_loops(operand, outer)
        call, cuts = self._call(node.fn, [f"{state[0]}[{place}]" for place in range(len(fields))], elements, outer)
        if any(cuts):
            parts = self._name(len(cuts), "part", is_kept=True)
            self._assign_call(parts, (call, cuts), indent)
            call = f"[{', '.join(parts)}]"
        self.lines += [f"{indent}{state[0]} = {call}", f"{indent}{states}.append({state[0]})"]
        for place, name in enumerate(names):
            column = f"[state[{place}] for state in {states}]"
            self.lines.append(f"{name} = torch.stack({column}, {outer}){split}")
        return [TorchStream(self._kind(node), names)]

    # -- routing

    def _write_partition(self, node: OpNode) -> list[TorchStream]:
        *routed, number = node.operands
        index = self._find(number)
        flat = f".flatten(0, {index.rank - 1})" if index.rank > 1 else ""
        (chosen,) = self._name(word="chosen")
        message = f"{{name}}: line {node.line}: Partition: given an index other than 0 and 1; expected 0 or 1"
        self.lines += [
            f"{chosen} = {index.tensors[0]}{flat}",
            f"if not ((({chosen} == 0) | ({chosen} == 1)).all()):",
            f'    raise ValueError("{message}")',
            f"{chosen} = {chosen} == 1",
        ]
        assert node.partition is not None
        self._routes[node.partition] = (chosen, index.tensors[0])
        if not routed:
            return [TorchStream(self._kind(node, place), []) for place in range(len(node.results))]
        (data,) = (self._find(stream) for stream in routed)
        streams = []
        for place in range(len(node.results)):
            names = self._name(len(data.tensors), f"{self.given.get(node.line) or 'routed'}_{place}")
            for name, tensor in zip(names, data.tensors, strict=True):
                self.lines.append(f"{name} = {tensor}{flat}[{chosen}[:, {place}]]")
            streams.append(TorchStream(self._kind(node, place), names))
        return streams

    def _write_merge(self, node: OpNode) -> list[TorchStream]:
        assert node.fn is not None
        assert node.partition is not None
        *items, number = node.operands
        index, streams, (chosen, own) = self._find(number), [self._find(i) for i in items], self._routes[node.partition]
        if node.compare_index:
            message = (
                f"{{name}}: line {node.line}: Merge: given an index that differs from Partition's; expected the same"
            )
            self.lines += [
                f"if not torch.equal({index.tensors[0]}.flatten(), {own}.flatten()):",
                f'    raise ValueError("{message}")',
            ]
        names = self._name(len(fields_of(node.fn.output_dtype)))
        inner = self._lengths(streams[0], streams[0].rank)[1:]
        starts = self._state(node.fn, [f"len({chosen})", *inner])
        self.lines += [f"{name} = {start}" for name, start in zip(names, starts, strict=True)]
        for place, stream in enumerate(streams):
            rows = f"{chosen}[:, {place}]"
            states = [f"{name}[{rows}]" for name in names]
            call, cuts = self._call(node.fn, states, stream.tensors, stream.rank)
            parts = self._name(len(cuts), "part", is_kept=True) if any(cuts) else states
            indent = ""
            if self._may_be_empty(node.fn, stream):
                self.lines.append(f"if len({stream.tensors[0]}):")
                indent = "    "
            self._assign_call(parts, (call, cuts), indent)
            pairs = zip(states, parts, strict=True)
            self.lines += [f"{indent}{state} = {part}" for state, part in pairs if state != part]
        if index.rank > 1:
            lengths = ", ".join(self._lengths(index, index.rank))
            self.lines += [f"{name} = {name}.unflatten(0, ({lengths}))" for name in names]
        return [TorchStream(self._kind(node), names)]


def _count_entries(dims: Sequence[Dim], kind: Field) -> Dim:
    """How many numbers a field of a stream has."""
    return math.prod([*dims, *element_dims(kind)], start=Dim(1))


def _drop_used(lines: Sequence[str], names: Sequence[str]) -> list[str]:
    """The statements with a `del` behind the last use of each tensor, where others are made after it."""
    ends: dict[int, list[str]] = {}
    for name in names:
        uses = [number for number, line in enumerate(lines) if re.search(rf"\b{re.escape(name)}\b", line)]
        last = max(uses, default=len(lines))
        while last + 1 < len(lines) and lines[last + 1].startswith(" "):
            last += 1  # the loop that it is used in
        if last < len(lines) - 2:
            ends.setdefault(last, []).append(name)
    kept = []
    for number, line in enumerate(lines):
        kept += [line, *([f"del {', '.join(ends[number])}"] if number in ends else [])]
    return kept


def _pad(kind: Field, top: int, entry: str) -> str:
    """An index that adds axes of 1 behind the batch's, or takes them away, where a field has fewer than `top`."""
    own = len(element_dims(kind))
    return f"[{', '.join(['...', *[entry] * (top - own), *[':'] * own])}]" if own < top else ""


def _reduce(tensor: str, join: str, axes: str, start: float) -> str:
    if join == "add":
        return f"{tensor}.sum({axes}){f' + {start!r}' if start else ''}"
    function, side, nothing = ("amax", "min", "-inf") if join == "maximum" else ("amin", "max", "inf")
    bound = "" if start == float(nothing) else f".clamp({side}={start!r})"
    return f"{tensor}.{function}({axes}){bound}"


def _reduce_running(tensor: str, join: str, axis: int, start: float) -> str:
    if join == "add":
        text = f"{tensor}.cumsum({axis})"
        return f"({text} + {start!r})" if start else text
    function, side, nothing = ("cummax", "min", "-inf") if join == "maximum" else ("cummin", "max", "inf")
    bound = "" if start == float(nothing) else f".clamp({side}={start!r})"
    return f"{tensor}.{function}({axis}).values{bound}"


def names_by_line(source: str) -> dict[int, str]:
    """By line, the name that a program gives to what is made there, where it is one name."""
    return dict(_list_names(ast.parse(source)))


def _list_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield line, re.sub(r"\W", "_", name)
