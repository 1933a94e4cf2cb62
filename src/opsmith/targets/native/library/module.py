"""One operator's module: its problem as records, and a documented function.

Whatever comes from a task file or a model stands in a string literal that holds exactly that text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import ArrayType, CaseSpec, InputTensor, OutputTensors, Problem
from opsmith.targets.literals import bracket_rows, write_docstring, write_literal
from opsmith.targets.native.library.sizes import plan_sizes

_RECORDS = (ArrayType, CaseSpec, InputTensor, OutputTensors, Problem)
_HEAD = '''
"""An operator in {language}, and the problem it solves. Made by `opsmith export`.

References and hand-made inputs of PROBLEM are code of the problem's author, which runs in the tests alone. The program
is {place}.
"""

from __future__ import annotations

from torch import Tensor

from {runtime}.problems.dims import parse_dim
from {runtime}.problems.problem import {records}
from {runtime}.targets.native.library.operator import NativeOperator
from {package}._library import LIBRARY
'''.lstrip("\n")


@dataclass(frozen=True)
class OperatorEntry:
    """What is written of an operator, whatever its language."""

    name: str  # of its function
    task_id: str
    problem: Problem
    facts: Mapping[str, str]  # where it comes from, in words
    threads: int = 1
    secret: str = ""  # of its proof


def choose_variable(problem: Problem) -> str:
    """What a module calls its operator: no name of the problem."""
    name = "OPERATOR"
    while name in {*(tensor.name for tensor in problem.tensors), *problem.scalars, *problem.symbols}:
        name += "_"
    return name


def write_module(entry: OperatorEntry, package: str, language: str, place: str) -> str:
    """The module of an operator of a package; `place` says in words where its program lies."""
    variable = choose_variable(entry.problem)
    threads = f", threads={entry.threads}" if entry.threads > 1 else ""
    head = _HEAD.format(
        language=language,
        place=place,
        runtime=f"{package}._runtime",
        package=package,
        records=", ".join(record.__name__ for record in _RECORDS),
    )
    sections = [
        head,
        f"PROBLEM = {write_record(entry.problem, 0)}\n",
        f"{variable} = NativeOperator(LIBRARY, {entry.name!r}, PROBLEM{threads})\n\n",
        _write_function(entry, variable),
    ]
    return "\n".join(sections)


# -- the problem


def write_record(value: Any, indent: int) -> str:
    """A record of a problem as an expression that makes it again, one field per line."""
    if isinstance(value, _RECORDS):
        fields = [(name, getattr(value, name)) for name in value.__dataclass_fields__]
        rows = [
            f"{name}={_write_value(name, field, indent + 4)}" for name, field in fields if _is_recorded(name, field)
        ]
        text = f"{type(value).__name__}({', '.join(rows)})"
        is_short = isinstance(value, ArrayType) and "\n" not in text
        return text if is_short else bracket_rows(f"{type(value).__name__}(", rows, ")", indent)
    if isinstance(value, tuple):
        elements = [write_record(element, indent + 4) for element in value]
        return bracket_rows("(", elements, ")", indent) if value else "()"
    if isinstance(value, Mapping):
        rows = [f"{key!r}: {write_record(element, indent + 4)}" for key, element in value.items()]
        is_flat = all(isinstance(element, int | float) for element in value.values())
        return f"{{{', '.join(rows)}}}" if is_flat else bracket_rows("{", rows, "}", indent)
    return write_literal(value, indent) if isinstance(value, str) else _write_number(value)


def _write_value(name: str, value: Any, indent: int) -> str:
    if name == "shape" and isinstance(value, tuple):
        return _write_tuple([f"parse_dim({str(dim)!r})" for dim in value])
    return write_record(value, indent)


def _is_recorded(name: str, value: Any) -> bool:
    """What is absent is left out, and what is only said in messages."""
    is_absent = value is None or value is False or value in ("", (), {})
    return name not in ("kind", "label") and (not is_absent or name in ("inputs", "parameters", "outputs", "shape"))


def _write_number(value: float | bool | None) -> str:
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


# -- the function


def _write_function(entry: OperatorEntry, variable: str) -> str:
    problem = entry.problem
    named = [f"{tensor.name}: Tensor" for tensor in problem.parameters]
    named += [f"{name}: {_name_kind(value)} = {_write_number(value)}" for name, value in problem.scalars.items()]
    free = plan_sizes(problem).free
    named += [f"{name}: int = {problem.base_sizes[name]}" for name in free]
    inputs = [f"{tensor.name}: Tensor" for tensor in problem.inputs]
    tensors = _write_tuple([tensor.name for tensor in problem.tensors])
    numbers = _write_tuple([*problem.scalars, *free])
    return (
        f"def {entry.name}({', '.join([*inputs, *(['*', *named] if named else [])])}) -> {_write_result(problem)}:\n"
        f"    {write_docstring(describe_operator(entry))}\n"
        f"    return {variable}({tensors}, {numbers})\n"
    )


def _write_tuple(words: Sequence[str]) -> str:
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _name_kind(value: float) -> str:
    return "int" if isinstance(value, int) else "float"


def _write_result(problem: Problem) -> str:
    kinds = [
        f"tuple[{', '.join('Tensor' for _ in output.types)}]" if len(output.types) > 1 else "Tensor"
        for output in problem.outputs
    ]
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def describe_operator(entry: OperatorEntry) -> Iterator[str]:
    """The lines of a docstring: shapes, types, what it computes, where it comes from."""
    problem = entry.problem
    results = ", ".join(output.name for output in problem.outputs)
    yield f"The operator {entry.task_id}: {results} from {', '.join(tensor.name for tensor in problem.inputs)}."
    yield from ["", "Inputs", *(_describe_tensor(tensor.name, tensor.type) for tensor in problem.inputs)]
    if problem.parameters:
        yield from ["Parameters", *(_describe_tensor(tensor.name, tensor.type) for tensor in problem.parameters)]
    if problem.scalars:
        yield from ["Numbers", *(f"    {name} (by default {value})" for name, value in problem.scalars.items())]
    if free := plan_sizes(problem).free:
        yield "Sizes that no shape determines"
        yield from (f"    {name} (by default {problem.base_sizes[name]})" for name in free)
    yield "Outputs"
    yield from (_describe_tensor(output.name, type_) for output in problem.outputs for type_ in output.types)
    yield from ["", "What it computes (the reference, which it was compared with)", *describe_reference(problem)]
    yield from ["", "Where it comes from", *(f"    {name}: {fact}" for name, fact in entry.facts.items())]
    yield from ["", "Shapes and types are checked: OperatorError says what would fit. Values are not."]


def describe_reference(problem: Problem) -> Iterator[str]:
    """The lines of the texts that say what is right."""
    if problem.reference:
        text = "\n".join(filter(None, (problem.global_code, problem.reference)))
        yield from (f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))
        return
    for output in problem.outputs:
        for number, text in enumerate(output.references):
            yield f"    {output.name}{f', tensor {number}' if len(output.references) > 1 else ''}:"
            yield from (f"        {line}".rstrip() for line in text.rstrip("\n").split("\n"))


def _describe_tensor(name: str, type_: ArrayType) -> str:
    words = ", each row of zeros and ones" if type_.is_multihot else ""
    shape = _write_tuple([str(dim) for dim in type_.shape])
    return f"    {name}: {shape} {TORCH_NAMES[type_.dtype]}{words}"
