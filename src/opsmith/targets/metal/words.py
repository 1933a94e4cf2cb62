"""Metal's words as tables: types of arrays, attributes of parameters with what they are given, other attributes."""

from __future__ import annotations

from collections.abc import Mapping

_BYTES = ("uchar", "uint8_t")
TYPES: Mapping[str, tuple[str, ...]] = {  # element types of an array, the best first; a dtype that is missing: none
    "fp32": ("float", "atomic_float"),
    "fp16": ("half",),
    "bf16": ("bfloat",),
    "int8": ("char", "int8_t"),
    "int32": ("int", "int32_t", "atomic_int", "uint", "atomic_uint"),
    "int64": ("long", "int64_t"),
    "bool": ("bool", "uchar", "uint8_t"),
    "int4x2": _BYTES,
    "uint8": _BYTES,
    "int16": ("short", "int16_t"),
    "fp8_e4m3": _BYTES,
    "fp8_e5m2": _BYTES,
}
POINTERS = {dtype: words[0] for dtype, words in TYPES.items()}
ELEMENTS = frozenset(word for words in TYPES.values() for word in words)
WHOLE = frozenset("int uint long ulong int32_t uint32_t int64_t uint64_t short ushort".split())  # noqa: SIM905
FLOATING = frozenset({"float"})

_Triple = tuple[str, str, str]
_OF_THREAD: _Triple = ("opsmith_thread_x()", "opsmith_thread_y()", "opsmith_thread_z()")
_OF_GROUP: _Triple = ("opsmith_block_x()", "opsmith_block_y()", "opsmith_block_z()")
_SIZE: _Triple = ("opsmith_block_size_x()", "opsmith_block_size_y()", "opsmith_block_size_z()")
_GROUPS: _Triple = ("opsmith_grid_x()", "opsmith_grid_y()", "opsmith_grid_z()")
_LANES = f"({' * '.join(_SIZE)} + 31) / 32"


def _join(form: str, *triples: _Triple) -> _Triple:
    x, y, z = (form.format(*parts) for parts in zip(*triples, strict=True))
    return x, y, z


TRIPLES: Mapping[str, _Triple] = {  # numbers, or vectors of as many components in all parameters of a kernel
    "thread_position_in_grid": _join("{} + {} * {}", _OF_THREAD, _OF_GROUP, _SIZE),
    "thread_position_in_threadgroup": _OF_THREAD,
    "threadgroup_position_in_grid": _OF_GROUP,
    "threads_per_threadgroup": _SIZE,
    "dispatch_threads_per_threadgroup": _SIZE,
    "threads_per_grid": _join("{} * {}", _SIZE, _GROUPS),
    "threadgroups_per_grid": _GROUPS,
}
NUMBERS: Mapping[str, str] = {
    "thread_index_in_threadgroup": "opsmith_rank()",
    "thread_index_in_simdgroup": "opsmith_lane()",
    "simdgroup_index_in_threadgroup": "opsmith_rank() / 32",
    "threads_per_simdgroup": "32",
    "thread_execution_width": "32",
    "simdgroups_per_threadgroup": _LANES,
    "dispatch_simdgroups_per_threadgroup": _LANES,
    "thread_index_in_quadgroup": "opsmith_lane() % 4",
    "quadgroup_index_in_threadgroup": "opsmith_rank() / 4",
}
POSITIONS: Mapping[str, _Triple] = {
    **TRIPLES,
    **{name: (text, "0", "0") for name, text in NUMBERS.items()},
}
OTHERS = frozenset(  # of kernels, functions, loops and variables
    {"kernel", "max_total_threads_per_threadgroup", "maybe_unused", "nodiscard", "fallthrough", "unroll", "likely"}
    | {"unlikely", "always_inline", "noinline", "clang::loop_unroll", "required_threads_per_threadgroup"}
)
