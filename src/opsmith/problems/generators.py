"""Generators: how the data of an input or a parameter is made, by the name of its `data_gen`.

torch.rand, torch.randn   drawn in fp32, then cast            torch.ones, torch.zeros   constant
binary                    bernoulli(1/2), cast                randint                   min to max inclusive
none (Multihot)           per row: k = randint(min, max + 1), ones at randperm(length)[:k]

An expression may call uniform(a, b) and randint(a, b), b excluded, which draw the whole tensor. Under a distribution
random numbers are reshaped before anything is made of them (`distributions`). The inputs of a problem with a
`Derivation` are computed from the data of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.authored import compile_transform, make_namespace, run_statements
from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.distributions import ShapedTorch, Shaping
from opsmith.problems.faults import make_fault
from opsmith.problems.precision import default_dtype, default_of, dtype_of
from opsmith.problems.problem import DECLARED, InputTensor, Problem
from opsmith.problems.reference import clone_names, find_shape


def make_tensor(
    entry: InputTensor, sizes: Mapping[str, int], names: Mapping[str, Any], shaping: Shaping | None = None
) -> Tensor:
    """The data of one input or parameter, drawn from torch's CPU generator. Raises TaskFault (TASK).

    `names` are those that an expression sees.
    """
    shape = find_shape(entry.type, sizes, entry.name)
    own = None if shaping is None else dict(entry.distributions).get(shaping.kind)
    if own == DECLARED:
        own = shaping = None
    if entry.expression or own:
        return _evaluate_expression(entry, own or entry.expression, shape, names, None if own else shaping)
    if entry.data_gen is None:
        return _draw_multihot(entry, shape).to(dtype_of(entry.type.dtype))
    if entry.data_gen not in _GENERATORS:
        raise make_fault("TASK", f"{entry.name}, data_gen", entry.data_gen, f"one of {', '.join(_GENERATORS)}")
    try:
        numbers = _GENERATORS[entry.data_gen](entry, shape)
        return _reshape(entry, numbers, shaping).to(dtype_of(entry.type.dtype))
    except (RuntimeError, OverflowError, TypeError) as error:
        failure = f"shape {shape}: {str(error).splitlines()[0]}"
        raise make_fault("TASK", entry.name, failure, "a tensor that memory can hold") from error


def _reshape(entry: InputTensor, numbers: Tensor, shaping: Shaping | None) -> Tensor:
    """What a generator drew, as a distribution wants it."""
    if shaping is None:
        return numbers
    if entry.data_gen == "torch.randn":
        return shaping.shape_normals(numbers, dtype_of(entry.type.dtype))
    if entry.data_gen == "torch.rand":
        return shaping.shape_units(numbers)
    if entry.data_gen == "randint":
        low, high = _check_bounds(entry)
        return shaping.shape_integers(numbers, low, high + 1)
    return numbers


def _evaluate_expression(
    entry: InputTensor, text: str, shape: tuple[int, ...], names: Mapping[str, Any], shaping: Shaping | None
) -> Tensor:
    """The tensor that an expression gives, in the declared dtype."""
    label, dtype = f"inputs, {entry.name}, data", dtype_of(entry.type.dtype)
    source: Any = (
        torch if shaping is None else ShapedTorch(shaping, dtype if dtype.is_floating_point else torch.float32)
    )
    draws = {
        "uniform": lambda low, high: low + (high - low) * source.rand(shape),
        "randint": lambda low, high: source.randint(low, high, shape),
        "torch": source,
    }
    value = compile_transform(text, label).run_text(make_namespace({**names, **draws}))
    value = _expect_shape(entry, value, shape, label, text)
    if value.is_floating_point() and not entry.type.is_floating:
        raise make_fault("TASK", label, str(value.dtype), f"{dtype}", f".to({dtype})", text)
    return value.to(dtype, copy=True).contiguous()


def _expect_shape(entry: InputTensor, value: object, shape: tuple[int, ...], where: str, text: str = "") -> Tensor:
    if isinstance(value, Tensor) and tuple(value.shape) == shape:
        return value
    form = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
    raise make_fault("TASK", where, form, f"shape {shape} for {entry.type.label}", text=text)


def _draw_integers(entry: InputTensor, shape: Sequence[int]) -> Tensor:
    low, high = _check_bounds(entry)
    return torch.randint(low, high + 1, tuple(shape))


def _draw_multihot(entry: InputTensor, shape: Sequence[int]) -> Tensor:
    """Rows of `min` to `max` ones, drawn row by row."""
    low, high = _check_bounds(entry)
    length = shape[-1]
    if not 0 <= low <= high <= length:
        expected = f"0 <= min <= max <= {length}, the Multihot's length"
        raise make_fault("TASK", entry.name, f"min {low}, max {high}", expected)
    rows = torch.zeros((torch.Size(shape[:-1]).numel(), length))
    for row in rows:
        count = int(torch.randint(low, high + 1, (1,)))
        row[torch.randperm(length)[:count]] = 1
    return rows.reshape(tuple(shape))


def _check_bounds(entry: InputTensor) -> tuple[int, int]:
    if entry.min is None or entry.max is None or entry.min > entry.max:
        raise make_fault("TASK", entry.name, f"min {entry.min}, max {entry.max}", "integers min <= max")
    return entry.min, entry.max


_GENERATORS: Mapping[str, Callable[[InputTensor, Sequence[int]], Tensor]] = {
    "torch.rand": lambda entry, shape: torch.rand(tuple(shape), dtype=torch.float32),
    "torch.randn": lambda entry, shape: torch.randn(tuple(shape), dtype=torch.float32),
    "torch.ones": lambda entry, shape: torch.ones(tuple(shape)),
    "torch.zeros": lambda entry, shape: torch.zeros(tuple(shape)),
    "binary": lambda entry, shape: torch.bernoulli(0.5 * torch.ones(tuple(shape))),
    "randint": _draw_integers,
}


# -- data that is computed from another problem's


def compute_inputs(problem: Problem, origin: Bindings) -> Bindings:
    """The data of `problem` from a draw of the problem that it is derived from, both in the declared precision. Raises
    TaskFault."""
    assert problem.drawn_from is not None
    names, label = clone_names(origin), "drawn_from, code"
    with default_dtype(default_of(False)), torch.no_grad():
        run_statements(problem.drawn_from.code, label, names, lambda: None)
    values = {entry.name: names.get(entry.name) for entry in problem.inputs}
    values |= {entry.name: origin.input_data.get(entry.name) for entry in problem.parameters}
    tensors = {
        entry.name: _take_tensor(entry, values[entry.name], origin.sizes, f"{label}, {entry.name}")
        for entry in problem.tensors
    }
    return bind_tensors(origin.sizes, tensors, dict(origin.namespace), False, origin.random_global)


def _take_tensor(entry: InputTensor, computed: object, sizes: Mapping[str, int], where: str) -> Tensor:
    """A value as the tensor that the problem declares. Raises TaskFault."""
    value = _expect_shape(entry, computed, find_shape(entry.type, sizes, where), where)
    dtype = dtype_of(entry.type.dtype)
    if value.is_floating_point() and not entry.type.is_floating:
        raise make_fault("TASK", where, str(value.dtype), f"{dtype} for {entry.type.label}")
    if bool(torch.isnan(value).any()):
        raise make_fault("TASK", where, "NaN", "numbers", "split where every value is a number")
    return value.detach().to(dtype).clone(memory_format=torch.contiguous_format)
