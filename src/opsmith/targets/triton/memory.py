"""The arrays of a draw as interpreted instances of a kernel see them: each in a range of addresses of its own.

Addresses are no machine's: whatever a program computes, nothing but entries of these arrays is read or written.
Accesses outside of an array, writes to inputs, and entries that one instance writes while another one of the same
launch reads or writes them are findings, with their line.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.ma  # np.unique imports it, and a confined process cannot
from numpy.typing import NDArray

from opsmith.targets.gpu.plan import INPUT

SPAN = 1 << 40  # addresses from one array's first entry to the next one's
PROGRAM = "program.py"
_NOBODY, _SEVERAL = -1, -2
_POISON = 0x7B  # of lanes that a mask leaves out: large numbers of every width, outside of every array

Lanes = NDArray[Any]
Places = NDArray[np.int64]


class TritonFinding(Exception):
    """What a program does wrong; its text is the finding, and begins with `line N: `."""

    def __init__(self, words: str, expected: str = "", remedy: str = "", error: Exception | None = None) -> None:
        """`error`: what Python raised there."""
        expected, remedy = expected and f"; expected {expected}", remedy and f"; try: {remedy}"
        super().__init__(f"line {find_line(error)}: {words}{expected}{remedy}")


def find_line(error: Exception | None = None) -> int:
    """Of the program, in the innermost of its functions that is being run, or that an error was raised in."""
    if error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        return [1, *(line for frame, line in frames if frame.f_code.co_filename == PROGRAM)][-1]
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename != PROGRAM:
        frame = frame.f_back
    return int(frame.f_lineno) if frame is not None else 1


@dataclass(eq=False)
class WatchedArray:
    """One array, and which instances came to its entries in the launch that is run."""

    name: str
    kind: str  # as plans say: input, output, workspace
    entry: int  # bytes
    data: NDArray[np.uint8]
    start: int  # address
    writers: NDArray[np.int32] = field(init=False)  # numbers of instances
    readers: NDArray[np.int32] = field(init=False)  # without having synchronised
    changers: NDArray[np.int32] = field(init=False)  # by atomics
    lines: NDArray[np.int32] = field(init=False)  # of those who wrote

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A launch begins."""
        count = 0 if self.kind == INPUT else len(self.data) // self.entry
        self.writers, self.readers, self.changers = (np.full(count, _NOBODY, np.int32) for _ in range(3))
        self.lines = np.zeros(count, np.int32)

    @property
    def state(self) -> tuple[Lanes, ...]:
        return self.data, self.writers, self.readers, self.changers, self.lines


