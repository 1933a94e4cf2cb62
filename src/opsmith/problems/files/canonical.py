"""Writes a problem file as canonical YAML: one text per problem, which reads back as the same problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opsmith.problems.files.provenance import write_provenance
from opsmith.problems.files.reading import GENERATORS, ProblemFile
from opsmith.problems.files.writing import (
    dash_rows,
    write_block,
    write_cases,
    write_code,
    write_codes,
    write_flow,
    write_number,
    write_scalar,
    write_shapes,
    write_text,
    write_texts,
)
from opsmith.problems.problem import ArrayType, InputTensor

_WORDS = {generator: word for word, generator in GENERATORS.items()}


def write_problem(file: ProblemFile) -> str:
    """The canonical text; `read_problem(write_problem(file)) == file` for every file that was read."""
    problem = file.problem
    rows = [f"problem: {write_scalar(file.name)}", f"group: {write_scalar(file.group)}"]
    rows += [f"dims: {_write_mapping({name: str(size) for name, size in problem.sizes.items()})}"]
    rows += ["inputs:", *_write_entries(_write_input(tensor) for tensor in problem.inputs)]
    if problem.scalars:
        rows += [f"scalars: {_write_mapping({name: write_number(value) for name, value in problem.scalars.items()})}"]
    rows += [f"fixed: [{', '.join(map(write_scalar, problem.fixed))}]"] if problem.fixed else []
    rows += ["outputs:", *_write_entries(_write_tensor(output.name, output.types[0]) for output in problem.outputs)]
    rows += write_code("setup", problem.global_code)
    rows += write_code("reference", problem.reference)
    rows += write_texts("constraints", problem.constraints)
    rows += write_text("ties", problem.ties) if problem.ties else []
    rows += write_shapes(problem.shapes)
    rows += write_codes("margins", problem.margins)
    rows += write_cases(problem.cases)
    rows += [f"accumulation: {problem.accumulation}"] if problem.accumulation else []
    rows += write_shapes(problem.bench, "bench")
    rows += write_provenance(problem.source)
    return "\n".join(rows) + "\n"


def _write_mapping(words: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{write_scalar(name)}: {word}" for name, word in words.items()) + "}"


def _write_entries(entries: Iterable[list[str]]) -> list[str]:
    return [row for entry in entries for row in dash_rows(entry)]


def _write_input(tensor: InputTensor) -> list[str]:
    data = tensor.expression or _WORDS[tensor.data_gen or ""]
    rows = [*_write_tensor(tensor.name, tensor.type), *write_block("data: ", data)]
    if tensor.distributions:
        rows.append("distributions:")
        rows += [f"  {row}" for kind, text in tensor.distributions for row in write_block(f"{kind}: ", text)]
    return rows


def _write_tensor(name: str, type_: ArrayType) -> list[str]:
    return [f"name: {write_scalar(name)}", f"dtype: {type_.dtype}", f"shape: {write_flow(map(str, type_.shape))}"]
