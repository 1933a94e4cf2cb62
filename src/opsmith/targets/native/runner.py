"""Calls a program's function in the candidate's process: on guarded arrays, several times, in differing surroundings.

Each array ends at a page that nobody may touch, and begins behind another. Inputs are read-only during a call. What
alignment leaves between an array and these pages holds a canary: written to beside an output it is damage, which is
answered in place of outputs; read beside any array it makes passes differ, since each has a canary of its own. So do
fresh memory of the heap, what outputs hold before a call, and the order of draws: all of it random (`surroundings`).
An ordinary pass calls the build that a user has, on arrays of the heap. Whether passes agree is for others to say:
nothing that this process says is believed.

A program that touches a guard kills the process. Runs on Linux only, and is imported everywhere; no torch, no numpy.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import random
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from opsmith.targets.native.layout import (
    Damage,
    DrawLayout,
    Overstaffing,
    Pass,
    TrialLayout,
    read_inputs,
    write_damage,
    write_outputs,
    write_overstaffing,
)
from opsmith.targets.native.signature import FUNCTION
from opsmith.targets.native.surroundings import draw_junk, draw_left_bytes, draw_old_output, repeat_tile
from opsmith.timing.inputs import ALIGNMENT

ORDINARY_CALLS = 3  # of each draw, as a user calls a function
DELAYS = 24  # of threads during one call, before stores, and as many behind loads
ENTRIES = 6  # of functions during one call, that a thread is late at
_ENTRY = slice(24, 32)  # of the head of a file of the ELF format: where `opsmith_entry` lies
_LINK_MAP = 2  # RTLD_DI_LINKMAP of dlfcn.h
_NOBODY, _READABLE, _WRITABLE = 0, 1, 3  # PROT_ of mman.h
_LOCAL = 2  # RTLD_NOW | RTLD_LOCAL of dlfcn.h
_PRIVATE = 0x22  # MAP_PRIVATE | MAP_ANONYMOUS


def run_artefacts(artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. Raises OSError where an artefact cannot be loaded."""
    layout, arrays = read_inputs(memoryview(inputs))
    outputs: list[bytes] = []
    source = random.Random(f"{layout.seed} {_hash_artefacts(tuple(artefacts.values()))}")
    with ExitStack() as stack:
        memory = {draw: _Memory(draw, stack) for draw in dict.fromkeys(layout.draws)}
        scenes = [_Scene(memory[draw], views) for draw, views in zip(layout.draws, arrays, strict=True)]
        trial = _TrialRun(layout, scenes, source)
        for number, pass_ in enumerate(layout.passes):
            rows = trial.run_pass(_load_library(artefacts[pass_.variant]), pass_, number)
            if isinstance(rows, Damage):
                return write_damage(rows)
            if isinstance(rows, Overstaffing):
                return write_overstaffing(rows)
            outputs += rows
    return write_outputs(outputs)


@cache
def _hash_artefacts(paths: tuple[Path, ...]) -> str:
    """Of the program: with it what surroundings hold is drawn anew."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@dataclass
class _TrialRun:
    """The passes over a trial."""

    layout: TrialLayout
    scenes: Sequence[_Scene]
    source: random.Random
    first: dict[int, list[bytes]] = field(default_factory=dict)  # outputs of the first pass, by draw

    def run_pass(self, library: _Library, pass_: Pass, number: int) -> list[bytes] | Damage | Overstaffing:
        """The outputs of all draws, in the order of the draws."""
        order = range(len(self.scenes))
        rows: dict[int, list[bytes]] = {}
        self._prepare_heap(library, pass_)
        canary, poison = (draw_junk(self.source, kind) for kind in (pass_.canary, pass_.poison))
        for draw in reversed(order) if pass_.is_reversed else order:
            memory = self.scenes[draw].memory
            outputs = self._draw_outputs(draw) if pass_.has_old_outputs else [poison] * len(memory.outputs)
            if pass_.is_ordinary:
                rows[draw] = self.scenes[draw].call_ordinary(library, outputs)
                continue
            self.scenes[draw].prepare(canary, outputs)
            library.call_function(memory.arguments)
            if library.asked > self.layout.threads:
                return Overstaffing(number, draw, library.asked)
            for output, region in enumerate(memory.outputs):
                place = region.find_damage()
                if place is not None:
                    return Damage(number, draw, output, *place)
            rows[draw] = [region.read_array() for region in memory.outputs]
        self.first = self.first or rows
        return [output for draw in order for output in rows[draw]]

    def _prepare_heap(self, library: _Library, pass_: Pass) -> None:
        arrays = [view for scene in self.scenes for view in scene.views]
        junk = draw_left_bytes(self.source, arrays) if pass_.has_old_heap else draw_junk(self.source, pass_.heap)
        library.prepare(junk, self.layout.threads, self.source)

    def _draw_outputs(self, draw: int) -> list[bytes]:
        """What they hold that another call has left."""
        others = [row for number, row in self.first.items() if number != draw]
        return [
            draw_old_output(self.source, right, [row[place] for row in others if len(row[place]) == len(right)])
            for place, right in enumerate(self.first[draw])
        ]


# -- the program


class _State(ctypes.Structure):
    """What a build with hooks shares with us: `variants`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("junk", "size", "place")),
        *((name, ctypes.c_uint) for name in ("threads", "asked", "seed")),
        *((name, ctypes.c_int) for name in ("stores", "loads", "entries")),
    )


