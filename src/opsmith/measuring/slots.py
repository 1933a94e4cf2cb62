"""Slots: where the arrays of a call lie in shared memory, and the inputs that are put there, which never come twice.

Inputs are mixed of a few draws of the problem. An array whose entries (or rows) are drawn independently of each other
begins as that of one draw and goes on as that of another, from a random one on; all other arrays are those of one draw.
Where no array can be mixed, every call of a side has a draw of its own. What is put into a slot is remembered on our
side as a recipe: what the process makes of its memory is not asked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opsmith.measuring.grain import measure_grain
from opsmith.measuring.schedule import Turn
from opsmith.problems.problem import Problem
from opsmith.targets.native.layout import ALIGNMENT, DrawLayout

POISON = 0xFF  # NaN in every float, -1 in every whole number
_PAGE = 4096
_GAP = 5 * ALIGNMENT  # arrays of equal sizes would begin at equal places of their pages, which slows every store


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
    """Of which draws a call's inputs are."""

    first: int
    second: int
    cuts: tuple[int, ...]  # of each array the bytes that are of the first draw


class InputMixer:
    """Mixes inputs of draws; each array of a draw as bytes."""

    def __init__(
        self, problem: Problem, layout: SlotLayout, sizes: Mapping[str, int], draws: Sequence[Sequence[bytes]]
    ) -> None:
        self._layout = layout
        self._draws = draws
        self._grains = [measure_grain(problem, tensor, sizes) for tensor in problem.tensors]
        self._is_mixing = any(self._count_parts(number) > 1 for number in range(len(self._grains)))

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
        pairs = zip(self._draws[recipe.first], self._draws[recipe.second], recipe.cuts, strict=True)
        return [first[:cut] + second[cut:] for first, second, cut in pairs]

    def draw_recipe(self, generator: random.Random, call: int = 0) -> Recipe:
        """Of two different draws, each with an entry of its own at least; or the draw of this call."""
        if not self._is_mixing:
            whole = call % len(self._draws)
            return Recipe(whole, whole, self._layout.arrays.inputs)
        first = int(generator.random() * len(self._draws))
        second = (first + 1 + int(generator.random() * (len(self._draws) - 1))) % len(self._draws)
        return Recipe(first, second, tuple(self._draw_cut(generator, number) for number in range(len(self._grains))))

    def _draw_cut(self, generator: random.Random, number: int) -> int:
        """Where an array goes on as that of the second draw."""
        grain, parts = self._grains[number], self._count_parts(number)
        return (1 + int(generator.random() * (parts - 1))) * grain if grain else self._layout.arrays.inputs[number]

    def _count_parts(self, number: int) -> int:
        """Of how many parts an array is, each of which may come from another draw."""
        grain = self._grains[number]
        return self._layout.arrays.inputs[number] // grain if grain else 1

    def _write_inputs(self, memory: memoryview, start: int, recipe: Recipe) -> None:
        first, second = self._draws[recipe.first], self._draws[recipe.second]
        for place, head, tail, cut in zip(self._layout.places, first, second, recipe.cuts, strict=False):
            begin, end = start + place, start + place + len(head)
            memory[begin : begin + cut] = memoryview(head)[:cut]
            memory[begin + cut : end] = memoryview(tail)[cut:]
