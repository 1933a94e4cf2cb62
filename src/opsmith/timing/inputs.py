"""Slots and what is put there: where the arrays of a call lie, and inputs that follow from seeds and never come twice.

Inputs are mixed of a few draws. An array whose entries (or rows) are drawn independently of each other begins as that
of one draw and goes on as that of another, from a random one on; the bits that its `mask` allows are drawn anew; all
other arrays are those of one draw. Where nothing can be drawn anew, every call of a side has a draw of its own. What is
put into a slot is remembered on our side as a recipe: what the process makes of its memory is not asked.

The standard library of Python 3.8 or newer and nothing of ours, as `engine`; who has something faster to copy bytes
with than Python says so by extending `InputMixer`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.timing.engine import NUMBER, Turn

ALIGNMENT = 64  # of every array that a program is given
POISON = 0xFF  # NaN in every float, -1 in every whole number
_PAGE = 4096
_GAP = 5 * ALIGNMENT  # arrays of equal sizes would begin at equal places of their pages, which slows every store
_STEP = 1 << 21  # bytes of noise, from any of which on they may be used; two of them are drawn
_STRIDE = 7919  # entries of noise, from one step of an array to the next
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class InputArray:
    """One input: how large it is, and what of it may be drawn anew."""

    size: int  # bytes
    width: int  # of an entry
    unit: int = 0  # bytes that must come from one draw together; 0: the whole array
    mask: int = 0  # bits of each entry that may be any
    columns: int = 0  # entries of a row, whose order may be any; 0: none
    pools: tuple[str, ...] = ()  # files that draws are made of elsewhere: of some entries, or of the whole of each draw

    @property
    def is_fresh(self) -> bool:
        """Whether every part of it is another one in every call."""
        return bool(self.mask or self.columns)


def read_arrays(rows: Sequence[Mapping[str, Any]]) -> tuple[InputArray, ...]:
    """The inputs of their JSON form."""
    return tuple(InputArray(**{**row, "pools": tuple(row["pools"])}) for row in rows)


class SlotLayout:
    """Where the arrays of one call lie, inputs first."""

    def __init__(self, arrays: Any) -> None:
        """`arrays`: what has `inputs` and `outputs`, the bytes of each, and `numbers`."""
        self.arrays = arrays
        places, end = [], 0
        for size in (*arrays.inputs, *arrays.outputs):
            places.append(end)
            end += size + _GAP
            end += -end % ALIGNMENT
        self.places = tuple(places)  # where each begins in a slot
        end = places[-1] + (*arrays.inputs, *arrays.outputs)[-1] + _GAP
        self.stride: int = end + -end % _PAGE  # bytes from one slot to the next

    def list_outputs(self, slot: int) -> Iterator[slice]:
        """The bytes of the outputs of a slot, in memory."""
        for place, size in zip(self.places[len(self.arrays.inputs) :], self.arrays.outputs):
            start = slot * self.stride + place
            yield slice(start, start + size)


@dataclass(frozen=True)
class Recipe:
    """Of which draws a call's inputs are, and what is drawn anew of them."""

    first: int
    second: int
    cuts: tuple[int, ...]  # of each array the bytes that are of the first draw
    novelty: int = 0  # what all that is drawn anew follows from


# -- draws, where there is nothing but pools


def expand_draw(arrays: Sequence[InputArray], read: Callable[[str], bytes], seed: int, number: int) -> list[bytes]:
    """The inputs of one draw. `read`: the bytes of a pool."""
    return [_expand_array(array, read, f"{seed}:{number}:{place}", number) for place, array in enumerate(arrays)]


def _expand_array(array: InputArray, read: Callable[[str], bytes], seed: str, number: int) -> bytes:
    if not array.unit:
        return read(array.pools[number % len(array.pools)])
    generator = random.Random(seed)
    data = b"".join(_draw_pieces(read(array.pools[0]), array, generator))
    return disturb_bytes(data, _draw_noise(generator, array.size, array)) if array.mask and array.size else data


