"""The inputs of timed calls where numpy is: on this machine, and of calls elsewhere whose outputs are compared here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opsmith.timing.inputs import ArrayNoise, FreshMixer, InputArray, list_steps

_SUMMED = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}  # bf16 is the upper half of an fp32
_LARGEST_INDEX = 1 << 15  # of columns, so that products fit 31 bits

Array = NDArray[Any]


class NumpyMixer(FreshMixer):
    """Mixes at about the price of a copy, rows at some of it."""

    def prepare_pool(self, array: InputArray, data: bytes) -> Array:
        if not array.sums:
            return np.frombuffer(data, f"u{array.width}")
        if array.sums == "bf16":
            return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.frombuffer(data, _SUMMED[array.sums]).astype(np.float64 if array.sums == "fp64" else np.float32)

    def prepare_noise(self, array: InputArray, noise: ArrayNoise) -> tuple[Array, ...]:
        if array.columns:
            return np.array(noise.orders, np.int64), np.array(list_steps(array.columns), np.int64)
        return np.frombuffer(noise.choice, f"u{array.width}"), np.frombuffer(noise.bits, f"u{array.width}")

    def add_entries(
        self, target: memoryview, place: int, pools: Sequence[Array], starts: Sequence[int], weights: Sequence[float]
    ) -> None:
        dtype, count = self.arrays[place].sums, len(target) // self.arrays[place].width
        weighted = [
            pool[start : start + count] * pool.dtype.type(weight)
            for pool, start, weight in zip(pools, starts, weights, strict=True)
        ]
        entries = np.add(weighted[0], weighted[1], out=weighted[0])
        if dtype == "bf16":
            rounded = entries.view(np.uint32)
            np.add(rounded, 0x8000, out=rounded)
            np.frombuffer(target, np.uint16)[:] = rounded >> 16
        else:
            np.frombuffer(target, _SUMMED[dtype])[:] = entries

    def choose_entries(
        self, target: memoryview, place: int, pools: Sequence[Array], starts: Sequence[int], noises: Sequence[int]
    ) -> None:
        entries = np.frombuffer(target, pools[0].dtype)
        ranges = [slice(start, start + len(entries)) for start in (*starts, *noises)]
        first, second, (choice, bits) = pools[0][ranges[0]], pools[1][ranges[1]], self.noises[place]
        np.bitwise_xor(first, second, out=entries)
        np.bitwise_and(entries, choice[ranges[2]], out=entries)
        np.bitwise_xor(entries, first, out=entries)
        if self.arrays[place].mask:
            np.bitwise_xor(entries, bits[ranges[3]], out=entries)

    def reorder_rows(self, target: memoryview, place: int, pools: Sequence[Any], seed: int) -> None:
        array = self.arrays[place]
        columns, (orders, steps) = array.columns, self.noises[place]
        rows = np.frombuffer(target, f"u{array.width}").reshape(-1, columns)
        chances = _scatter_rows(seed, len(rows))
        starts, chosen = (chances[0] % np.uint64(columns), steps[(chances[1] % np.uint64(len(steps))).astype(np.int64)])
        index = np.int32 if columns < _LARGEST_INDEX else np.int64
        places = np.multiply.outer(chosen.astype(index), np.arange(columns, dtype=index))
        np.remainder(np.add(places, starts.astype(index)[:, None], out=places), index(columns), out=places)
        sources = (chances[2] >> np.uint64(1)) % np.uint64(len(rows)) + (chances[2] & np.uint64(1)) * np.uint64(
            len(rows)
        )
        flat = np.take(orders[seed % len(orders)], places)
        flat += sources.astype(np.int64)[:, None] * columns
        np.take(np.frombuffer(b"".join(pools), rows.dtype), flat, out=rows, mode="clip")


def _scatter_rows(seed: int, rows: int) -> list[NDArray[np.uint64]]:
    """`scatter(seed, row, which)` of each row, for three chances."""
    begun = _add_word(np.zeros(rows, np.uint64), np.uint64(seed))
    begun = _add_word(begun, np.arange(rows, dtype=np.uint64))
    return [_add_word(begun, np.uint64(which)) for which in range(3)]


def _add_word(state: NDArray[np.uint64], word: Any) -> NDArray[np.uint64]:
    state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
