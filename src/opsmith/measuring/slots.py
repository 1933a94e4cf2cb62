"""The inputs of timed calls on this machine, mixed by numpy."""

from __future__ import annotations

import numpy as np

from opsmith.timing.inputs import InputMixer, Recipe


class NumpyMixer(InputMixer):
    """Mixes at the price of a copy; rows whose entries have no order of their own get another one."""

    def write_array(self, target: memoryview, place: int, recipe: Recipe) -> None:
        super().write_array(target, place, recipe)
        array = self.arrays[place]
        if array.columns and len(target):
            rows = np.frombuffer(target, f"u{array.width}").reshape(-1, array.columns)
            order = np.random.default_rng([recipe.novelty, place]).permutation(array.columns)
            rows[:] = np.take(rows, order, axis=1)

    def disturb(self, target: memoryview, source: memoryview, noise: bytes, first: int) -> None:
        piece = np.frombuffer(target, np.uint8)
        np.bitwise_xor(np.frombuffer(source, np.uint8), np.frombuffer(noise, np.uint8, len(piece), first), out=piece)
