"""Slots: one field of a fn's input or result, as a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.faults import TaskFault, make_fault
from opsmith.targets.step.execution.precision import is_floating, torch_dtype
from opsmith.targets.step.language.types import DType, Field, element_shape, fields_of, multihot_of

SAMPLE = 3  # elements on which a mode is compared with the loop
_AGREE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-1}  # rtol and atol


@dataclass(frozen=True)
class Slot:
    """One field as tensors see it: the shape of an element and the dtypes that a result may have."""

    field: Field
    shape: tuple[int, ...]
    dtype: torch.dtype
    declared: torch.dtype  # differs from `dtype` in a wide run; a body that narrows on purpose may return it

    @classmethod
    def make_slot(cls, field: Field, sizes: Mapping[str, int], wide: bool) -> Slot:
        return cls(field, element_shape(field, sizes), torch_dtype(field, wide), torch_dtype(field))

    @property
    def rank(self) -> int:
        return len(self.shape)

    def holds_number(self, value: Any) -> bool:
        """Whether a Python number may stand for this field: a scalar one, of a type that holds it as it is."""
        if self.shape or type(value) not in (bool, int, float):
            return False
        if self.dtype.is_floating_point:
            return type(value) is not bool
        return type(value) is (bool if self.dtype is torch.bool else int)

    def check_value(self, value: Any, where: str) -> Tensor:
        """One field of one element's result as a tensor of this slot. Raises TaskFault (FN)."""
        if isinstance(value, Tensor):
            if value.shape == self.shape and value.dtype in (self.dtype, self.declared):
                return value.to(self.dtype)
        elif self.holds_number(value):
            return torch.tensor(value, dtype=self.dtype)
        raise self._blame_value(value, where)

    def _blame_value(self, value: Any, where: str) -> TaskFault:
        if not isinstance(value, Tensor):
            actual = f"{type(value).__name__} {value!r}" if isinstance(value, (int, float)) else type(value).__name__
            return make_fault("FN", where, actual, f"a tensor of {self}", "return a tensor")
        actual = f"a tensor of shape {tuple(value.shape)} and {_name_dtype(value.dtype)}"
        if tuple(value.shape) != self.shape:
            remedy = f"expand the result, or declare {'a scalar type' if value.dim() == 0 else 'a Buffer of its shape'}"
        else:
            remedy = "convert with .to(input[0].dtype), or declare its type"
        return make_fault("FN", where, actual, str(self), remedy)

    def draw_sample(self, generator: torch.Generator, count: int = SAMPLE) -> Tensor:
        """Random elements: floats around 1, so that most logarithms and roots exist; 0 and 1 for all others."""
        shape = (count, *self.shape)
        if is_floating(self.field) and multihot_of(self.field) is None:
            return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 0.25).to(self.dtype)
        return torch.randint(0, 2, shape, generator=generator).to(self.dtype)

    def __str__(self) -> str:
        return f"shape {self.shape} and {_name_dtype(self.dtype)} for {self.field}"


def slots_of(dtype: DType, sizes: Mapping[str, int], wide: bool) -> tuple[Slot, ...]:
    return tuple(Slot.make_slot(field, sizes, wide) for field in fields_of(dtype))


def blame_count(name: str, count: int, results: Any) -> TaskFault:
    """The finding for a body that does not return one value per field."""
    actual = f"{len(results)} values" if isinstance(results, (list, tuple)) else f"{type(results).__name__}"
    return make_fault(
        "FN", name, actual, f"a list of {count} values", "return [value, ...], one per field of output_dtype"
    )


def of_one_kind(slots: Sequence[Slot]) -> bool:
    """Whether all floats have one dtype and all integers too."""
    floats = {slot.dtype for slot in slots if is_floating(slot.field)}
    integers = {slot.dtype for slot in slots if slot.dtype in (torch.int32, torch.int64)}
    return len(floats) <= 1 and len(integers) <= 1


def agree_closely(results: Sequence[Tensor] | None, expected: Sequence[Tensor], exactly: bool = False) -> bool:
    """Whether two samples of results are equal up to rounding; NaN equals NaN."""
    if results is None:
        return False
    bounds = [0.0 if exactly else _AGREE.get(tensor.dtype, 0.0) for tensor in expected]
    pairs = zip(results, expected, bounds, strict=True)
    return all(torch.allclose(x, y, rtol=bound, atol=bound, equal_nan=True) for x, y, bound in pairs)


def _name_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
