"""Slots: where the arrays of a call lie in shared memory, and the inputs that are put there, which never come twice.

Inputs are mixed of a few draws of the problem. An array whose entries (or rows) are drawn independently of each other
begins as that of one draw and goes on as that of another, from a random one on; what `grain` allows of it is drawn
anew; all other arrays are those of one draw. Where nothing can be drawn anew, every call of a side has a draw of its
own. What is put into a slot is remembered on our side as a recipe: what the process makes of its memory is not asked.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opsmith.measuring.grain import Grain, measure_grain
from opsmith.measuring.schedule import Turn
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import Problem
from opsmith.targets.native.layout import ALIGNMENT, DrawLayout

POISON = 0xFF  # NaN in every float, -1 in every whole number
_PAGE = 4096
_STEP = 1 << 19  # numbers of noise, from any of which on they may be used
_STRIDE = 7919  # of places in the noise, from one step of an array to the next
_GAP = 5 * ALIGNMENT  # arrays of equal sizes would begin at equal places of their pages, which slows every store


Words = NDArray[Any]  # of unsigned whole numbers


@dataclass(frozen=True)
class SlotLayout:
    """The arrays of one call, inputs first."""

    arrays: DrawLayout

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Where each begins in a slot."""
        places, end = [], 0
        for size in (*self.arrays.inputs, *self.arrays.outputs):
            places.append(end)
            end += size + _GAP
            end += -end % ALIGNMENT
        return tuple(places)

    @cached_property
    def stride(self) -> int:
        """Bytes from one slot to the next."""
        end = self.places[-1] + (*self.arrays.inputs, *self.arrays.outputs)[-1] + _GAP
        return end + -end % _PAGE

    def list_outputs(self, slot: int) -> Iterator[slice]:
        """The bytes of the outputs of a slot, in memory."""
        first = len(self.arrays.inputs)
        for place, size in zip(self.places[first:], self.arrays.outputs, strict=True):
            start = slot * self.stride + place
            yield slice(start, start + size)


@dataclass(frozen=True)
class Recipe:
    """Of which draws a call's inputs are, and what is drawn anew of them."""

    first: int
    second: int
    cuts: tuple[int, ...]  # of each array the bytes that are of the first draw
    novelty: int = 0  # what all that is drawn anew follows from


class InputMixer:
    """Mixes inputs of draws; each array of a draw as bytes."""

    def __init__(
        self, problem: Problem, layout: SlotLayout, sizes: Mapping[str, int], draws: Sequence[Sequence[bytes]]
    ) -> None:
        """`sizes`: of the dims."""
        self._layout = layout
        self._draws = draws
        self._grains = [measure_grain(problem, tensor, sizes) for tensor in problem.tensors]
        self._words = [f"u{BYTES_BY_DTYPE[tensor.type.dtype]}" for tensor in problem.tensors]
        self._noise = {(word, grain.mask): _draw_noise(word, grain.mask) for word, grain in self._pairs if grain.mask}
        self._is_mixing = any(grain.is_fresh for grain in self._grains)

    @property
    def most_calls(self) -> int | None:
        """Of a side in one process, so that no inputs come twice; None: as many as there are."""
        return None if self._is_mixing else len(self._draws)

    def fill_slots(
        self, memory: memoryview, turn: Turn, prepared: Mapping[int, Recipe] | None = None
    ) -> dict[int, Recipe]:
        """Put fresh inputs into a turn's slots and poison into outputs; the recipes of the slots that are checked.

        `prepared`: recipes of some slots, which were drawn before.
        """
        generator = random.Random(turn.input_seed)
        recipes = {}
        for number, slot in enumerate(sorted(turn.slots)):
            recipe = self.draw_recipe(generator, turn.calls + number)
            recipe = (prepared or {}).get(slot, recipe)
            self._write_inputs(memory, slot * self._layout.stride, recipe)
            if slot in turn.poisoned:
                for output in self._layout.list_outputs(slot):
                    memory[output] = bytes((POISON,)) * (output.stop - output.start)
            if slot in turn.checked:
                recipes[slot] = recipe
        return recipes

    def mix_inputs(self, recipe: Recipe) -> list[bytes]:
        """The arrays of a recipe."""
        arrays = [bytearray(size) for size in self._layout.arrays.inputs]
        for number, array in enumerate(arrays):
            self._write_array(memoryview(array), number, recipe)
        return [bytes(array) for array in arrays]

    def draw_recipe(self, generator: random.Random, call: int = 0) -> Recipe:
        """Of two different draws, each with an entry of its own at least; or the draw of this call."""
        if not self._is_mixing:
            whole = call % len(self._draws)
            return Recipe(whole, whole, self._layout.arrays.inputs)
        first = int(generator.random() * len(self._draws))
        second = (first + 1 + int(generator.random() * (len(self._draws) - 1))) % len(self._draws)
        cuts = tuple(self._draw_cut(generator, number) for number in range(len(self._grains)))
        return Recipe(first, second, cuts, generator.getrandbits(48))

    @property
    def _pairs(self) -> Iterator[tuple[str, Grain]]:
        return zip(self._words, self._grains, strict=True)

    def _draw_cut(self, generator: random.Random, number: int) -> int:
        """Where an array goes on as that of the second draw."""
        size, grain = self._layout.arrays.inputs[number], self._grains[number].size
        return (1 + int(generator.random() * (size // grain - 1))) * grain if grain else size

    def _write_inputs(self, memory: memoryview, start: int, recipe: Recipe) -> None:
        for number, size in enumerate(self._layout.arrays.inputs):
            begin = start + self._layout.places[number]
            self._write_array(memory[begin : begin + size], number, recipe)

    def _write_array(self, target: memoryview, number: int, recipe: Recipe) -> None:
        first, second = self._draws[recipe.first][number], self._draws[recipe.second][number]
        cut, grain, word = recipe.cuts[number], self._grains[number], self._words[number]
        if not grain.is_fresh or not len(target):
            target[:cut], target[cut:] = memoryview(first)[:cut], memoryview(second)[cut:]
            return
        for begin, end, draw in ((0, cut, first), (cut, len(target), second)):
            old, new = np.frombuffer(memoryview(draw)[begin:end], word), np.frombuffer(target[begin:end], word)
            if grain.mask:
                _disturb_bits(old, new, self._noise[word, grain.mask], recipe.novelty * (number + 1) + begin)
            else:
                order = np.random.default_rng([recipe.novelty, number]).permutation(grain.columns)
                np.take(old.reshape(-1, grain.columns), order, axis=1, out=new.reshape(-1, grain.columns), mode="clip")


def _draw_noise(word: str, mask: int) -> Words:
    """Bits within the mask, which nobody knows before."""
    generator = np.random.default_rng(secrets.randbits(64))
    noise: Words = generator.integers(0, mask, 2 * _STEP, np.dtype(word), endpoint=True)
    return noise


def _disturb_bits(old: Words, new: Words, noise: Words, place: int) -> None:
    """Change bits of what is old as the noise says from a place on."""
    for number, begin in enumerate(range(0, len(old), _STEP)):
        start = (place + _STRIDE * number) % _STEP
        piece = old[begin : begin + _STEP]
        np.bitwise_xor(piece, noise[start : start + len(piece)], out=new[begin : begin + _STEP])
