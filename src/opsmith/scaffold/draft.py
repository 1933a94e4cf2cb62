"""`opsmith new-task`: a draft of a task file from a PyTorch function and what it is called with.

Filled in: inputs with their dims, the reference, which is the function's own text, and outputs with their dims. Left to
the author, with comments: the functions that are offered, hand-made inputs, a program. The function is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from opsmith.errors import OpsmithError, UsageError
from opsmith.records import printable
from opsmith.scaffold.arguments import Arguments, read_arguments
from opsmith.scaffold.dims import DEFAULT_SIZES, Naming, name_axes, output_dims, settle
from opsmith.scaffold.functions import Function, find_function
from opsmith.scaffold.offers import Offer, dispatched, suggest
from opsmith.scaffold.probe import CallError, Probe, Result, bounds, call_form, data_generator, has_nan, quiet
from opsmith.scaffold.source import standalone

LARGEST_EXAMPLE = 64  # a dim of the example; a larger one makes no shape set, which is tried in every verdict
EXAMPLE = Offer("Add", "fn_add", "return [input[0] + input[1]]", "[fp32, fp32]", "fp32")


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    function: str
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    example: Path | None = None
    id: str = ""  # "": the function's name


@dataclass(frozen=True)
class Draft:
    """The text of a task file, and what its author should know; the text has it as comments too."""

    id: str
    text: str
    notes: tuple[str, ...]


def id_of_new_file(path: Path) -> str:
    """The id of the task that a new file will hold. Raises UsageError for one that is there, or no task file's name."""
    if path.suffix not in {".yaml", ".yml"}:
        raise UsageError(f"{path}: expected a name that ends in .yaml, such as softmax_0.yaml")
    if path.exists():
        raise UsageError(f"{path}: this file is there already; expected a new one; try: another name")
    return path.stem


def draft(asked: Asked) -> Draft:
    """The draft. Raises UsageError for what is no function, shapes that it does not take, results that fit no task."""
    function = find_function(asked.function)
    arguments = read_arguments(function, asked.shapes, asked.values, asked.example)
    text = "" if function.path else standalone(function.undecorated())
    probe = Probe(function, arguments)
    naming = name_axes(arguments, _capitals(text))
    example = probe(naming.shapes(naming.example))
    probe.refuse_what_varies(naming.shapes(naming.example))
    notes = _settle_data(probe, naming, example)
    settle(naming, probe, arguments)
    outputs = output_dims(naming, probe)
    sizes = _sizes(naming, probe)
    reference = _Reference(function, arguments, text)
    context = {
        "asked": _comment(asked.function),
        "id": asked.id or function.name,
        "sizes": sizes,
        "inputs": _inputs(probe, naming),
        "row": _row(arguments, naming),
        **_offers(probe, naming),
        "outputs": _outputs(example, outputs, reference),
        "shapes": _example_shape(naming),
        "notes": [_comment(note) for note in (*naming.notes, *notes)],
    }
    found = Draft(context["id"], _render(context), tuple(context["notes"]))
    _read_back(found)
    _refuse_another_value(probe, naming, context["outputs"])
    return found


