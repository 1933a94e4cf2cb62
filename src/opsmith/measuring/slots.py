"""Slots: where the arrays of a call lie in shared memory, and the inputs that are put there, which never come twice.

Inputs are mixed of a few draws of the problem. An array whose entries are drawn independently of each other begins as
that of one draw and goes on as that of another, from a random entry on; all other arrays are those of one draw. What is
put into a slot is remembered on our side as a recipe: what the process makes of its memory is not asked.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from opsmith.measuring.schedule import Turn
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import InputTensor, Problem
from opsmith.targets.native.layout import ALIGNMENT, DrawLayout

POISON = 0xFF  # NaN in every float, -1 in every whole number
_PAGE = 4096
_GAP = 5 * ALIGNMENT  # arrays of equal sizes would begin at equal places of their pages, which slows every store
_INDEPENDENT = re.compile(r"(uniform|randint)\([^()]*\)")  # expressions whose entries know nothing of each other


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

    def __init__(self, problem: Problem, layout: SlotLayout, draws: Sequence[Sequence[bytes]]) -> None:
        self._layout = layout
        self._draws = draws
        self._entries = [BYTES_BY_DTYPE[tensor.type.dtype] if _is_mixed(tensor) else 0 for tensor in problem.tensors]

    def fill_slots(self, memory: memoryview, turn: Turn) -> dict[int, Recipe]:
        """Put fresh inputs into a turn's slots and poison into outputs; the recipes of the slots that are checked."""
        generator = random.Random(turn.input_seed)
        recipes = {}
        for slot in sorted(turn.slots):
            recipe = self._draw_recipe(generator)
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

    def _draw_recipe(self, generator: random.Random) -> Recipe:
        """Of two different draws, each with an entry of its own at least."""
        first = int(generator.random() * len(self._draws))
        second = (first + 1 + int(generator.random() * (len(self._draws) - 1))) % len(self._draws)
        sizes = self._layout.arrays.inputs
        cuts = (
            (1 + int(generator.random() * (size // entry - 1))) * entry if entry else size
            for size, entry in zip(sizes, self._entries, strict=True)
        )
        return Recipe(first, second, tuple(cuts))

    def _write_inputs(self, memory: memoryview, start: int, recipe: Recipe) -> None:
        first, second = self._draws[recipe.first], self._draws[recipe.second]
        for place, head, tail, cut in zip(self._layout.places, first, second, recipe.cuts, strict=False):
            begin, end = start + place, start + place + len(head)
            memory[begin : begin + cut] = memoryview(head)[:cut]
            memory[begin + cut : end] = memoryview(tail)[cut:]


def is_mixable(problem: Problem) -> bool:
    """Whether any input can be mixed; else only whole draws can be told apart."""
    return any(map(_is_mixed, problem.tensors))


def _is_mixed(tensor: InputTensor) -> bool:
    is_generated = tensor.data_gen in {"torch.rand", "torch.randn"}
    return not tensor.type.is_multihot and (is_generated or bool(_INDEPENDENT.fullmatch(tensor.expression)))
