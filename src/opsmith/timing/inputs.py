"""Slots and what is put there: where the arrays of a call lie, and inputs that follow from seeds and never come twice.

Inputs are made of a few draws, and no row of them comes again. Entries that are drawn independently of each other are
taken from anywhere in two draws: of a normal distribution as weighted sums of both, which are distributed as each is;
otherwise each from one or the other, with the bits that its `mask` allows drawn anew. Rows that belong together are
taken in any order and with their entries in another one. All other arrays are those of one draw. Where nothing can be
drawn anew, every call of a side has a draw of its own. What is put into a slot is remembered on our side as a recipe:
what the process makes of its memory is not asked.

The standard library of Python 3.8 or newer and nothing of ours, as `engine`. What works on entries plugs in
(`FreshMixer`): numpy here, a library of ours on machines that have Python alone.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.timing.engine import NUMBER, Turn

ALIGNMENT = 64  # of every array that a program is given
POISON = 0xFF  # NaN in every float, -1 in every whole number
_PAGE = 4096
_GAP = 5 * ALIGNMENT  # arrays of equal sizes would begin at equal places of their pages, which slows every store
_PIECE = 1 << 15  # entries of an array that are taken from one place of each draw; caches hold them
_NOISE = 1 << 19  # entries of noise, from any of which on they may be used, and a piece more
_ORDERS = 16  # of the columns of rows
_WORD = (1 << 64) - 1
_GOLD = 0x9E3779B97F4A7C15  # of SplitMix64
_FLAGS = bytes(255 * (byte & 1) for byte in range(256))


@dataclass(frozen=True)
class InputArray:
    """One input: how large it is, and what of it may be drawn anew."""

    size: int  # bytes
    width: int  # of an entry
    unit: int = 0  # bytes that must come from one draw together; 0: the whole array
    mask: int = 0  # bits of each entry that may be any
    columns: int = 0  # entries of a row, whose order may be any; 0: none
    sums: str = ""  # the type of entries that are drawn from a normal distribution; "": they are not
    leader: int = -1  # the array from whose entries its own follow, one from one; -1: none
    pools: tuple[str, ...] = ()  # files that draws are made of elsewhere: of some entries, or of the whole of each draw

    @property
    def is_fresh(self) -> bool:
        """Whether every part of it is another one in every call."""
        return bool(self.mask or self.columns)

    @property
    def is_loose(self) -> bool:
        """Whether its entries know nothing of each other."""
        return 0 < self.unit == self.width and self.size > 0


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


@dataclass(frozen=True)
class ArrayNoise:
    """What chance an array of each call has, from any place on."""

    choice: bytes = b""  # entries of all bits or none
    bits: bytes = b""  # within its mask
    orders: tuple[tuple[int, ...], ...] = ()  # of columns


def draw_noises(arrays: Sequence[InputArray], seed: int) -> list[ArrayNoise]:
    """Of each array."""
    return [
        _draw_array_noise(array, random.Random(f"{seed}:noise:{place if array.leader < 0 else array.leader}"))
        for place, array in enumerate(arrays)
    ]


def _draw_array_noise(array: InputArray, generator: random.Random) -> ArrayNoise:
    if array.columns:
        return ArrayNoise(
            orders=tuple(tuple(generator.sample(range(array.columns), array.columns)) for _ in range(_ORDERS))
        )
    if not array.is_loose or array.sums:
        return ArrayNoise()
    count = _NOISE + _PIECE
    flags = generator.getrandbits(8 * count).to_bytes(count, "little").translate(_FLAGS)
    choice = bytearray(count * array.width)
    for byte in range(array.width):
        choice[byte :: array.width] = flags
    return ArrayNoise(bytes(choice), _draw_noise(generator, len(choice), array) if array.mask else b"")


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
    """Mixes inputs of draws, each array of a draw as bytes: it begins as that of one and goes on as that of another."""

    def __init__(self, layout: SlotLayout, arrays: Sequence[InputArray], draws: Sequence[Any]) -> None:
        self.layout, self.arrays, self.draws = layout, arrays, draws
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
        """Put the array of a recipe there."""
        for begin, end, draw in list_parts(self.arrays[place], place, recipe):
            target[begin:end] = memoryview(self.draws[draw][place])[begin:end]


class FreshMixer(InputMixer):
    """Mixes entry by entry and row by row, so that neither comes again together with its neighbours."""

    def __init__(
        self, layout: SlotLayout, arrays: Sequence[InputArray], draws: Sequence[Any], noises: Sequence[ArrayNoise]
    ) -> None:
        super().__init__(layout, arrays, draws)
        self._pools = [
            [
                self.prepare_pool(array, bytes(data) + bytes(data[: _PIECE * array.width])) if array.is_loose else data
                for array, data in zip(arrays, draw)
            ]
            for draw in (draws if self._is_mixing else ())
        ]
        self.noises = list(map(self.prepare_noise, arrays, noises))

    def write_array(self, target: memoryview, place: int, recipe: Recipe) -> None:
        array = self.arrays[place]
        if not self._is_mixing or not array.size or not (array.is_loose or array.columns):
            super().write_array(target, place, recipe)
            return
        pools = [self._pools[draw][place] for draw in (recipe.first, recipe.second)]
        if array.columns:
            self.reorder_rows(target, place, pools, scatter(recipe.novelty, place))
            return
        group = place if array.leader < 0 else array.leader
        units, size = array.size // array.width, _PIECE * array.width
        for number, start in enumerate(range(0, array.size, size)):
            chances = [scatter(recipe.novelty, group, number, which) for which in range(4)]
            starts = (chances[0] % units, chances[1] % units)
            piece = target[start : start + size]
            if array.sums:
                self.add_entries(piece, place, pools, starts, weigh_sum(chances[2]))
            else:
                self.choose_entries(piece, place, pools, starts, (chances[2] % _NOISE, chances[3] % _NOISE))

    def prepare_pool(self, array: InputArray, data: bytes) -> Any:
        """Of a draw's array, a piece of which begins again behind its end."""
        return data

    def prepare_noise(self, array: InputArray, noise: ArrayNoise) -> Any:
        return noise

    def add_entries(
        self, target: memoryview, place: int, pools: Sequence[Any], starts: Sequence[int], weights: Sequence[float]
    ) -> None:
        """Entries of both pools from their starts on, each times its weight, rounded where numbers are and once more
        to the array's type."""
        raise NotImplementedError

    def choose_entries(
        self, target: memoryview, place: int, pools: Sequence[Any], starts: Sequence[int], noises: Sequence[int]
    ) -> None:
        """Entries of one pool or the other from their starts on, by the choice from an entry on, and an exclusive or
        with bits from another one on."""
        raise NotImplementedError

    def reorder_rows(self, target: memoryview, place: int, pools: Sequence[Any], seed: int) -> None:
        """Any rows of both draws, as `scatter` chooses them; column c of a row has what stands at order[(a c + b) mod
        columns], where a has no divisor in common with their number."""
        raise NotImplementedError


def scatter(*words: int) -> int:
    """64 bits that follow from numbers (SplitMix64)."""
    state = 0
    for word in words:
        state = (state ^ word) + _GOLD & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state


def weigh_sum(chance: int) -> tuple[float, float]:
    """Two weights whose squares add to 1, neither of them small; the same on every machine.

    >>> weigh_sum(0)
    (0.8823529411764706, 0.47058823529411764)
    """
    tangent = 0.25 + (chance >> 34) / (1 << 31)
    return (1 - tangent * tangent) / (1 + tangent * tangent), 2 * tangent / (1 + tangent * tangent)


def list_steps(columns: int) -> list[int]:
    """Numbers that have no divisor in common with that of columns."""
    return [step for step in range(1, columns + 1) if math.gcd(step, columns) == 1]


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
