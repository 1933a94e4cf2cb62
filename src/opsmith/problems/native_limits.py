"""Native limits: how far the result of a program may lie that computes in the declared types.

Such a program cannot be raised to float64; what is expected of it is the reference in float64 on the same inputs.
Integers, bools and decisions are exact, less undecided entries (`decisions`), and an output's own `rtol` and `atol`
prevail. Otherwise the *working* dtype is the one to sum in: the problem's `accumulation`, else that of the output, fp32
for narrower ones.

    fp32, fp64    the largest of the declared rule of `tolerance`, sqrt(n) eps max|y|, n being the input elements that
                  an output element depends on: the error of a sum in any order grows like that; and 2 eps times the sum
                  of the magnitudes of an element's terms, each an input times its derivative: where they cancel and
                  there are few elements to tell by, max|y| says too little.
    fp16, bf16    summed in their own type: the same with their eps and without FACTOR, which would allow 6 % and 50 %.

Where all expected values are 0, however they are rounded, a right program may still leave what two roundings of its
inputs differ by: 2 eps max|x|.
Where the output's type is not the working one, 2 ulps of it at each entry are added: the last rounding. In floats of a
byte these would be 25 % and hide a wrong constant: there it is half an ulp and a bit, a rounding to the nearest of what
may have been rounded to fp16 before. Whether numbers beyond the largest saturate differs between languages: a reference
that gives some is at fault, and so is one that is infinite where the type has no infinity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.dtypes import BYTE_FLOATS, NARROW_FLOATS
from opsmith.problems.faults import TaskFault
from opsmith.problems.precision import default_dtype, default_of, dtype_of, widen_floats
from opsmith.problems.problem import ArrayType, OutputTensors, Problem
from opsmith.problems.reference import clone_names, run_texts
from opsmith.problems.tolerance import (
    FACTOR,
    Limit,
    blame_overflow,
    find_largest,
    mark_undecided,
    measure_distance,
    read_own_tolerance,
)

BYTE_ROUNDING = 0.5 + 2**-7  # ulps of a float of one byte


@dataclass(frozen=True)
class Rounding:
    """What the reference shows of rounding in the working dtype, for one tensor on one draw."""

    working: str
    rounded: Tensor  # the reference in the working dtype
    moved: Tensor  # in float64, on inputs that are one rounding error away
    reach: int  # input elements that an output element depends on
    terms: float = 0.0  # the magnitudes of what they add to it
    scale: float = 0.0  # the largest magnitude among the inputs' floats


def make_exact_limit(type_: ArrayType, value: Tensor, rounded: Tensor) -> Limit:
    """The limit of integers, bools and decisions: none. `rounded` is the reference in the working dtype."""
    dtype = dtype_of(type_.dtype)
    return Limit(value.to(dtype), None, dtype, mark_undecided(value, rounded))


def make_native_limit(output: OutputTensors, type_: ArrayType, value: Tensor, rounding: Rounding) -> Limit:
    """The limit of one tensor; `value` is the reference in float64. Raises TaskFault where the type cannot hold it."""
    dtype, expected = dtype_of(type_.dtype), widen_floats(value)
    own = read_own_tolerance(output, expected)
    if own is not None:
        return Limit(expected, own, dtype)
    if leaves_range(expected, dtype):
        raise blame_overflow(output, expected.to(dtype))
    allowed = torch.tensor(bound_error(expected, rounding), dtype=torch.float64)
    if type_.dtype != rounding.working:
        roundings = BYTE_ROUNDING if type_.dtype in BYTE_FLOATS else 2
        allowed = allowed + roundings * measure_ulps(expected, dtype)
    return Limit(expected, allowed, dtype)


def leaves_range(expected: Tensor, dtype: torch.dtype) -> bool:
    """Whether a number is too large for a dtype, however it is rounded there, or infinite without its like there.

    >>> leaves_range(torch.tensor([449.0, torch.nan], dtype=torch.float64), torch.float8_e4m3fn)
    False
    """
    limits = torch.finfo(dtype)
    beyond = expected.abs() > limits.max * (1 + limits.eps / 4)
    has_infinity = dtype is not torch.float8_e4m3fn
    return bool((beyond & torch.isfinite(expected) if has_infinity else beyond).any())


def bound_error(expected: Tensor, rounding: Rounding) -> float:
    """The largest error of a right program that works in the dtype."""
    eps, largest = torch.finfo(dtype_of(rounding.working)).eps, find_largest(expected)
    factor = choose_factor(rounding.working)
    distances = (measure_distance(rounding.rounded, expected), measure_distance(rounding.moved, expected))
    sums = (math.sqrt(rounding.reach) * eps * largest, 2 * eps * rounding.terms)
    bound = max(factor * max(*distances, 2 * eps * largest), *sums)
    return bound or 2 * eps * rounding.scale


def choose_factor(working: str) -> int:
    """How many times the reference's own rounding error a result may lie off."""
    return 1 if working in NARROW_FLOATS else FACTOR


