"""The parts of a split as tasks of their own, on the values that occur where the whole task runs.

A child's data is computed from that of the task at the root, whatever lies between: its `drawn_from` holds the root's
tensors, and the statements of all parts that come before it. Nothing of a task is executed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from opsmith.errors import TaskError
from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import FLOATS
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets.step.language.spec import FnSpec, OriginSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import (
    DType,
    StepTypeError,
    Tuple,
    fields_of,
    multihot_of,
    parse_dims,
    parse_type,
    scalar_of,
)

_MENTIONED = re.compile(r"""input_data\[\s*(['"])(\w+)\1\s*\]""")
VALUES = "_values"  # in `drawn_from`: the task's tensors, and the borders so far


def list_child_specs(spec: TaskSpec, split: Split) -> tuple[TaskSpec, ...]:
    """The task of each part, in the order of the split. Raises TaskError for types that cannot be read."""
    return tuple(make_child_spec(spec, split, node) for node in split.nodes)


def make_child_spec(spec: TaskSpec, split: Split, node: PlanNode) -> TaskSpec:
    """The task of one part. Raises TaskError."""
    fns = tuple(fn for fn in spec.fns if not node.fns or fn.func_name in node.fns)
    borders = {border.name: border for neighbour in split.nodes for border in neighbour.gives}
    own = {tensor.name: tensor for tensor in spec.inputs}
    inputs = tuple(own[name] if name in own else read_border(borders[name]) for name in node.takes)
    return TaskSpec(
        inputs=inputs,
        outputs=tuple(_make_outputs(spec, node)),
        parameters=_list_parameters(spec, node, fns),
        fns=fns,
        global_code=spec.global_code,
        sizes=spec.sizes,
        shapes=spec.shapes,
        drawn_from=_make_origin(spec, split, node),
    )


def read_border(border: Border) -> TensorSpec:
    """A border as an input. The generator only says what kind of numbers there are. Raises TaskError."""
    dtype, dims = parse_border(border)
    if isinstance(dtype, Tuple):
        raise TaskError(f"border {border.name}: given {dtype}; expected one type: tuples can be outputs only")
    tensor = TensorSpec(border.name, dtype, dims)
    if multihot_of(dtype) is not None:
        return replace(tensor, min=0, max=1)
    scalar = scalar_of(dtype).name
    if scalar in FLOATS:
        return replace(tensor, data_gen="torch.randn")
    return replace(tensor, data_gen="binary") if scalar == "bool" else replace(tensor, data_gen="randint", min=0, max=1)


def parse_border(border: Border) -> tuple[DType, tuple[Dim, ...]]:
    """Raises TaskError for a text that is no type."""
    try:
        return parse_type(border.dtype), parse_dims(list(border.dims))
    except StepTypeError as error:
        raise TaskError(f"border {border.name}: {error}") from None


def _make_outputs(spec: TaskSpec, node: PlanNode) -> Iterable[OutputSpec]:
    """What a part gives; the first text holds its statements, for all of them."""
    declared = {output.name: output for output in spec.outputs}
    code = node.code.rstrip("\n") + "\n"
    for border in node.gives:
        dtype, dims = parse_border(border)
        count = len(fields_of(dtype))
        names = [border.name] if count == 1 else [f"{border.name}[{number}]" for number in range(count)]
        texts = [f"{code if number == 0 else ''}{name}\n" for number, name in enumerate(names)]
        code = ""
        own = declared.get(border.name)
        yield OutputSpec(border.name, dtype, dims, tuple(texts), own.rtol if own else None, own.atol if own else None)


def _list_parameters(spec: TaskSpec, node: PlanNode, fns: Sequence[FnSpec]) -> tuple[TensorSpec, ...]:
    """The tensors of the task that a part or its fns read, and that are no inputs of it."""
    texts = [node.code, spec.global_code, *(fn.apply for fn in fns)]
    mentioned = {name for text in texts for _, name in _MENTIONED.findall(text)}
    tensors = (*spec.parameters, *spec.inputs)
    return tuple(tensor for tensor in tensors if tensor.name in mentioned and tensor.name not in node.takes)


def _make_origin(spec: TaskSpec, split: Split, node: PlanNode) -> OriginSpec:
    """The root's tensors, and the statements that lead from them to what a part takes."""
    origin = spec.drawn_from or OriginSpec(
        spec.inputs, spec.parameters, "", spec.outputs if spec.margins else (), spec.margins, spec.cases
    )
    return replace(origin, code=_write_path(spec, split, node))


def _write_path(spec: TaskSpec, split: Split, node: PlanNode) -> str:
    own = [tensor.name for tensor in spec.inputs]
    if spec.drawn_from is None:
        rows = [f"{VALUES} = dict(input_data)"]
    else:
        pairs = ", ".join(f"{name!r}: {name}" for name in own)
        rows = [spec.drawn_from.code.rstrip("\n"), f"{VALUES} = {{**input_data, {pairs}}}"]
    needed = _list_ancestors(split, node)
    rows += [_write_part(neighbour) for neighbour in split.nodes if neighbour.name in needed]
    rows += [f"{name} = {VALUES}[{name!r}]" for name in node.takes]
    return "\n".join(rows) + "\n"


def _write_part(node: PlanNode) -> str:
    """A part as a function, so that its names stay its own, and its call."""
    results = ", ".join(f"{border.name!r}: {border.name}" for border in node.gives)
    body = ast.parse(node.code).body + ast.parse(f"{{{results}}}").body
    assert isinstance(body[-1], ast.Expr)
    body[-1] = ast.Return(body[-1].value)
    function = ast.parse(f"def _compute_{node.name}(input_data): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    text = ast.unparse(ast.fix_missing_locations(ast.Module([function], [])))
    return f"{text}\n{VALUES} = {{**{VALUES}, **_compute_{node.name}({VALUES})}}"


def _list_ancestors(split: Split, node: PlanNode) -> set[str]:
    """The parts that what `node` takes depends on."""
    makers = {border.name: neighbour for neighbour in split.nodes for border in neighbour.gives}
    names: set[str] = set()
    pending = [makers[name] for name in node.takes if name in makers]
    while pending:
        neighbour = pending.pop()
        if neighbour.name not in names:
            names.add(neighbour.name)
            pending += [makers[name] for name in neighbour.takes if name in makers]
    return names