class _Library:
    """A loaded artefact."""

    def __init__(self, path: Path) -> None:
        os.environ["OMP_WAIT_POLICY"] = "passive"  # on a busy machine threads that spin wait for each other's turns
        self._library = ctypes.CDLL(str(path), mode=_LOCAL)
        self._function = self._library[FUNCTION]
        self._function.restype = None
        self._state = self._find_state(path)
        self._junk = b""
        self._set_threads = getattr(self._library, "omp_set_num_threads", None)  # absent: it starts no threads

    def _find_state(self, path: Path) -> _State | None:
        """None: the build has no hooks."""
        with path.open("rb") as file:
            (entry,) = struct.unpack("<Q", file.read(_ENTRY.stop)[_ENTRY])
        if not entry:
            return None
        place = ctypes.c_void_p()
        _check_result(_find_libc().dlinfo(ctypes.c_void_p(self._library._handle), _LINK_MAP, ctypes.byref(place)))
        base = ctypes.c_uint64.from_address(place.value or 0).value
        state = ctypes.CFUNCTYPE(ctypes.c_void_p)(base + entry)()
        return _State.from_address(state)

    @property
    def asked(self) -> int:
        """The most threads that it asked a team for, where those are more than it has."""
        return self._state.asked if self._state is not None else 0

    def prepare(self, junk: bytes, threads: int, source: random.Random) -> None:
        if threads > 1 and self._set_threads is not None:
            self._set_threads(threads)
        if self._state is not None:
            self._junk = junk
            self._state.junk, self._state.size = ctypes.cast(ctypes.c_char_p(junk), ctypes.c_void_p), len(junk)
            self._state.place, self._state.threads = source.randrange(len(junk)) & ~15, threads
            self._state.seed = source.getrandbits(32)

    def call_function(self, arguments: Sequence[object]) -> None:
        if self._state is not None:
            self._state.stores = self._state.loads = DELAYS
            self._state.entries = ENTRIES
        self._function(*arguments)


@cache
def _load_library(path: Path) -> _Library:
    """Once a process: what the program keeps between calls stays between trials."""
    return _Library(path)


# -- its memory


class _Memory:
    """The arrays of draws of one layout, and the arguments that they make with its numbers."""

    def __init__(self, layout: DrawLayout, stack: ExitStack) -> None:
        self.inputs = [stack.enter_context(_Region(size)) for size in layout.inputs]
        self.outputs = [stack.enter_context(_Region(size)) for size in layout.outputs]
        addresses = (ctypes.c_void_p(region.start) for region in (*self.inputs, *self.outputs))
        self.arguments = [*addresses, *map(_make_number, layout.numbers)]


