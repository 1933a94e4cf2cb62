"""Arrays of a problem as WGSL has them: of four bytes an entry, or two for f16. No torch, no numpy."""

from __future__ import annotations

from array import array

_WIDENED = {"int8": "b", "bool": "B", "int64": "q"}  # dtype -> the type of its entries in Python's arrays
BYTES_ON_DEVICE = {"fp32": 4, "fp16": 2, "int32": 4, "int64": 4, "int8": 4, "bool": 4}
DTYPES = tuple(BYTES_ON_DEVICE)


def count_device_bytes(dtype: str, size: int, entry_bytes: int) -> int:
    """Those of an array of `size` bytes on this side, with what makes them a multiple of four."""
    count = size // entry_bytes * BYTES_ON_DEVICE[dtype]
    return count + -count % 4


def encode_array(dtype: str, data: memoryview) -> bytes:
    """The bytes of an array on the device. Raises OverflowError for whole numbers beyond 32 bits."""
    kind = _WIDENED.get(dtype)
    if kind is None:
        return bytes(data) + bytes(-len(data) % 4)
    return array("I" if dtype == "bool" else "i", array(kind, bytes(data))).tobytes()


def decode_array(dtype: str, data: bytes, size: int) -> bytes:
    """The first `size` bytes of an array on this side. Numbers that do not fit their type end as its bytes do."""
    if dtype == "int64":
        return array("q", memoryview(data).cast("i").tolist()).tobytes()[:size]
    if dtype == "bool":
        return bytes(min(number, 255) for number in memoryview(data).cast("I"))[:size]
    if dtype == "int8":
        return data[::4][:size]
    return data[:size]
