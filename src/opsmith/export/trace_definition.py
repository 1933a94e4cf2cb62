"""A problem as a Definition of FlashInfer Trace: the text that it was imported from, or one that is written for it.

One that is written has the problem's dims as axes that vary, an axis of its own for every other shape (`2*N`), bound to
the dims by a constraint, and the problem's reference behind `run`. What inputs hold is no part of the format.
"""

from __future__ import annotations

import ast
import re
import symtable
import textwrap
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from opsmith.errors import UsageError
from opsmith.imports.flashinfer.dataset import list_constants, list_variable
from opsmith.imports.flashinfer.formats import (
    ConstAxis,
    Definition,
    FlashinferTensor,
    RandomInput,
    ScalarInput,
    VarAxis,
    Workload,
    read_json,
    read_model,
)
from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import ArrayType, Problem

_NAMESPACE = uuid.UUID("6f2d8f0e-6b0c-5c1e-9c64-0f1a5a6a7a11")  # of the workloads' names


def find_definition(problem: Problem, name: str, group: str) -> tuple[Definition, str]:
    """The definition and its text. Raises UsageError for a problem that has no such form."""
    source = problem.source
    if source is not None and source.format == "flashinfer":
        return read_model(Definition, read_json(source.text, name), name), source.text
    definition = _Writer(problem, name, group).write_definition()
    return definition, ""


def list_workloads(problem: Problem, definition: Definition) -> dict[str, Workload]:
    """The base and every timed set, by name; the base first, so that an import begins with it."""
    sets = {"base": dict(problem.base_sizes)}
    sets |= {name: {**problem.base_sizes, **sizes} for name, sizes in problem.bench.items()}
    return {name: _make_workload(problem, definition, sizes) for name, sizes in sets.items()}


def _make_workload(problem: Problem, definition: Definition, sizes: Mapping[str, int]) -> Workload:
    axes = _find_axes(problem, definition, sizes)
    numbers = [*problem.scalars.values()]
    scalars = [name for name, spec in definition.inputs.items() if spec.shape is None]
    values = dict(zip(scalars, numbers, strict=True))
    inputs = {name: ScalarInput(value=values[name]) if name in values else RandomInput() for name in definition.inputs}
    label = f"{definition.name} {sorted(axes.items())} {sorted(values.items())}"
    return Workload(axes=axes, inputs=inputs, uuid=str(uuid.uuid5(_NAMESPACE, label)))


def _find_axes(problem: Problem, definition: Definition, sizes: Mapping[str, int]) -> dict[str, int]:
    """The size of every axis that varies. Constant axes may be dims too, where an import has freed them."""
    variable = list_variable(definition)
    values = [*sizes.values(), *(dim.value(sizes) for dim in _list_composite(problem))]
    if problem.source is None or problem.source.format != "flashinfer":
        return dict(zip(variable, values, strict=True))
    freed = list_freed(problem, definition)
    axes = [name for name in definition.axes if name in variable or name in freed]
    if len(axes) != len(sizes):
        raise UsageError(f"{definition.name}: its dims are not those of its definition; expected an imported file")
    return {name: size for name, size in zip(axes, sizes.values(), strict=True) if name in variable}


def list_freed(problem: Problem, definition: Definition) -> dict[str, int]:
    """Constant axes of a definition that are dims of the problem, by their dim."""
    constants = list_constants(definition)
    return {name: size for name, size in constants.items() if name in problem.base_sizes}


def _list_composite(problem: Problem) -> list[Dim]:
    """The lengths of axes that are neither a dim nor a number, each once."""
    dims = (dim for type_ in problem.types for dim in type_.shape)
    return list(dict.fromkeys(dim for dim in dims if dim.symbols and str(dim) not in problem.base_sizes))