@dataclass(frozen=True)
class _Scene:
    """The numbers of one draw, and the memory that they are put into for a call."""

    memory: _Memory
    views: Sequence[memoryview]

    def prepare(self, canary: bytes, outputs: Sequence[bytes]) -> None:
        for region, view in zip(self.memory.inputs, self.views, strict=True):
            region.protect(_WRITABLE)
            region.fill_slack(canary)
            region.write_array(view)
            region.protect(_READABLE)
        for region, data in zip(self.memory.outputs, outputs, strict=True):
            region.fill_slack(canary)
            region.fill_array(data)

    def call_ordinary(self, library: _Library, outputs: Sequence[bytes]) -> list[bytes]:
        """As a user calls it: on arrays of the heap that are used again. What the last call left."""
        libc = _find_libc()
        sizes = [*map(len, self.views), *(region.size for region in self.memory.outputs)]
        places = [libc.aligned_alloc(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT) for size in sizes]
        try:
            if not all(places):
                raise MemoryError(f"no {sum(sizes)} bytes for a user's arrays")
            arrays = [(ctypes.c_char * size).from_address(place) for place, size in zip(places, sizes, strict=True)]
            numbers = self.memory.arguments[len(sizes) :]
            for _ in range(ORDINARY_CALLS):
                olds = (repeat_tile(old, size) for old, size in zip(outputs, sizes[len(self.views) :], strict=True))
                held: list[bytes | memoryview] = [*self.views, *olds]
                for array, data in zip(arrays, held, strict=True):
                    memoryview(array).cast("B")[:] = memoryview(data)
                library.call_function([*map(ctypes.c_void_p, places), *numbers])
            return [bytes(array) for array in arrays[len(self.views) :]]
        finally:
            for place in places:
                libc.free(ctypes.c_void_p(place))


def _make_number(value: float) -> ctypes.c_int64 | ctypes.c_double:
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value)


@dataclass
class _Region:
    """Pages of their own for one array, which ends with them but for what alignment leaves, between two guards."""

    size: int

    def __post_init__(self) -> None:
        self._before = self._behind = b""  # what slack holds
        used = -(-self.size // ALIGNMENT) * ALIGNMENT
        self._length = -(-used // mmap.PAGESIZE) * mmap.PAGESIZE
        self._mapping = _map_memory(self._length + 2 * mmap.PAGESIZE)
        self._low = self._mapping + mmap.PAGESIZE
        self.start = self._low + self._length - used
        self._end = self.start + self.size
        self._high = self._low + self._length
        self.protect(_WRITABLE)

    def __enter__(self) -> _Region:
        return self

    def __exit__(self, *_: object) -> None:
        _find_libc().munmap(self._mapping, self._length + 2 * mmap.PAGESIZE)

    def protect(self, rights: int) -> None:
        _check_result(_find_libc().mprotect(self._low, self._length, rights))

    def fill_slack(self, tile: bytes) -> None:
        self._before, self._behind = (repeat_tile(tile, size) for size in self._slack)
        ctypes.memmove(self._low, self._before, len(self._before))
        ctypes.memmove(self._end, self._behind, len(self._behind))

    @property
    def _slack(self) -> tuple[int, int]:
        """Bytes before and behind the array."""
        return self.start - self._low, self._high - self._end

    def fill_array(self, tile: bytes) -> None:
        for place in range(0, self.size, len(tile)):
            ctypes.memmove(self.start + place, tile, min(len(tile), self.size - place))

    def write_array(self, data: memoryview) -> None:
        array = (ctypes.c_char * self.size).from_address(self.start)
        memoryview(array).cast("B")[:] = data

    def read_array(self) -> bytes:
        return ctypes.string_at(self.start, self.size)

    def find_damage(self) -> tuple[bool, int] | None:
        """Whether it is behind the array, and how many bytes from there; the nearest one."""
        before, behind = self._slack
        sides = (
            (True, ctypes.string_at(self._end, behind), self._behind),
            (False, ctypes.string_at(self._low, before)[::-1], self._before[::-1]),
        )
        for is_behind, slack, own in sides:
            if slack != own:
                return is_behind, next(place for place, value in enumerate(slack) if value != own[place])
        return None


@cache
def _find_libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.free.restype = None
    return libc


def _map_memory(size: int) -> int:
    """Addresses that nobody may touch yet. Raises OSError."""
    address = _find_libc().mmap(None, size, _NOBODY, _PRIVATE, -1, 0)
    _check_result(-1 if address in (None, ctypes.c_void_p(-1).value) else 0)
    return int(address)


def _check_result(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
