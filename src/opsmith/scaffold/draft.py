"""`opsmith new-task`: a draft of a task file from a PyTorch function and what it is called with.

Filled in: inputs with their dims, the reference, which is the function's own text, and outputs with their dims. Left to
the author, with comments: the functions that are offered, hand-made inputs, a program. The function is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from opsmith.errors import OpsmithError, UsageError
from opsmith.problems.authored import compile_transform
from opsmith.problems.problem import DEFAULT_SIZES
from opsmith.records import printable
from opsmith.scaffold.arguments import Arguments, read_arguments
from opsmith.scaffold.dims import Naming, name_axes, output_dims, settle_dims
from opsmith.scaffold.functions import Function, find_function
from opsmith.scaffold.offers import Offer, list_limits, suggest_offers
from opsmith.scaffold.operations import Operation
from opsmith.scaffold.probe import CallError, Probe, Result, be_quiet, call_form, data_generator, find_bounds, has_nan
from opsmith.scaffold.source import write_standalone
from opsmith.targets import TaskFault, get_target

LARGEST_EXAMPLE = 64  # a dim of the example; a larger one makes no shape set, which is tried in every verdict
EXAMPLE = Offer("Add", "fn_add", "return [input[0] + input[1]]", "[fp32, fp32]", "fp32")


@dataclass(frozen=True)
class DraftRequest:
    """What the command line says."""

    function: str
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    example: Path | None = None
    id: str = ""  # "": the function's name


@dataclass(frozen=True)
class Draft:
    """The text of a task or problem file, and what its author should know; the text has it as comments too."""

    id: str
    text: str
    notes: tuple[str, ...]
    is_problem: bool = False  # a problem file
    target: str = ""  # the language that it was drafted for; "": none
    program: str = ""  # the frame of a program for it; "": the language has none
    suffix: str = ""  # of the program's file


def id_of_new_file(path: Path) -> str:
    """The id of the task that a new file will hold. Raises UsageError for one that is there, or no task file's name."""
    if path.suffix not in {".yaml", ".yml"}:
        raise UsageError(f"{path}: expected a name that ends in .yaml, such as softmax_0.yaml")
    if path.exists():
        raise UsageError(f"{path}: this file is there already; expected a new one; try: another name")
    return path.stem


def write_draft(drafted: Draft, output: Path) -> str:
    """Writes the file, and the frame of a program in `plain/` beside it unless one is there: what to do next."""
    output.write_text(drafted.text, encoding="utf-8")
    missing = "look at data and sizes" if drafted.is_problem else "add fns and impl"
    rows = [f"{output}: drafted; {missing}, then: opsmith check {output}"]
    program = output.parent / "plain" / f"{output.stem}{drafted.suffix}"
    if drafted.program and not program.exists():
        program.parent.mkdir(exist_ok=True)
        program.write_text(drafted.program, encoding="utf-8")
        judging = f"opsmith verify {output} --target {drafted.target}"
        rows.append(f"{program}: the frame of a program; write it, then: {judging}")
    return "\n".join(rows)


def draft_task(request: DraftRequest) -> Draft:
    """The draft. Raises UsageError for what is no function, shapes that it does not take, results that fit no task."""
    function = find_function(request.function)
    arguments = read_arguments(function, request.shapes, request.values, request.example)
    text = "" if function.path else write_standalone(function.undecorated())
    probe = Probe(function, arguments)
    naming = name_axes(arguments, find_capitals(text))
    shapes = naming.shapes_at(naming.example)
    example = probe(shapes)
    probe.refuse_what_varies(shapes)
    notes = _settle_data(probe, naming, example)
    settle_dims(naming, probe, arguments)
    operations = probe.record_operations_of(naming.shapes_at(naming.example))
    outputs = _output_dims(naming, probe, operations, example)
    sizes = _global_sizes(naming, probe)
    reference = _Reference(function, arguments, text)
    context = {
        "asked": _write_comment(request.function),
        "id": request.id or function.name,
        "sizes": sizes,
        "inputs": _describe_inputs(probe, naming),
        "row": _describe_row(arguments, naming),
        **_describe_offers(probe, operations),
        "outputs": _describe_outputs(example, outputs, reference),
        "shapes": _example_shape(naming),
        "notes": [_write_comment(note) for note in (*naming.notes, *list_limits(operations), *notes)],
    }
    drafted = Draft(context["id"], _render_draft(context), tuple(context["notes"]))
    _read_back(drafted)
    _refuse_another_value(probe, naming, context["outputs"])
    return drafted