def measure_ulps(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The distance of neighbouring numbers of a dtype at each value, in float64; 0 at infinities.

    >>> measure_ulps(torch.tensor([1.0, 1.5, 2.0, 0.0], dtype=torch.float64), torch.float16)[:3].tolist()
    [0.0009765625, 0.0009765625, 0.001953125]
    """
    limits = torch.finfo(dtype)
    magnitudes = torch.where(torch.isfinite(values), values.abs(), 0.0).clamp(min=limits.tiny)
    _, exponents = torch.frexp(magnitudes)
    ulps = torch.ldexp(torch.full_like(magnitudes, limits.eps), exponents - 1)
    return torch.where(torch.isfinite(values), ulps, 0.0)


# -- reach: how many input elements an output element depends on, counted by the derivatives of the reference; only
# floats count: what is summed of whole numbers is exact


class Reach(NamedTuple):
    """What one element of an output is made of."""

    elements: int  # of inputs, that it depends on
    terms: float = 0.0  # the sum of the magnitudes of these inputs, each times its derivative; 0: unknown


def count_reach(problem: Problem, bindings: Bindings) -> list[Reach]:
    """That of each output tensor. Where the reference has no derivative, what a reduction of all inputs to this tensor
    would need."""
    tensors = bindings.input_data.items()
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors if tensor.is_floating_point()}
    try:
        with torch.enable_grad(), default_dtype(default_of(bindings.wide)):
            clones = {name: tensor.clone() for name, tensor in {**bindings.input_data, **leaves}.items()}
            values = run_texts(problem, {**bindings.namespace, "input_data": clones})
            return [_count_tensor(value, leaves) or _estimate_reach(value, leaves) for value in values]
    except (TaskFault, RuntimeError):  # code that runs without derivatives alone
        return [_estimate_reach(value, leaves) for value in run_texts(problem, clone_names(bindings))]


def _count_tensor(value: Tensor, leaves: Mapping[str, Tensor]) -> Reach | None:
    """The larger ones of the largest entry and of the last one; None: they have no derivative."""
    if not value.requires_grad or not value.numel():
        return None
    flat = value.reshape(-1)
    places = {int(flat.detach().nan_to_num(posinf=0.0, neginf=0.0).abs().argmax()), flat.numel() - 1}
    counted = [_count_entry(flat[place], leaves) for place in sorted(places)]
    elements = max(reach.elements for reach in counted)
    return Reach(elements, max(reach.terms for reach in counted)) if elements else None


def _count_entry(entry: Tensor, leaves: Mapping[str, Tensor]) -> Reach:
    gradients = torch.autograd.grad(entry, list(leaves.values()), retain_graph=True, allow_unused=True)
    pairs = [(one, leaf) for one, leaf in zip(gradients, leaves.values(), strict=True) if one is not None]
    terms = sum(float((gradient * leaf.detach()).abs().sum()) for gradient, leaf in pairs)
    elements = sum(int(torch.count_nonzero(gradient)) for gradient, _ in pairs)
    return Reach(elements, terms if math.isfinite(terms) else 0.0)


def _estimate_reach(value: Tensor, leaves: Mapping[str, Tensor]) -> Reach:
    return Reach(max(1, sum(tensor.numel() for tensor in leaves.values()) // max(1, value.numel())))
