"""The reference: what a problem's PyTorch texts make of the data of one draw, checked against the declared types.

The texts share one namespace, in the order of the file, and work on clones of the data. A function that computes all
outputs runs once, and leaves each in the namespace by the output's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.authored import blame_author, compile_function, compile_transform
from opsmith.problems.bindings import Bindings
from opsmith.problems.dims import DimError
from opsmith.problems.faults import NanFault, TaskFault, make_fault
from opsmith.problems.precision import ClashSettling, default_dtype, default_of, dtype_of
from opsmith.problems.problem import ArrayType, OutputTensors, Problem

_REFERENCE = "reference"  # the label of a function for all outputs

Values = tuple[tuple[Tensor, ...], ...]  # per output, per tensor


def compute_expected(problem: Problem, bindings: Bindings) -> Values:
    """The reference's tensors per output, before any program runs. Raises TaskFault (TASK)."""
    return run_reference(problem, bindings, clone_names(bindings))


def clone_names(bindings: Bindings) -> dict[str, Any]:
    """The names that a reference sees: those of the draw, with clones of its tensors."""
    return {**bindings.namespace, "input_data": {name: tensor.clone() for name, tensor in bindings.input_data.items()}}


def run_reference(problem: Problem, bindings: Bindings, namespace: dict[str, Any]) -> Values:
    """As `compute_expected`, in a namespace that keeps what the texts assign."""
    with default_dtype(default_of(bindings.wide)), torch.no_grad():
        if problem.reference:
            return _compute_all(problem, bindings, namespace)
        return tuple(_compute_output(output, bindings, namespace) for output in problem.outputs)


def run_unchecked(problem: Problem, bindings: Bindings) -> list[Any]:
    """What the texts give, as it is: for measuring them. They see the draw's own tensors."""
    with default_dtype(default_of(bindings.wide)), torch.no_grad():
        return run_texts(problem, {**bindings.namespace, "input_data": bindings.input_data})


def run_texts(problem: Problem, namespace: dict[str, Any]) -> list[Any]:
    """What the texts give in a namespace, one value for each tensor. Raises TaskFault."""
    if problem.reference:
        return list(call_function(problem, namespace))
    return [compile_transform(text, label).run_text(namespace) for label, text in label_texts(problem).items()]


def label_texts(problem: Problem) -> dict[str, str]:
    """The texts by the labels that they are compiled under."""
    if problem.reference:
        return {_REFERENCE: problem.reference}
    return {
        _label_text(output, number): text for output in problem.outputs for number, text in enumerate(output.references)
    }


def call_function(problem: Problem, namespace: dict[str, Any]) -> tuple[Any, ...]:
    """What the function for all outputs returns, one value for each. Raises TaskFault."""
    code, name = compile_function(problem.reference, _REFERENCE)
    try:
        exec(code, namespace)
        is_wide = torch.get_default_dtype() == torch.float64
        with ClashSettling() if is_wide else nullcontext():
            result = namespace[name](**namespace["input_data"], **problem.scalars)
    except (Exception, SystemExit) as error:
        raise blame_author("TASK", _REFERENCE, problem.reference, f"<{_REFERENCE}>", error) from error
    values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(values) != len(problem.outputs):
        expected = f"{len(problem.outputs)} ({', '.join(output.name for output in problem.outputs)})"
        raise make_fault("TASK", _REFERENCE, f"{len(values)} values", expected)
    return values


def _compute_all(problem: Problem, bindings: Bindings, namespace: dict[str, Any]) -> Values:
    values = call_function(problem, namespace)
    namespace |= {output.name: value for output, value in zip(problem.outputs, values, strict=True)}
    pairs = zip(problem.outputs, values, strict=True)
    return tuple((_check_tensor(output, 0, value, bindings),) for output, value in pairs)


def _compute_output(output: OutputTensors, bindings: Bindings, namespace: dict[str, Any]) -> tuple[Tensor, ...]:
    texts, types = output.references, output.types
    if len(texts) != len(types):
        where = f"outputs, {output.name}, data_transform"
        raise make_fault("TASK", where, f"{len(texts)} texts", f"{len(types)}, one per field of {output.kind}")
    compiled = [compile_transform(text, _label_text(output, number)) for number, text in enumerate(texts)]
    return tuple(
        _check_tensor(output, number, text.run_text(namespace), bindings) for number, text in enumerate(compiled)
    )


def _label_text(output: OutputTensors, number: int) -> str:
    return f"outputs, {output.name}, data_transform[{number}]" if output.references else f"reference, {output.name}"


def find_shape(type_: ArrayType, sizes: Mapping[str, int], where: str) -> tuple[int, ...]:
    """The shape that a declared tensor has at these sizes. Raises TaskFault."""
    try:
        return type_.shape_at(sizes)
    except DimError as error:
        raise make_fault("TASK", where, str(error), "a whole size for every dim") from None


def _check_tensor(output: OutputTensors, number: int, value: Any, bindings: Bindings) -> Tensor:
    """The value of a reference, checked against the declared type."""
    type_ = output.types[number]
    shape = find_shape(type_, bindings.sizes, f"outputs, {output.name}")
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        actual = f"a tensor of layout {value.layout}" if isinstance(value, Tensor) else type(value).__name__
        raise _blame_text(output, number, actual, f"a tensor of shape {shape}")
    if tuple(value.shape) != shape:
        actual, expected = f"a tensor of shape {tuple(value.shape)}", f"shape {shape} for {type_.label}"
        raise _blame_text(output, number, actual, expected)
    dtype, declared = dtype_of(type_.dtype, bindings.wide), dtype_of(type_.dtype)
    if value.dtype not in (dtype, declared):
        raise _blame_text(output, number, str(value.dtype), f"{dtype} for {type_.kind}")
    if bool(torch.isnan(value).any()):
        remedy = "`opsmith check`, which looks for the input that it comes from"
        finding = _blame_text(output, number, "NaN in the reference", "numbers").diagnostic
        raise NanFault(replace(finding, remedy=remedy))
    return value.detach().clone(memory_format=torch.contiguous_format)


def _blame_text(output: OutputTensors, number: int, actual: str, expected: str) -> TaskFault:
    return make_fault("TASK", _label_text(output, number), actual, expected)
