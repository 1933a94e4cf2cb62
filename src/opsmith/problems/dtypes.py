"""The number types that a tensor of a problem may have: one table of what torch, numpy and each language call them.

Whoever adds a type adds a row. Helpers that convert it in C are in `targets.native.signature`, by the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberType:
    """A number type. Of several words the first is the one that is best written."""

    name: str  # in task files, launch plans and prompts
    torch: str  # the attribute of torch
    bytes: int  # of an entry
    numpy: str  # its kind, or that of its bits where numpy lacks it
    c: str
    cuda: tuple[str, ...]  # what a parameter of a kernel may point to
    wgsl: tuple[str, ...] = ()  # element types of an array; (): there are no such arrays
    bytes_in_wgsl: int = 4  # of an entry
    aten: str = ""  # what torch's C++ calls it: at::kFloat
    in_step: bool = True  # whether STeP has it
    words: tuple[str, ...] = ()  # names in other languages, of those who write them by mistake
    note: str = ""  # what a prompt says of its numbers

    @property
    def is_float(self) -> bool:
        return "float" in self.torch


_INTS, _BYTES, _UINT8 = ("i32", "u32", "atomic<i32>", "atomic<u32>"), ("u32",), ("uint8_t", "unsigned char", "uchar4")
_FP8 = "uint8_t", "unsigned char", "__nv_fp8_storage_t"
_ROUNDING = "conversions round to the nearest, ties to even, and saturate"
_ROWS = (
    NumberType("fp32", "float32", 4, "<f4", "float", ("float", "float2", "float4"), ("f32", "atomic<u32>", "u32"),
               aten="Float", words=("float", "float32", "f32")),
    NumberType("fp16", "float16", 2, "<f2", "_Float16", ("__half", "half", "__half2", "half2"), ("f16",), 2,
               aten="Half", words=("half", "float16", "f16", "__half")),
    NumberType("bf16", "bfloat16", 2, "<u2", "uint16_t",
               ("__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", "nv_bfloat162"),
               aten="BFloat16", words=("bfloat16",)),
    NumberType("fp64", "float64", 8, "<f8", "double", ("double", "double2"),
               aten="Double", words=("double", "float64", "f64")),
    NumberType("int8", "int8", 1, "|i1", "int8_t", ("int8_t", "signed char", "char", "char4"), ("i32",),
               aten="Char", in_step=False, words=("char", "i8")),
    NumberType("int32", "int32", 4, "<i4", "int32_t", ("int", "int32_t", "signed int", "int2", "int4"), _INTS,
               aten="Int", words=("int", "i32", "u32")),
    NumberType("int64", "int64", 8, "<i8", "int64_t",
               ("int64_t", "long long", "long long int", "long", "long int", "signed long long"), _INTS,
               aten="Long", words=("i64", "long")),
    NumberType("bool", "bool", 1, "|b1", "uint8_t",
               ("bool", "uint8_t", "unsigned char", "int8_t", "char", "signed char"), ("u32", "atomic<u32>"),
               aten="Bool"),
    NumberType("int4x2", "uint8", 1, "|u1", "uint8_t", _UINT8, _BYTES,
               aten="Byte", in_step=False, words=("int4", "i4"),
               note="a byte of two numbers from -8 to 7: entry 2i is the low nibble of byte i, 2i + 1 the high one"),
    NumberType("uint8", "uint8", 1, "|u1", "uint8_t", _UINT8, _BYTES,
               aten="Byte", in_step=False, words=("byte", "u8", "uchar"), note="0 to 255"),
    NumberType("int16", "int16", 2, "<i2", "int16_t", ("int16_t", "short", "short int", "short2", "short4"), ("i32",),
               aten="Short", in_step=False, words=("short", "i16"), note="-32768 to 32767"),
    NumberType("fp8_e4m3", "float8_e4m3fn", 1, "|u1", "uint8_t",
               ("__nv_fp8_e4m3", "__nv_fp8x2_e4m3", "__nv_fp8x4_e4m3", *_FP8), _BYTES,
               aten="Float8_e4m3fn", in_step=False, words=("fp8", "e4m3", "float8_e4m3fn", "float8_e4m3"),
               note=f"sign, 4 bits of exponent (bias 7), 3 of mantissa; to 448; 0x7f is NaN, no infinity; {_ROUNDING}"),
    NumberType("fp8_e5m2", "float8_e5m2", 1, "|u1", "uint8_t",
               ("__nv_fp8_e5m2", "__nv_fp8x2_e5m2", "__nv_fp8x4_e5m2", *_FP8), _BYTES,
               aten="Float8_e5m2", in_step=False, words=("e5m2", "float8_e5m2"),
               note=f"sign, 5 bits of exponent (bias 15), 2 of mantissa: half an fp16; to 57344; {_ROUNDING}"),
)  # fmt: skip
TYPES: Mapping[str, NumberType] = {row.name: row for row in _ROWS}
DTYPES = tuple(TYPES)
BYTES_BY_DTYPE = {name: row.bytes for name, row in TYPES.items()}
TORCH_NAMES = {name: row.torch for name, row in TYPES.items()}  # as attributes of torch
NAMES_BY_TORCH: Mapping[str, str] = {row.torch: name for name, row in TYPES.items()}  # of two the lower row
NAMES_BY_WORD = {word: name for name, row in TYPES.items() for word in row.words}
STREAM_DTYPES = tuple(name for name, row in TYPES.items() if row.in_step)  # those of a stream's elements
FLOATS = frozenset(name for name, row in TYPES.items() if row.is_float)
NARROW_FLOATS = frozenset(name for name in FLOATS if TYPES[name].bytes < 4)  # too narrow to sum in
BYTE_FLOATS = frozenset(name for name in FLOATS if TYPES[name].bytes == 1)  # and to compute in at all