def _output_dims(naming: Naming, probe: Probe, operations: Sequence[Operation], example: Result) -> list[list[str]]:
    """The dims of every result. Raises UsageError with the line that made a size which is no dim."""
    try:
        return output_dims(naming, probe)
    except UsageError as error:
        shapes = set(example.shapes)
        makers = [operation for operation in operations if shapes.intersection(operation.made) - {*operation.given}]
        where = probe.function.label(makers[-1].line if makers else None)
        raise UsageError(f"{where}{f', {makers[-1].name}' if makers else ''}: {error}") from error


def find_capitals(text: str) -> frozenset[str]:
    """Names of one letter at the top of the function's text: they would hide a dim of that name."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return frozenset(name for name in names if re.fullmatch("[A-Z]", name))


def _settle_data(probe: Probe, naming: Naming, example: Result) -> list[str]:
    """Numbers from 0 to 1 where normal ones give NaN; ranges of whole numbers that nobody gave are noted."""
    notes = []
    floats = [tensor.name for tensor in probe.arguments.tensors if not tensor.is_whole and tensor.dtype != "bool"]
    if floats and has_nan(example):
        probe.generators = dict.fromkeys(floats, "torch.rand")
        if has_nan(probe(naming.shapes_at(naming.example))):
            raise CallError(f"{probe.function.name}: gives NaN for numbers from 0 to 1; expected numbers; try: --value")
        notes.append("with torch.randn the result has NaN, so the data is drawn from 0 to 1: torch.rand")
    for tensor in probe.arguments.tensors:
        if tensor.is_whole and tensor.low is None:
            low, high = find_bounds(tensor)
            notes.append(f"{tensor.name}: whole numbers from {low} to {high}, a guess: every shape set must allow them")
    return notes


def _global_sizes(naming: Naming, probe: Probe) -> dict[str, int]:
    """Sizes that `global` must give: of symbols without one, and of all where the function fails at the usual ones."""
    own = {name: size for name, size in naming.example.items() if name not in DEFAULT_SIZES}
    try:
        probe(naming.shapes_at({**DEFAULT_SIZES, **own}))
    except CallError:
        return dict(naming.example)
    return own


def _describe_inputs(probe: Probe, naming: Naming) -> list[dict[str, str]]:
    inputs = []
    for number, (tensor, axes) in enumerate(zip(probe.arguments.tensors, naming.axes, strict=True)):
        dims = ", ".join(dim.text for dim in reversed(axes))
        generator = data_generator(tensor, probe.generators.get(tensor.name, "torch.randn"))
        bounds = ", min: {}, max: {}".format(*find_bounds(tensor)) if tensor.is_whole else ""
        line = f"{{name: E{number}, dtype: {tensor.dtype}, dims: [{dims}], data_gen: {generator}{bounds}}}"
        inputs.append({"line": line, "name": tensor.name, "stream": f"E{number}"})
    return inputs


def _describe_row(arguments: Arguments, naming: Naming) -> dict[str, str] | None:
    """The first input with several axes, as a stream of rows."""
    for tensor, axes in zip(arguments.tensors, naming.axes, strict=True):
        if len(axes) > 1:
            *outer, inner = (dim.text for dim in axes)
            return {"dtype": tensor.dtype, "inner": inner, "outer": ", ".join(reversed(outer))}
    return None


def _describe_offers(probe: Probe, operations: Sequence[Operation]) -> dict[str, Any]:
    offers = suggest_offers(operations)
    named = [offer.why.partition(":")[0] for offer in offers]
    dtype = probe.arguments.tensors[0].dtype
    example = replace(EXAMPLE, input_dtype=f"[{dtype}, {dtype}]", output_dtype=dtype)
    return {"offers": offers, "example": [example], "operations": ", ".join(dict.fromkeys(named))}


@dataclass(frozen=True)
class _Reference:
    """How the outputs' texts get the function's value."""

    function: Function
    arguments: Arguments
    text: str

    @property
    def call_text(self) -> str:
        names = {tensor.name: f"input_data['E{number}']" for number, tensor in enumerate(self.arguments.tensors)}
        values = {name: repr(value) for name, value in self.arguments.values.items()} | names
        positional, keywords = call_form(self.function, self.arguments)
        arguments = [*(values[name] for name in positional), *(f"{name}={values[name]}" for name in keywords)]
        return f"{self.function.path or self.function.name}({', '.join(arguments)})"

    @property
    def definition_lines(self) -> list[str]:
        return [*self.text.splitlines(), ""] if self.text else []


def _describe_outputs(example: Result, dims: Sequence[Sequence[str]], reference: _Reference) -> list[dict[str, Any]]:
    outputs = []
    for number, (names, dtype) in enumerate(zip(dims, example.dtypes, strict=True)):
        value = reference.call_text if example.single else f"outputs[{number}]"
        head = reference.definition_lines if number == 0 else []
        if not example.single and number == 0:
            head = [*head, f"outputs = {reference.call_text}"]
        last = value if names else f"{value}.reshape(1)"  # a stream has at least one dim
        outputs.append(
            {"name": f"S{number}", "dtype": dtype, "dims": ", ".join(reversed(names)) or "1", "lines": [*head, last]}
        )
    return outputs


def _example_shape(naming: Naming) -> str:
    """The example's sizes as a shape set, unless they are the usual ones or large."""
    example = naming.example
    usual = all(DEFAULT_SIZES.get(name) == size for name, size in example.items())
    large = any(size > LARGEST_EXAMPLE for size in example.values())
    return "" if usual or large else ", ".join(f"{name}: {size}" for name, size in example.items())


