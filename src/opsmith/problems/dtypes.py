"""The number types that a tensor of a problem may have, by the names that task files use."""

from __future__ import annotations

BYTES_BY_DTYPE = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8, "int8": 1, "int32": 4, "int64": 8, "bool": 1}
DTYPES = tuple(BYTES_BY_DTYPE)
STREAM_DTYPES = tuple(dtype for dtype in DTYPES if dtype != "int8")  # those of a stream's elements
FLOATS = frozenset({"fp32", "fp16", "bf16", "fp64"})
NARROW_FLOATS = frozenset({"fp16", "bf16"})  # too narrow to sum in