def _capitals(text: str) -> frozenset[str]:
    """Names of one letter at the top of the function's text: they would hide a dim of that name."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return frozenset(name for name in found if re.fullmatch("[A-Z]", name))


def _settle_data(probe: Probe, naming: Naming, example: Result) -> list[str]:
    """Numbers from 0 to 1 where normal ones give NaN; ranges of whole numbers that nobody gave are noted."""
    notes = []
    floats = [tensor.name for tensor in probe.arguments.tensors if not tensor.is_whole and tensor.dtype != "bool"]
    if floats and has_nan(example):
        probe.generators = dict.fromkeys(floats, "torch.rand")
        if has_nan(probe(naming.shapes(naming.example))):
            raise CallError(f"{probe.function.name}: gives NaN for numbers from 0 to 1; expected numbers; try: --value")
        notes.append("with torch.randn the result has NaN, so the data is drawn from 0 to 1: torch.rand")
    for tensor in probe.arguments.tensors:
        if tensor.is_whole and tensor.low is None:
            low, high = bounds(tensor)
            notes.append(f"{tensor.name}: whole numbers from {low} to {high}, a guess: every shape set must allow them")
    return notes


def _sizes(naming: Naming, probe: Probe) -> dict[str, int]:
    """Sizes that `global` must give: of symbols without one, and of all where the function fails at the usual ones."""
    own = {name: size for name, size in naming.example.items() if name not in DEFAULT_SIZES}
    try:
        probe(naming.shapes(DEFAULT_SIZES | own))
    except CallError:
        return dict(naming.example)
    return own


def _inputs(probe: Probe, naming: Naming) -> list[dict[str, str]]:
    found = []
    for at, (tensor, axes) in enumerate(zip(probe.arguments.tensors, naming.axes, strict=True)):
        dims = ", ".join(dim.text for dim in reversed(axes))
        generator = data_generator(tensor, probe.generators.get(tensor.name, "torch.randn"))
        more = ", min: {}, max: {}".format(*bounds(tensor)) if tensor.is_whole else ""
        line = f"{{name: E{at}, dtype: {tensor.dtype}, dims: [{dims}], data_gen: {generator}{more}}}"
        found.append({"line": line, "name": tensor.name, "stream": f"E{at}"})
    return found


def _row(arguments: Arguments, naming: Naming) -> dict[str, str] | None:
    """The first input with several axes, as a stream of rows."""
    for tensor, axes in zip(arguments.tensors, naming.axes, strict=True):
        if len(axes) > 1:
            *outer, inner = (dim.text for dim in axes)
            return {"dtype": tensor.dtype, "inner": inner, "outer": ", ".join(reversed(outer))}
    return None


def _offers(probe: Probe, naming: Naming) -> dict[str, Any]:
    shapes = naming.shapes(naming.example)
    operations = dispatched(lambda: probe(shapes))
    floats = [tensor.dtype for tensor in probe.arguments.tensors if not tensor.is_whole and tensor.dtype != "bool"]
    offers = suggest(operations, floats[0] if floats else probe.arguments.tensors[0].dtype)
    named = [offer.why.partition(":")[0] for offer in offers]
    return {"offers": offers, "example": [EXAMPLE], "operations": ", ".join(dict.fromkeys(named))}


@dataclass(frozen=True)
class _Reference:
    """How the outputs' texts get the function's value."""

    function: Function
    arguments: Arguments
    text: str

    @property
    def call(self) -> str:
        names = {tensor.name: f"input_data['E{at}']" for at, tensor in enumerate(self.arguments.tensors)}
        values = {name: repr(value) for name, value in self.arguments.values.items()} | names
        positional, keywords = call_form(self.function, self.arguments)
        given = [*(values[name] for name in positional), *(f"{name}={values[name]}" for name in keywords)]
        return f"{self.function.path or self.function.name}({', '.join(given)})"

    @property
    def definitions(self) -> list[str]:
        return [*self.text.splitlines(), ""] if self.text else []


def _outputs(example: Result, dims: Sequence[Sequence[str]], reference: _Reference) -> list[dict[str, Any]]:
    found = []
    for at, (names, dtype) in enumerate(zip(dims, example.dtypes, strict=True)):
        value = reference.call if example.single else f"outputs[{at}]"
        head = reference.definitions if at == 0 else []
        if not example.single and at == 0:
            head = [*head, f"outputs = {reference.call}"]
        last = value if names else f"{value}.reshape(1)"  # a stream has at least one dim
        found.append(
            {"name": f"S{at}", "dtype": dtype, "dims": ", ".join(reversed(names)) or "1", "lines": [*head, last]}
        )
    return found


def _example_shape(naming: Naming) -> str:
    """The example's sizes as a shape set, unless they are the usual ones or large."""
    example = naming.example
    usual = all(DEFAULT_SIZES.get(name) == size for name, size in example.items())
    large = any(size > LARGEST_EXAMPLE for size in example.values())
    return "" if usual or large else ", ".join(f"{name}: {size}" for name, size in example.items())


def _comment(text: str) -> str:
    return printable(" ".join(text.split()))


def _render(context: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (only this command needs it)

    template = files("opsmith.scaffold").joinpath("draft.yaml.jinja").read_text("utf-8")
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    text = environment.from_string(template).render(context)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _refuse_another_value(probe: Probe, naming: Naming, outputs: Sequence[Mapping[str, Any]]) -> None:
    """The reference gives what the function gives. Raises UsageError, such as for one that a decorator changed."""
    import torch  # noqa: PLC0415

    from opsmith.targets import TaskFault  # noqa: PLC0415
    from opsmith.targets.step.execution.authored import compile_transform  # noqa: PLC0415

    with quiet(0):
        tensors = probe.draw(naming.shapes(naming.example))
        wanted = probe.results([tensor.clone() for tensor in tensors]).values
        names = {"torch": torch, "input_data": {f"E{at}": tensor for at, tensor in enumerate(tensors)}}
        for output, value in zip(outputs, wanted, strict=True):
            try:
                found = compile_transform("\n".join(output["lines"]), output["name"]).run(names)
            except TaskFault as error:
                raise UsageError(f"{probe.function.name}: its text does not stand alone: {error}") from error
            if not torch.allclose(found, value.reshape(found.shape), equal_nan=True):
                raise UsageError(
                    f"{probe.function.name}: its text gives other values than the function; expected a function that "
                    "nothing decorates or changes from outside"
                )


def _read_back(found: Draft) -> None:
    """The draft is a task file, whatever the function's text holds. Raises UsageError."""
    from opsmith.targets import get_target  # noqa: PLC0415

    try:
        get_target("step").read_task(found.text, found.id)
    except OpsmithError as error:
        raise UsageError(f"{found.id}: no task file can be made of this function: {error}") from error
