"""Generators: how is the data of an input or a parameter drawn? (reference section 8.1)

torch.rand, torch.randn   drawn in fp32, then cast            torch.ones, torch.zeros   constant
binary                    bernoulli(1/2), cast                randint                   min to max inclusive
none (Multihot)           per row: k = randint(min, max + 1), ones at randperm(length)[:k]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from opsmith.targets.step.execution.authored import fault
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.language.dims import DimError
from opsmith.targets.step.language.spec import TensorSpec
from opsmith.targets.step.language.types import fields_of, tensor_shape


def make_tensor(entry: TensorSpec, sizes: Mapping[str, int]) -> Tensor:
    """The data of one input or parameter, drawn from torch's CPU generator. Raises TaskFault (TASK)."""
    field = fields_of(entry.dtype)[0]
    try:
        shape = tensor_shape(field, entry.dims, sizes)
    except DimError as error:
        raise fault("TASK", entry.name, str(error), "a whole size for every dim") from None
    if entry.data_gen is None:
        return _multihot(entry, shape).to(torch_dtype(field))
    if entry.data_gen not in _GENERATORS:
        raise fault("TASK", f"{entry.name}, data_gen", entry.data_gen, f"one of {', '.join(_GENERATORS)}")
    try:
        return _GENERATORS[entry.data_gen](entry, shape).to(torch_dtype(field))
    except (RuntimeError, OverflowError, TypeError) as error:
        given = f"shape {shape}: {str(error).splitlines()[0]}"
        raise fault("TASK", entry.name, given, "a tensor that memory can hold") from error


def _randint(entry: TensorSpec, shape: Sequence[int]) -> Tensor:
    low, high = _bounds(entry)
    return torch.randint(low, high + 1, tuple(shape))


def _multihot(entry: TensorSpec, shape: Sequence[int]) -> Tensor:
    """Rows of `min` to `max` ones, drawn row by row."""
    low, high = _bounds(entry)
    length = shape[-1]
    if not 0 <= low <= high <= length:
        raise fault("TASK", entry.name, f"min {low}, max {high}", f"0 <= min <= max <= {length}, the Multihot's length")
    rows = torch.zeros((torch.Size(shape[:-1]).numel(), length))
    for row in rows:
        count = int(torch.randint(low, high + 1, (1,)))
        row[torch.randperm(length)[:count]] = 1
    return rows.reshape(tuple(shape))


def _bounds(entry: TensorSpec) -> tuple[int, int]:
    if entry.min is None or entry.max is None or entry.min > entry.max:
        raise fault("TASK", entry.name, f"min {entry.min}, max {entry.max}", "integers min <= max")
    return entry.min, entry.max


_GENERATORS: Mapping[str, Callable[[TensorSpec, Sequence[int]], Tensor]] = {
    "torch.rand": lambda entry, shape: torch.rand(tuple(shape), dtype=torch.float32),
    "torch.randn": lambda entry, shape: torch.randn(tuple(shape), dtype=torch.float32),
    "torch.ones": lambda entry, shape: torch.ones(tuple(shape)),
    "torch.zeros": lambda entry, shape: torch.zeros(tuple(shape)),
    "binary": lambda entry, shape: torch.bernoulli(0.5 * torch.ones(tuple(shape))),
    "randint": _randint,
}
