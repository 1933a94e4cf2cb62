"""One operator's module: its task as records, its program as text, and a documented function.

Whatever comes from a task file or a model stands in a string literal that holds exactly that text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.problems.problem import CaseSpec
from opsmith.targets.literals import bracket_rows, write_docstring, write_literal
from opsmith.targets.programs import Solved
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import DType, Field, Tuple, array_shape, fields_of
from opsmith.targets.step.library.sizes import free_symbols

_HEAD = '''
"""An operator in STeP, and the task it solves. Made by `opsmith export`.

The functions, references and hand-made inputs of TASK are code of the task's author, which runs when the operator does.
"""

from __future__ import annotations

from torch import Tensor

from {runtime}.targets.step.language.spec import CaseSpec, FnSpec, OutputSpec, TaskSpec, TensorSpec
from {runtime}.targets.step.language.types import parse_dims, parse_type
from {runtime}.targets.step.library.operator import Operator
'''.lstrip("\n")


def operator_variable(task: TaskSpec) -> str:
    """What a module calls its Operator: no name of the task."""
    name = "OPERATOR"
    while name in _parameter_names(task):
        name += "_"
    return name


def module_text(solved: Solved, task: TaskSpec, runtime: str) -> str:
    """The module of an operator; `runtime` is the package that holds ours."""
    variable = operator_variable(task)
    sections = [
        _HEAD.format(runtime=runtime),
        f"PROGRAM = {write_literal(solved.source, 0)}\n",
        f"TASK = {_write_record(task, 0)}\n",
        f"{variable} = Operator({solved.name!r}, TASK, PROGRAM)\n\n",
        _write_function(solved, task, variable),
    ]
    return "\n".join(sections)


# -- the task


def _write_record(value: Any, indent: int) -> str:
    """A record of the task as an expression that makes it again, one field per line."""
    if isinstance(value, TaskSpec | TensorSpec | FnSpec | OutputSpec | CaseSpec):
        fields = [(name, getattr(value, name)) for name in value.__dataclass_fields__]
        rows = [
            f"{name}={_write_value(name, field_value, indent + 4)}"
            for name, field_value in fields
            if _is_recorded(value, name, field_value)
        ]
        return bracket_rows(f"{type(value).__name__}(", rows, ")", indent)
    if isinstance(value, tuple):
        return (
            bracket_rows("(", [_write_value("", element, indent + 4) for element in value], ")", indent)
            if value
            else "()"
        )
    if isinstance(value, Mapping):
        return bracket_rows(
            "{", [f"{key!r}: {_write_value('', element, indent + 4)}" for key, element in value.items()], "}", indent
        )
    return write_literal(value, indent) if isinstance(value, str) else _number_text(value)


def _write_value(name: str, value: Any, indent: int) -> str:
    if name == "dims":
        return f"parse_dims({[str(dim) for dim in value]!r})"
    if name in ("dtype", "input_dtype", "output_dtype"):
        return f"parse_type({_type_text(value)!r})"
    if isinstance(value, Mapping) and all(isinstance(element, int) for element in value.values()):
        return repr(dict(value))
    if isinstance(value, tuple) and all(isinstance(element, float) for element in value) and value:
        return f"({', '.join(map(_number_text, value))},)"
    return _write_record(value, indent)


def _is_recorded(record: Any, name: str, value: Any) -> bool:
    """What is absent, and what says nothing to an operator, is left out."""
    untold = isinstance(record, TaskSpec) and name in ("extra", "impl", "test_name")
    return not untold and (value not in (None, "", (), {}) or name in ("inputs", "outputs"))


def _type_text(dtype: DType) -> str | list[str]:
    return [str(field) for field in dtype.fields] if isinstance(dtype, Tuple) else str(dtype)


def _number_text(value: float | int | None) -> str:
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


# -- the function


def _write_function(solved: Solved, task: TaskSpec, variable: str) -> str:
    inputs = [f"{entry.name}: Tensor" for entry in task.inputs]
    named = [f"{entry.name}: Tensor" for entry in task.parameters]
    named += [f"{name}: int = {task.sizes[name]}" for name in free_symbols(task)]
    signature = ", ".join([*inputs, *(["*", *named] if named else [])])
    tensors = ", ".join(f'"{entry.name}": {entry.name}' for entry in (*task.inputs, *task.parameters))
    sizes = ", ".join(f'"{name}": {name}' for name in free_symbols(task))
    return (
        f"def {solved.name}({signature}) -> {_result_type(task)}:\n"
        f"    {write_docstring(_describe_operator(solved, task))}\n"
        f"    return {variable}({{{tensors}}}, {{{sizes}}})\n"
    )


def _parameter_names(task: TaskSpec) -> set[str]:
    return {*(entry.name for entry in (*task.inputs, *task.parameters)), *free_symbols(task)}


def _result_type(task: TaskSpec) -> str:
    kinds = [
        f"tuple[{', '.join('Tensor' for _ in fields)}]" if len(fields) > 1 else "Tensor"
        for fields in _output_fields(task)
    ]
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _output_fields(task: TaskSpec) -> list[Sequence[Any]]:
    return [fields_of(output.dtype) for output in task.outputs]


def _describe_operator(solved: Solved, task: TaskSpec) -> Iterator[str]:
    results = ", ".join(output.name for output in task.outputs)
    yield f"The operator {solved.task.id}: {results} from {', '.join(entry.name for entry in task.inputs)}."
    yield from ["", "Inputs", *(_describe_tensor(entry.name, entry) for entry in task.inputs)]
    if task.parameters:
        yield from ["Parameters", *(_describe_tensor(entry.name, entry) for entry in task.parameters)]
    if free := free_symbols(task):
        yield from ["Sizes that no shape determines", *(f"    {name} (here {task.sizes[name]})" for name in free)]
    yield from ["Outputs", *(_describe_tensor(output.name, output) for output in task.outputs)]
    yield from ["", "What it computes (the task's reference, which it was compared with)"]
    for output in task.outputs:
        for number, code in enumerate(output.data_transform):
            yield f"    {output.name}{f', field {number}' if len(output.data_transform) > 1 else ''}:"
            yield from (f"        {line}".rstrip() for line in code.rstrip("\n").split("\n"))
    yield from ["", "Where it comes from", *(f"    {name}: {fact}" for name, fact in solved.facts.items())]
    yield from ["", "The program is PROGRAM. Shapes and types are checked: OperatorError says what would fit."]


def _describe_tensor(name: str, entry: TensorSpec | OutputSpec) -> str:
    kinds = [f"{_shape_text(entry.dims, field)} {_dtype_name(field)}" for field in fields_of(entry.dtype)]
    return f"    {name}: {' and '.join(kinds)}; as a stream {entry.type}"


def _dtype_name(field: Field) -> str:
    return str(torch_dtype(field)).removeprefix("torch.")


def _shape_text(dims: Sequence[Dim], field: Field) -> str:
    """A tensor's shape by the names of its dims, outermost first."""
    axes = [str(dim) for dim in array_shape(field, dims)]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
