"""What memory holds that a program has not written: junk that spoils what takes it in, or what another call has left.

All of it is drawn from a seed that a program cannot know, and from the program itself, so that no bytes tell it that it
is judged: within its kind junk is random, and old outputs are those of other draws, or right but for some entries.

No torch, no numpy: a candidate's process imports this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

TILE = 1 << 12  # bytes of junk, repeated from a random place on
_NOT_A_NUMBER = 0xFF
_KINDS = {byte: bytes((byte & 0xF8) | (value & 3) for value in range(256)) for byte in (0x7B, 0xFB)}  # of any width
_EVEN = bytes(0xF0 | value & 0xF for value in range(256))
_ODD = bytes(0x7F | value & 0x80 for value in range(256))


def draw_junk(source: random.Random, kind: int) -> bytes:
    """As floats of every width the bytes are large numbers (0x7B), large negative ones (0xFB) or NaN (0xFF); any other
    kind is that byte."""
    if kind in _KINDS:
        return source.randbytes(TILE).translate(_KINDS[kind])
    if kind != _NOT_A_NUMBER:
        return bytes([kind]) * TILE
    junk = bytearray(TILE)
    junk[::2] = source.randbytes(len(junk) // 2).translate(_EVEN)
    junk[1::2] = source.randbytes(len(junk) // 2).translate(_ODD)
    return bytes(junk)


def draw_left_bytes(source: random.Random, arrays: Sequence[memoryview]) -> bytes:
    """A heap as it is in use: zeros, or bytes of a trial's arrays."""
    full = [array for array in arrays if len(array) >= 16]
    if not full or source.random() < 0.3:
        return bytes(TILE)
    array = source.choice(full)
    piece = bytes(array[source.randrange(0, max(1, len(array) - TILE), 1) & ~7 :][:TILE])
    return (piece * (TILE // len(piece) + 1))[:TILE]


def draw_old_output(source: random.Random, right: bytes, others: Sequence[bytes]) -> bytes:
    """What an output may hold from a call before: `others` are outputs of its size, `right` is what it is to become."""
    kind = source.randrange(4 if others else 3)
    if kind == 0:
        return bytes(len(right))
    other = source.choice(others) if others else b""
    if kind == 3:
        return other
    moved = other if other and source.random() < 0.5 else _rotate(source, right)
    cut = source.randrange(len(right)) & ~7 if kind == 1 else 8  # all but the first eight bytes are of another call
    return right[:cut] + moved[cut:]


def _rotate(source: random.Random, data: bytes) -> bytes:
    shift = source.randrange(max(1, len(data))) & ~7
    return data[shift:] + data[:shift]


def repeat_tile(tile: bytes, size: int) -> bytes:
    """So many bytes of the tile, again and again."""
    return (tile * (size // len(tile) + 1))[:size]
