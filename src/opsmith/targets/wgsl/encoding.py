"""Arrays of a problem as WGSL has them: of four bytes an entry, or two for f16. No torch, no numpy."""

from __future__ import annotations

from array import array

from opsmith.problems.dtypes import TYPES

DTYPES = tuple(name for name, row in TYPES.items() if row.wgsl)


def count_device_bytes(dtype: str, size: int, entry_bytes: int) -> int:
    """Those of an array of `size` bytes on this side, with what makes them a multiple of four."""
    count = size // entry_bytes * TYPES[dtype].bytes_in_wgsl
    return count + -count % 4


def encode_array(dtype: str, data: memoryview) -> bytes:
    """The bytes of an array on the device. Raises OverflowError for whole numbers beyond 32 bits."""
    row = TYPES[dtype]
    if row.bytes == row.bytes_in_wgsl:
        return bytes(data) + bytes(-len(data) % 4)
    is_signed = row.wgsl[0] == "i32"
    kind = {1: "b", 2: "h", 8: "q"}[row.bytes]
    return array("i" if is_signed else "I", array(kind if is_signed else kind.upper(), bytes(data))).tobytes()


def decode_array(dtype: str, data: bytes, size: int) -> bytes:
    """The first `size` bytes of an array on this side. Numbers that do not fit their type end as its bytes do."""
    if dtype == "int64":
        return array("q", memoryview(data).cast("i").tolist()).tobytes()[:size]
    if dtype == "bool":
        return bytes(min(number, 255) for number in memoryview(data).cast("I"))[:size]
    row = TYPES[dtype]
    if row.bytes == row.bytes_in_wgsl:
        return data[:size]
    entries = memoryview(data).cast("H") if row.bytes == 2 else memoryview(data)
    return entries[:: 4 // row.bytes].tobytes()[:size]