class _Writer:
    """Writes the definition of a problem that was not imported from one."""

    def __init__(self, problem: Problem, name: str, group: str) -> None:
        self._problem, self._name, self._group = problem, name, group
        self._composite = {dim: f"axis_{number}" for number, dim in enumerate(_list_composite(problem), 1)}
        self._refuse_odd()

    def _refuse_odd(self) -> None:
        problem = self._problem
        if not problem.reference:
            raise UsageError(f"{self._name}: its reference is no function of inputs and scalars")
        if dims := sorted(self._used_dims - self._readable_dims.keys()):
            raise UsageError(f"{self._name}: its reference names the dim {dims[0]}, which no argument of `run` has")

    @cached_property
    def _used_dims(self) -> set[str]:
        """What of the dims the problem's code reads; a local variable of that name is none."""
        code = f"{self._problem.global_code}\n{self._problem.reference}"
        return {*_list_globals(symtable.symtable(code, self._name, "exec"))} & self._problem.base_sizes.keys()

    @cached_property
    def _readable_dims(self) -> dict[str, str]:
        """Where the size of a dim can be read: an axis of an argument."""
        axes = [
            (str(dim), f"{tensor.name}.shape[{place}]")
            for tensor in self._problem.tensors
            for place, dim in enumerate(tensor.type.shape)
        ]
        return {name: place for name, place in reversed(axes) if name in self._problem.base_sizes}

    def write_definition(self) -> Definition:
        problem = self._problem
        constants = {str(dim) for type_ in problem.types for dim in type_.shape if not dim.symbols}
        axes: dict[str, VarAxis | ConstAxis] = {name: VarAxis(type="var") for name in problem.base_sizes}
        axes |= {name: VarAxis(type="var", description=str(dim)) for dim, name in self._composite.items()}
        axes |= {f"of_{size}": ConstAxis(type="const", value=int(size)) for size in sorted(constants, key=int)}
        scalars = {
            name: FlashinferTensor(shape=None, dtype="int64" if isinstance(value, int) else "float64")
            for name, value in problem.scalars.items()
        }
        return Definition(
            name=self._name,
            op_type=self._group,
            axes=axes,
            inputs={**{entry.name: self._write_type(entry.type) for entry in problem.tensors}, **scalars},
            outputs={output.name: self._write_type(output.types[0]) for output in problem.outputs},
            reference=self._write_reference(),
            constraints=(
                *problem.constraints,
                *(
                    f"{_write_part(dim, -1, name)} == {_write_part(dim, 1, '')}"
                    for dim, name in self._composite.items()
                ),
            ),
        )

    def _write_type(self, type_: ArrayType) -> FlashinferTensor:
        return FlashinferTensor(shape=tuple(map(self._name_axis, type_.shape)), dtype=TORCH_NAMES[type_.dtype])

    def _name_axis(self, dim: Dim) -> str:
        return self._composite.get(dim) or (str(dim) if dim.symbols else f"of_{dim}")

    def _write_reference(self) -> str:
        text = self._problem.reference
        last = ast.parse(text).body[-1]
        assert isinstance(last, ast.FunctionDef)
        arguments = [*(tensor.name for tensor in self._problem.tensors), *self._problem.scalars]
        is_alone = len(re.findall(rf"\b{last.name}\b", text)) == 1
        if self._problem.global_code or self._used_dims:
            return self._write_closed_reference(last.name, arguments)
        if is_alone and [argument.arg for argument in last.args.args] == arguments:
            return f"import torch\n\n\n{text.replace(f'def {last.name}(', 'def run(')}"
        call = ", ".join(f"{name}={name}" for name in arguments)
        return f"import torch\n\n\n{text}\n\ndef run({', '.join(arguments)}):\n    return {last.name}({call})\n"

    def _write_closed_reference(self, name: str, arguments: Sequence[str]) -> str:
        """With the code that stands beside the reference, and the dims that either names, inside `run`."""
        sizes = "".join(f"{dim} = {self._readable_dims[dim]}\n" for dim in sorted(self._used_dims))
        call = ", ".join(f"{argument}={argument}" for argument in arguments)
        code = f"{sizes}\n{self._problem.global_code}\n\n{self._problem.reference}\nreturn {name}({call})\n"
        return f"import torch\n\n\ndef run({', '.join(arguments)}):\n{textwrap.indent(code, '    ')}"


def _list_globals(scope: symtable.SymbolTable) -> Iterator[str]:
    """What code reads that is no local variable of a function."""
    for symbol in scope.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or scope.get_type() == "module"):
            yield symbol.get_name()
    for inner in scope.get_children():
        yield from _list_globals(inner)


def _write_part(dim: Dim, sign: int, name: str) -> str:
    """The numerator of a length, or its denominator times the axis."""
    number = dim.coefficient.numerator if sign > 0 else dim.coefficient.denominator
    factors = [symbol for symbol, power in dim.powers for _ in range(power * sign)]
    return " * ".join([*([name] if name else []), *([str(number)] if number != 1 else []), *factors]) or "1"