def _write_comment(text: str) -> str:
    return printable(" ".join(text.split()))


def _render_draft(context: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (only this command needs it)

    template = files("opsmith.scaffold").joinpath("draft.yaml.jinja").read_text("utf-8")
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    text = environment.from_string(template).render(context)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _refuse_another_value(probe: Probe, naming: Naming, outputs: Sequence[Mapping[str, Any]]) -> None:
    """The reference gives what the function gives. Raises UsageError, such as for one that a decorator changed."""
    with be_quiet(0):
        tensors = probe.draw_tensors(naming.shapes_at(naming.example))
        expected = probe.call_on([tensor.clone() for tensor in tensors]).values
        names = {"torch": torch, "input_data": {f"E{number}": tensor for number, tensor in enumerate(tensors)}}
        for output, value in zip(outputs, expected, strict=True):
            try:
                computed = compile_transform("\n".join(output["lines"]), output["name"]).run_text(names)
            except TaskFault as error:
                raise UsageError(f"{probe.function.name}: its text does not stand alone: {error}") from error
            if not torch.allclose(computed, value.reshape(computed.shape), equal_nan=True):
                raise UsageError(
                    f"{probe.function.name}: its text gives other values than the function; expected a function that "
                    "nothing decorates or changes from outside"
                )


def _read_back(drafted: Draft) -> None:
    """The draft is a task file, whatever the function's text holds. Raises UsageError."""
    try:
        get_target("step").read_task(drafted.text, drafted.id)
    except OpsmithError as error:
        raise UsageError(f"{drafted.id}: no task file can be made of this function: {error}") from error
