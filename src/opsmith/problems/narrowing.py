"""Narrowing: whether authors' code computes with less than float64 where all floats are raised to it.

The code runs once more, with every narrower float that it asks torch for made in float64. It narrows where the two
results differ: a mask, a count or a half in fp32 loses nothing. What depends on code that narrows is judged at the
declared precision: no right program could agree with it to float64's digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from opsmith.problems.dtypes import BYTE_FLOATS, FLOATS
from opsmith.problems.precision import dtype_of
from opsmith.problems.tolerance import find_largest

T = TypeVar("T")

_WIDER = {dtype_of(name): torch.float64 for name in FLOATS - BYTE_FLOATS - {"fp64"}}
_WIDER |= {torch.complex64: torch.complex128, torch.complex32: torch.complex128}
_CASTS = {
    getattr(torch.Tensor, name): getattr(torch.Tensor, wider)
    for wider, names in {"double": ("float", "half", "bfloat16"), "cdouble": ("cfloat", "chalf")}.items()
    for name in names
}
_SAME = 1e-12  # of the largest value: results that differ by less were computed in float64


class _Raised(TorchFunctionMode):
    """Calls of torch with float64 in place of every narrower float; `has_met`: whether there was one.

    The numbers of narrow tensors that were there before (`data`) are data. Those of any new one come from where no call
    is seen (torch.FloatTensor, NumPy) and may have been rounded: they are moved by a rounding error.
    """

    def __init__(self, data: Iterable[Tensor]) -> None:
        super().__init__()
        self.has_met = False
        self._data_ids = {id(tensor) for tensor in data}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wider = _CASTS.get(func)
        self.has_met |= wider is not None
        kwargs = {key: self._widen_value(value) for key, value in (kwargs or {}).items()}
        return (wider or func)(*[self._widen_value(value) for value in args], **kwargs)

    def _widen_value(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(map(self._widen_value, value))
        if isinstance(value, torch.dtype) and value in _WIDER:
            self.has_met = True
            return _WIDER[value]
        if isinstance(value, Tensor) and value.dtype in _WIDER:
            self.has_met = True
            wide = value.to(_WIDER[value.dtype])
            return wide if id(value) in self._data_ids else _move_numbers(wide, value.dtype)
        return value


def _move_numbers(numbers: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers that were rounded to `dtype` a rounding error away; whole and short ones were not rounded."""
    if numbers.is_complex():
        return torch.view_as_complex(_move_numbers(torch.view_as_real(numbers), dtype))
    is_exact = (numbers == numbers.round()) | (numbers == numbers.bfloat16().double())
    return torch.where(is_exact, numbers, numbers * (1 + torch.finfo(dtype).eps))


def run_raised(run: Callable[[], T], namespace: Mapping[str, Any]) -> tuple[T | None, bool]:
    """What authors' code gives in float64 throughout, None where it fails so, and whether it asks for less at all."""
    with _Raised(_find_tensors(namespace.values())) as mode:
        try:
            return run(), mode.has_met
        except (Exception, SystemExit):  # it may depend on its narrow types
            return None, mode.has_met


def _find_tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _find_tensors(value)


def differs_from(result: Tensor, raised: Tensor) -> bool:
    """Whether two results for the same numbers differ by more than float64's rounding."""
    if not result.is_floating_point():
        return not torch.equal(result, raised)
    result, raised = result.double(), raised.double()
    largest = find_largest(raised)
    return not torch.allclose(result, raised, rtol=_SAME, atol=_SAME * largest, equal_nan=True)


def describe_narrowing(what: str) -> str:
    """What a person should know of a function, or an output's reference, that narrows."""
    return f"{what} computes with less than float64: what depends on it is judged at the declared precision"