class Memory:
    """All arrays, and the instances that are being run side by side."""

    def __init__(self) -> None:
        self.arrays: list[WatchedArray] = []
        self.kernel, self.grid = "", (1, 1, 1)
        self.numbers = np.zeros(1, np.int32)  # of the instances; the first axis of all data
        self.has_changed = False  # by an atomic operation, some array
        self.has_synchronised = False  # by an atomic operation: they may see what others wrote

    def add_array(self, name: str, kind: str, entry: int, data: bytes | memoryview) -> WatchedArray:
        copy = np.frombuffer(bytes(data), np.uint8).copy()
        array = WatchedArray(name, kind, entry, copy, (len(self.arrays) + 1) * SPAN)
        self.arrays.append(array)
        return array

    def begin_launch(self, kernel: str, grid: tuple[int, int, int]) -> None:
        self.kernel, self.grid = kernel, grid
        for array in self.arrays:
            array.forget()

    def begin_instances(self, numbers: Sequence[int]) -> None:
        self.numbers, self.has_synchronised = np.array(numbers, np.int32), False

    def find_positions(self, axis: int) -> NDArray[np.int32]:
        """In the grid, of the instances."""
        x, y, _ = self.grid
        return ((self.numbers, self.numbers // x, self.numbers // x // y)[axis] % self.grid[axis]).astype(np.int32)

    def keep_state(self) -> Callable[[], None]:
        """What sets all arrays back to what they are now."""
        copies = [[data.copy() for data in array.state] for array in self.arrays if array.kind != INPUT]

        def restore() -> None:
            written = (array for array in self.arrays if array.kind != INPUT)
            for array, olds in zip(written, copies, strict=True):
                for data, old in zip(array.state, olds, strict=True):
                    data[:] = old

        return restore

    # -- accesses: pointers and masks have the instances as their first axis, of size 1 where it makes no difference

    def load(self, pointers: Lanes, mask: Lanes, type_: np.dtype[Any], fill: Lanes | None) -> Lanes:
        """Entries; where the mask is false `fill`, and poison where there is none."""
        shape = np.broadcast_shapes(pointers.shape, mask.shape, () if fill is None else fill.shape)
        if fill is not None:
            result = np.broadcast_to(fill, shape).astype(type_)
        elif type_.kind == "b":
            result = np.ones(shape, type_)
        else:
            result = np.full((*shape, type_.itemsize), _POISON, np.uint8).view(type_).reshape(shape)
        for array, chosen, places, actors in self._find_places(pointers, mask, type_.itemsize, "reads", shape):
            if array.kind != INPUT and not self.has_synchronised:
                self._note_readers(array, places * type_.itemsize // array.entry, actors)
            result[chosen] = array.data.view(type_)[places]
        return result

    def store(self, pointers: Lanes, values: Lanes, mask: Lanes) -> None:
        shape = self.spread_shape(pointers, mask, values)
        values, size = np.broadcast_to(values, shape), values.dtype.itemsize
        for array, chosen, places, actors in self._find_places(pointers, mask, size, "writes", shape):
            entries = places * size // array.entry
            self._note_writers(array, entries, actors)
            stored, view = values[chosen], array.data.view(values.dtype)
            view[places] = stored
            wrong = np.flatnonzero(_bits(view[places]) != _bits(stored))
            if len(wrong):
                whose = self._name_instance(actors[wrong[0]])
                words = f"two lanes of {whose} write different values to {array.name}[{entries[wrong[0]]}]"
                raise TritonFinding(words, "an entry for each lane", "a mask that leaves one of them, or a reduction")

    def change(
        self, pointers: Lanes, mask: Lanes, type_: np.dtype[Any], change: Callable[[Lanes, Any], Lanes]
    ) -> Lanes:
        """What entries held before an atomic operation; `change`: of what some hold and the lanes that come to them,
        by their numbers in the result."""
        self.has_synchronised = self.has_changed = True
        shape = self.spread_shape(pointers, mask)
        result = np.zeros(shape, type_)
        for array, chosen, places, actors in self._find_places(pointers, mask, type_.itemsize, "changes", shape):
            entries = places * type_.itemsize // array.entry
            self._refuse_shared(array, entries, actors, array.writers, "changes", "writes")
            array.changers[entries], array.lines[entries] = actors, find_line()
            array.changers[entries[array.changers[entries] != actors]] = _SEVERAL
            view, before, lanes = array.data.view(type_), np.empty(len(places), type_), np.flatnonzero(chosen)
            if len(np.unique(places)) == len(places):
                before[:] = view[places]
                view[places] = change(view[places], lanes)
            else:
                for number, place in enumerate(places):  # one after another
                    before[number] = view[place]
                    view[place] = change(view[place], lanes[number])
            result[chosen] = before
        return result

    def spread_shape(self, *data: Lanes) -> tuple[int, ...]:
        """The shape of an access by every instance."""
        shape = np.broadcast_shapes(*(each.shape for each in data))
        return (len(self.numbers), *shape[1:])

    # -- places and findings

    def _find_places(
        self, pointers: Lanes, mask: Lanes, size: int, does: str, shape: tuple[int, ...]
    ) -> Iterator[tuple[WatchedArray, Lanes, Places, Lanes]]:
        """For each array that lanes come to: it, which lanes, the places of their entries, of `size` bytes, and the
        instances that they are of."""
        chosen = np.broadcast_to(mask, shape)
        addresses = np.broadcast_to(pointers, shape)[chosen].astype(np.int64)
        if not len(addresses):
            return
        whose = self.numbers if shape[0] == len(self.numbers) else np.array([_SEVERAL], np.int32)
        actors = np.broadcast_to(whose.reshape(-1, *[1] * (len(shape) - 1)), shape)[chosen]
        owners = (addresses + SPAN // 2) // SPAN - 1
        for owner in [owners[0]] if (owners == owners[0]).all() else np.unique(owners):
            is_own, lanes = owners == owner, chosen.copy()
            lanes[chosen] = is_own
            if not 0 <= owner < len(self.arrays):
                words = f"{self._name_instance(actors[is_own][0])} computes an address that is in no array"
                remedy = "a mask on the load that offsets come from"
                raise TritonFinding(words, "an array's pointer plus offsets", remedy)
            array = self.arrays[int(owner)]
            yield array, lanes, self._check_places(array, addresses[is_own], size, does, actors[is_own]), actors[is_own]

    def _check_places(self, array: WatchedArray, addresses: Places, size: int, does: str, actors: Lanes) -> Places:
        offsets = addresses - array.start
        outside = np.flatnonzero((offsets < 0) | (offsets + size > len(array.data)))
        if len(outside):
            first = actors[outside[0]]
            count = int((actors[outside] == first).sum())
            lanes = f"{count} lanes of " if count > 1 else ""
            entry, entries = int(offsets[outside[0]]) // array.entry, len(array.data) // array.entry
            words = f"{lanes}{self._name_instance(first)} {does} outside of {array.name}: entry {entry} of {entries}"
            raise TritonFinding(words, "entries from 0 on, below the array's size", "a mask: offsets < size")
        if array.kind == INPUT and does != "reads":
            words = f"{self._name_instance(actors[0])} {does} {array.name}[{offsets[0] // array.entry}], an input"
            raise TritonFinding(words, "inputs that are only read", "write to an output or a workspace")
        if (offsets % size).any():
            raise TritonFinding(f"{self._name_instance(actors[0])} {does} a part of an entry of {array.name}")
        return offsets // size

    def _note_readers(self, array: WatchedArray, entries: Places, actors: Lanes) -> None:
        self._refuse_shared(array, entries, actors, array.writers, "reads", "writes")
        before = array.readers[entries]
        array.readers[entries] = np.where((before == _NOBODY) | (before == actors), actors, _SEVERAL)
        array.readers[entries[array.readers[entries] != actors]] = _SEVERAL

    def _note_writers(self, array: WatchedArray, entries: Places, actors: Lanes) -> None:
        if not self.has_synchronised:
            self._refuse_shared(array, entries, actors, array.writers, "writes", "writes too")
            self._refuse_shared(array, entries, actors, array.changers, "writes", "changes")
            self._refuse_shared(array, entries, actors, array.readers, "writes", "reads")
        array.writers[entries], array.lines[entries] = actors, find_line()
        if not self.has_synchronised:
            self._refuse_shared(array, entries, actors, array.writers, "writes", "writes too")

    def _refuse_shared(
        self, array: WatchedArray, entries: Places, actors: Lanes, marks: NDArray[np.int32], does: str, did: str
    ) -> None:
        holders = marks[entries]
        wrong = np.flatnonzero((holders != _NOBODY) & (holders != actors))
        if not len(wrong):
            return
        entry, holder = int(entries[wrong[0]]), int(holders[wrong[0]])
        place = f" at line {array.lines[entry]}" if did != "reads" else ""
        whose = self._name_instance(actors[wrong[0]])
        words = f"{whose} {does} {array.name}[{entry}], which {self._name_instance(holder, False)} {did}{place}"
        is_load = "reads" in (does, did)
        expected = "entries that one instance alone comes to in a launch, where one writes them"
        remedy = "two launch lines" if is_load else "give each entry to one instance, or tl.atomic_add for sums"
        raise TritonFinding(words, expected, remedy)

    def _name_instance(self, number: int, is_full: bool = True) -> str:
        x, y, _ = self.grid
        if number == _SEVERAL:
            return f"every instance of {self.kernel}" if is_full else "another instance"
        place = f"instance ({number % x}, {number // x % y}, {number // x // y})"
        return f"{place} of {self.kernel}" if is_full else place


def _bits(values: Lanes) -> Lanes:
    """The pattern of each entry, as one number."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
