"""Calls a program's function in the candidate's process: on guarded arrays, several times, in differing surroundings.

Each array ends at a page that nobody may touch, and begins behind another. Inputs are read-only during a call. What
alignment leaves between an array and these pages holds a canary: written to beside an output it is damage, which is
answered in place of outputs; read beside any array it makes passes differ, since each has a canary of its own. So do
fresh memory of the heap, what outputs hold before a call, and the order of draws. Whether passes agree is for others to
say: nothing that this process says is believed.

A program that touches a guard kills the process. Runs on Linux only, and is imported everywhere; no torch, no numpy.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.targets.native.layout import (
    Damage,
    DrawLayout,
    Pass,
    choose_passes,
    read_inputs,
    write_damage,
    write_outputs,
)
from opsmith.targets.native.signature import FUNCTION
from opsmith.timing.inputs import ALIGNMENT

HEAP_FILL = "opsmith_heap_fill"  # the variable of a build that says what fresh memory holds
ALLOW_DELAYS = "opsmith_allow_delays"  # its function that begins a call, where threads are delayed
_NOBODY, _READABLE, _WRITABLE = 0, 1, 3  # PROT_ of mman.h
_LOCAL = 2  # RTLD_NOW | RTLD_LOCAL of dlfcn.h
_PRIVATE = 0x22  # MAP_PRIVATE | MAP_ANONYMOUS


def run_artefacts(artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. Raises OSError where an artefact cannot be loaded."""
    layout, arrays = read_inputs(memoryview(inputs))
    passes = choose_passes(layout.threads)
    outputs: list[bytes] = []
    with ExitStack() as stack:
        memory = {draw: _Memory(draw, stack) for draw in dict.fromkeys(layout.draws)}
        scenes = [_Scene(memory[draw], views) for draw, views in zip(layout.draws, arrays, strict=True)]
        for number, pass_ in enumerate(passes):
            library = _load_library(artefacts[pass_.variant])
            library.prepare(pass_.heap, layout.threads)
            rows = _run_pass(library, pass_, number, scenes)
            if isinstance(rows, Damage):
                return write_damage(rows)
            outputs += rows
    return write_outputs(outputs)


def _run_pass(library: _Library, pass_: Pass, number: int, scenes: Sequence[_Scene]) -> list[bytes] | Damage:
    """The outputs of all draws, in the order of the draws."""
    order = range(len(scenes))
    rows: dict[int, list[bytes]] = {}
    for draw in reversed(order) if pass_.is_reversed else order:
        memory = scenes[draw].memory
        scenes[draw].prepare(pass_)
        library.call_function(memory.arguments)
        for output, region in enumerate(memory.outputs):
            place = region.find_damage(pass_.canary)
            if place is not None:
                return Damage(number, draw, output, *place)
        rows[draw] = [region.read_array() for region in memory.outputs]
    return [output for draw in order for output in rows[draw]]


# -- the program


class _Library:
    """A loaded artefact."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path), mode=_LOCAL)
        self._function = self._library[FUNCTION]
        self._function.restype = None
        self._heap_fill = ctypes.c_int.in_dll(self._library, HEAP_FILL)
        self._allow_delays = getattr(self._library, ALLOW_DELAYS, None)
        self._set_threads = getattr(self._library, "omp_set_num_threads", None)  # absent: it starts no threads

    def prepare(self, heap: int, threads: int) -> None:
        self._heap_fill.value = heap
        if threads > 1 and self._set_threads is not None:
            self._set_threads(threads)

    def call_function(self, arguments: Sequence[object]) -> None:
        if self._allow_delays is not None:
            self._allow_delays()
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

    def prepare(self, pass_: Pass) -> None:
        for region, view in zip(self.memory.inputs, self.views, strict=True):
            region.protect(_WRITABLE)
            region.fill_slack(pass_.canary)
            region.write_array(view)
            region.protect(_READABLE)
        for region in self.memory.outputs:
            region.fill_slack(pass_.canary)
            region.fill_array(pass_.poison)


def _make_number(value: float) -> ctypes.c_int64 | ctypes.c_double:
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value)


@dataclass
class _Region:
    """Pages of their own for one array, which ends with them but for what alignment leaves, between two guards."""

    size: int

    def __post_init__(self) -> None:
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

    def fill_slack(self, byte: int) -> None:
        ctypes.memset(self._low, byte, self.start - self._low)
        ctypes.memset(self._end, byte, self._high - self._end)

    def fill_array(self, byte: int) -> None:
        ctypes.memset(self.start, byte, self.size)

    def write_array(self, data: memoryview) -> None:
        array = (ctypes.c_char * self.size).from_address(self.start)
        memoryview(array).cast("B")[:] = data

    def read_array(self) -> bytes:
        return ctypes.string_at(self.start, self.size)

    def find_damage(self, byte: int) -> tuple[bool, int] | None:
        """Whether it is behind the array, and how many bytes from there; the nearest one."""
        behind = ctypes.string_at(self._end, self._high - self._end)
        before = ctypes.string_at(self._low, self.start - self._low)
        for is_behind, slack in ((True, behind), (False, before[::-1])):
            if slack.count(byte) < len(slack):
                return is_behind, next(_list_changed(slack, byte))
        return None


def _list_changed(slack: bytes, byte: int) -> Iterator[int]:
    return (place for place, value in enumerate(slack) if value != byte)


@cache
def _find_libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
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
