"""The number types that a tensor of a problem may have, by the names that task files use."""

from __future__ import annotations

BYTES_BY_DTYPE = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8, "int8": 1, "int32": 4, "int64": 8, "bool": 1}
DTYPES = tuple(BYTES_BY_DTYPE)
TORCH_NAMES = {  # as attributes of torch
    **{"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"},
    **{"int8": "int8", "int32": "int32", "int64": "int64", "bool": "bool"},
}
STREAM_DTYPES = tuple(dtype for dtype in DTYPES if dtype != "int8")  # those of a stream's elements
FLOATS = frozenset({"fp32", "fp16", "bf16", "fp64"})
NARROW_FLOATS = frozenset({"fp16", "bf16"})  # too narrow to sum in