def _draw_pieces(pool: bytes, array: InputArray, generator: random.Random) -> Iterator[bytes]:
    """Entries of the pool from a random one on; rows that belong together are turned."""
    missing, units = array.size, max(1, len(pool) // array.unit)
    while missing > 0:
        start = int(generator.random() * units) * array.unit
        piece = pool[start : start + (array.unit if array.columns else missing)]
        if array.columns:
            turn = int(generator.random() * array.columns) * (array.unit // array.columns)
            piece = piece[turn:] + piece[:turn]
        yield piece[:missing]
        missing -= len(piece)


def _draw_noise(generator: random.Random, size: int, array: InputArray) -> bytes:
    """Bits within an array's mask."""
    entry = (array.mask & _WORD).to_bytes(8, "little")[: array.width]
    mask = int.from_bytes(entry * (size // array.width), "little")
    return (generator.getrandbits(8 * size) & mask).to_bytes(size, "little")


def draw_noises(arrays: Sequence[InputArray], seed: int) -> list[bytes]:
    """Of each array, which calls use from any place on."""
    return [
        _draw_noise(random.Random(f"{seed}:noise:{place}"), 2 * _STEP, array) if array.mask else b""
        for place, array in enumerate(arrays)
    ]


def disturb_bytes(data: bytes, noise: bytes) -> bytes:
    """Exclusive or."""
    return (int.from_bytes(data, "little") ^ int.from_bytes(noise, "little")).to_bytes(len(data), "little")


def hash_arrays(arrays: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(NUMBER.pack(len(array)))
        digest.update(array)
    return digest.hexdigest()


# -- the inputs of calls


class InputMixer:
    """Mixes inputs of draws; each array of a draw as bytes."""

    def __init__(
        self, layout: SlotLayout, arrays: Sequence[InputArray], draws: Sequence[Any], noises: Sequence[bytes] = ()
    ) -> None:
        """`noises`: of `draw_noises`; (): nothing is disturbed."""
        self.layout, self.arrays, self.draws = layout, arrays, draws
        self._noises = noises or [b""] * len(arrays)
        self._is_mixing = any(array.is_fresh for array in arrays)

    @property
    def most_calls(self) -> int | None:
        """Of a side in one process, so that no inputs come twice; None: as many as there are."""
        return None if self._is_mixing else len(self.draws)

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
            for place, array in enumerate(self.arrays):
                begin = slot * self.layout.stride + self.layout.places[place]
                self.write_array(memory[begin : begin + array.size], place, recipe)
            if slot in turn.poisoned:
                for output in self.layout.list_outputs(slot):
                    memory[output] = bytes((POISON,)) * (output.stop - output.start)
            if slot in turn.checked:
                recipes[slot] = recipe
        return recipes

    def read_outputs(self, memory: memoryview, slot: int) -> list[bytes]:
        return [bytes(memory[place]) for place in self.layout.list_outputs(slot)]

    def mix_inputs(self, recipe: Recipe) -> list[bytes]:
        """The arrays of a recipe."""
        arrays = [bytearray(array.size) for array in self.arrays]
        for place, array in enumerate(arrays):
            self.write_array(memoryview(array), place, recipe)
        return [bytes(array) for array in arrays]

    def draw_recipe(self, generator: random.Random, call: int = 0) -> Recipe:
        """Of two different draws, each with an entry of its own at least; or the draw of this call."""
        if not self._is_mixing:
            whole = call % len(self.draws)
            return Recipe(whole, whole, tuple(array.size for array in self.arrays))
        first = int(generator.random() * len(self.draws))
        second = (first + 1 + int(generator.random() * (len(self.draws) - 1))) % len(self.draws)
        cuts = tuple(_draw_cut(generator, array) for array in self.arrays)
        return Recipe(first, second, cuts, generator.getrandbits(48))

    def write_array(self, target: memoryview, place: int, recipe: Recipe) -> None:
        """Put the array of a recipe there, piece by piece."""
        array, noise = self.arrays[place], self._noises[place]
        for begin, end, draw in list_parts(array, place, recipe):
            for number, start in enumerate(range(begin, end, _STEP)):
                source = memoryview(self.draws[draw][place])[start : min(end, start + _STEP)]
                piece = target[start : start + len(source)]
                if noise:
                    entry = recipe.novelty * (place + 1) + start + _STRIDE * number
                    first = entry * array.width % _STEP
                    self.disturb(piece, source, noise, first)
                else:
                    piece[:] = source

    def disturb(self, target: memoryview, source: memoryview, noise: bytes, first: int) -> None:
        """Copy with an exclusive or of the noise from a place on."""
        target[:] = disturb_bytes(bytes(source), noise[first : first + len(source)])


def list_parts(array: InputArray, place: int, recipe: Recipe) -> Iterator[tuple[int, int, int]]:
    """Begin and end in the array, and of which draw that is."""
    cut = recipe.cuts[place]
    yield 0, cut, recipe.first
    if cut < array.size:
        yield cut, array.size, recipe.second


def _draw_cut(generator: random.Random, array: InputArray) -> int:
    """Where an array goes on as that of the second draw."""
    units = array.size // array.unit if array.unit else 0
    return (1 + int(generator.random() * (units - 1))) * array.unit if units > 1 else array.size
