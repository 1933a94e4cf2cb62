"""Generators: how the data of an input or a parameter is drawn, by the name of its `data_gen`.

torch.rand, torch.randn   drawn in fp32, then cast            torch.ones, torch.zeros   constant
binary                    bernoulli(1/2), cast                randint                   min to max inclusive
none (Multihot)           per row: k = randint(min, max + 1), ones at randperm(length)[:k]

An expression may call uniform(a, b) and randint(a, b), b excluded, which draw the whole tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.authored import compile_transform, make_namespace
from opsmith.problems.dims import DimError
from opsmith.problems.faults import make_fault
from opsmith.problems.precision import dtype_of
from opsmith.problems.problem import InputTensor


def make_tensor(entry: InputTensor, sizes: Mapping[str, int], names: Mapping[str, Any]) -> Tensor:
    """The data of one input or parameter, drawn from torch's CPU generator. Raises TaskFault (TASK).

    `names` are those that an expression sees.
    """
    try:
        shape = entry.type.shape_at(sizes)
    except DimError as error:
        raise make_fault("TASK", entry.name, str(error), "a whole size for every dim") from None
    if entry.expression:
        return _evaluate_expression(entry, shape, names)
    if entry.data_gen is None:
        return _draw_multihot(entry, shape).to(dtype_of(entry.type.dtype))
    if entry.data_gen not in _GENERATORS:
        raise make_fault("TASK", f"{entry.name}, data_gen", entry.data_gen, f"one of {', '.join(_GENERATORS)}")
    try:
        return _GENERATORS[entry.data_gen](entry, shape).to(dtype_of(entry.type.dtype))
    except (RuntimeError, OverflowError, TypeError) as error:
        failure = f"shape {shape}: {str(error).splitlines()[0]}"
        raise make_fault("TASK", entry.name, failure, "a tensor that memory can hold") from error


def _evaluate_expression(entry: InputTensor, shape: tuple[int, ...], names: Mapping[str, Any]) -> Tensor:
    """The tensor that an expression gives, in the declared dtype."""
    label = f"inputs, {entry.name}, data"
    draws = {
        "uniform": lambda low, high: low + (high - low) * torch.rand(shape),
        "randint": lambda low, high: torch.randint(low, high, shape),
    }
    value, dtype = (
        compile_transform(entry.expression, label).run_text(make_namespace({**names, **draws})),
        entry.type.dtype,
    )
    if not isinstance(value, Tensor) or tuple(value.shape) != shape:
        form = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise make_fault("TASK", label, form, f"shape {shape} for {entry.type.label}", text=entry.expression)
    if value.is_floating_point() and not entry.type.is_floating:
        remedy = f".to({dtype_of(dtype)})"
        raise make_fault("TASK", label, str(value.dtype), f"{dtype_of(dtype)}", remedy, entry.expression)
    return value.to(dtype_of(dtype), copy=True).contiguous()


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
