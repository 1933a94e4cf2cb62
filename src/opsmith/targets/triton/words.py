"""Triton's words as tables: what programs may name, and what it calls the types of arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping

from opsmith.targets.gpu.plan import PlanWords

PLAN_WORDS = PlanWords(
    comment="#",
    has_block_comments=False,
    keys=("grid", "meta", "args"),
    needed=("grid", "args"),
    preamble=re.compile(r"\s*(import\b|from\b|$)"),
)
OPTIONS: Mapping[str, tuple[int, ...]] = {  # entries of `meta` that are for the compiler, with what they may be
    "num_warps": (1, 2, 4, 8, 16, 32),
    "num_stages": (1, 2, 3, 4, 5, 6, 7, 8),
}
DEFAULTS = {"num_warps": 4, "num_stages": 3}
TYPES: Mapping[str, tuple[str, str]] = {  # of an array's entries: the name in `tl`, and in a signature
    "fp32": ("float32", "fp32"),
    "fp16": ("float16", "fp16"),
    "bf16": ("bfloat16", "bf16"),
    "fp64": ("float64", "fp64"),
    "int8": ("int8", "i8"),
    "int16": ("int16", "i16"),
    "int32": ("int32", "i32"),
    "int64": ("int64", "i64"),
    "bool": ("int1", "i1"),
    "uint8": ("uint8", "u8"),
    "int4x2": ("uint8", "u8"),
    "fp8_e4m3": ("float8e4nv", "fp8e4nv"),
    "fp8_e5m2": ("float8e5", "fp8e5"),
}
_DTYPES = "float16 float32 float64 bfloat16 float8e4nv float8e5 int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_MAKING = "arange zeros zeros_like full cast broadcast broadcast_to expand_dims reshape view ravel trans permute"
_JOINING = "cat join split interleave flip where gather"
_MATH = (
    "abs add sub mul ceil floor cos sin exp exp2 log log2 sqrt sqrt_rn rsqrt sigmoid softmax erf fma fdiv div_rn cdiv "
    "clamp maximum minimum umulhi"
)
_REDUCING = "sum max min argmax argmin xor_sum reduce cumsum cumprod associative_scan sort topk dot"
_MEMORY = (
    "load store atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor debug_barrier"
)
_OTHERS = "program_id num_programs constexpr range static_range static_assert swizzle2d pointer_type assume"
_HINTS = "multiple_of max_contiguous max_constancy"
ALLOWED = frozenset(" ".join((_DTYPES, _MAKING, _JOINING, _MATH, _REDUCING, _MEMORY, _OTHERS, _HINTS)).split())
MATH = frozenset("abs ceil floor cos sin exp exp2 log log2 sqrt sqrt_rn rsqrt erf fma div_rn umulhi cdiv".split())  # noqa: SIM905
TENSOR = frozenset(  # of a tensor
    "to T shape dtype element_ty sum max min argmax argmin cumsum cumprod reshape view trans permute expand_dims "  # noqa: SIM905
    "broadcast_to ravel split flip abs ceil floor cos sin exp exp2 log log2 sqrt rsqrt sigmoid erf xor_sum sort".split()
)
HOST = frozenset({"cdiv", "next_power_of_2"})  # of `triton`, within a kernel
BUILTINS = frozenset({"range", "min", "max", "float", "int"})
