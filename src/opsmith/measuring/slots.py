"""The inputs of timed calls on this machine: what may be drawn anew of a problem's inputs, mixed by numpy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opsmith.measuring.grain import measure_grain
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import Problem
from opsmith.targets.native.layout import DrawLayout
from opsmith.timing.inputs import InputArray, InputMixer, Recipe


def list_inputs(problem: Problem, layout: DrawLayout, sizes: Mapping[str, int]) -> list[InputArray]:
    """Each input at the sizes of the dims, with what may be drawn anew of it."""
    rows = []
    for tensor, size in zip(problem.tensors, layout.inputs, strict=True):
        grain = measure_grain(problem, tensor, sizes)
        rows.append(InputArray(size, BYTES_BY_DTYPE[tensor.type.dtype], grain.size, grain.mask, grain.columns))
    return rows


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
