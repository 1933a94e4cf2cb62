"""How programs of compiled languages are called in a loop: on slots in shared memory, by a C file of ours (`driver`).

Where the package is not, the stand-alone runner has this module do it (`CONVENTION`), so that it needs the standard
library of Python 3.8 or newer and nothing else: processes apart call the programs, inputs are mixed by a library of
ours, and two clocks are read, as on this machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import platform
import secrets
import select
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from opsmith.timing.carried import (
    CarriedArrays,
    OutputFiles,
    PackedFolder,
    choose_checks,
    die_with,
    explain_status,
    kill_group,
    read_protocol,
    start_process,
)
from opsmith.timing.engine import (
    NUMBER,
    SIDES,
    SLOT_MEMORY,
    PairTimes,
    Side,
    TimingFault,
    Turn,
    TurnTimer,
    count_processors,
    measure_apart,
    measure_pairs,
    plan_pairs,
)
from opsmith.timing.inputs import (
    ArrayNoise,
    FreshMixer,
    InputArray,
    InputMixer,
    Recipe,
    draw_noises,
    expand_draw,
    hash_arrays,
    list_steps,
    read_arrays,
)

PROGRAM, DRIVER = "program", "driver"  # artefacts of a build that is timed
MIXER = "mixer"  # and of one that is carried to another machine
TIME_CALLS = "opsmith_time_calls"  # their functions
ADD, CHOOSE, REORDER = "opsmith_add_entries", "opsmith_choose_entries", "opsmith_reorder_rows"
_SUMMED = ("fp32", "fp64", "fp16", "bf16")  # by the numbers that the first of them has for types
PROCESSOR_CLOCK, WALL_CLOCK = 2, 1  # CLOCK_PROCESS_CPUTIME_ID and CLOCK_MONOTONIC of time.h
_LOCAL = 2  # RTLD_NOW | RTLD_LOCAL of dlfcn.h
_LOAD_S = 60.0

if TYPE_CHECKING:
    Record = Mapping[str, Any]


class _Number(ctypes.Union):
    _fields_ = (("whole", ctypes.c_int64), ("real", ctypes.c_double))


class ProgramCaller:
    """The loaded programs and the loop that calls them."""

    def __init__(self, request: Record, paths: Mapping[str, str], memory: Any) -> None:
        """`request`: `function`, the name of what is called; `sides`, the programs by the numbers that messages have
        for them; `places`, `numbers` and `threads`. `paths`: of artefacts, in the order in which they are loaded.
        Raises OSError or AttributeError where one cannot be loaded."""
        files = dict(paths)
        self._driver = ctypes.CDLL(files.pop(DRIVER), mode=_LOCAL)[TIME_CALLS]
        self._driver.restype = ctypes.c_int64
        libraries = {name: ctypes.CDLL(path, mode=_LOCAL) for name, path in files.items()}
        for library in libraries.values() if request["threads"] > 1 else ():
            getattr(library, "omp_set_num_threads", int)(request["threads"])  # absent: it starts none
        self._programs = [
            ctypes.cast(libraries[name][request["function"]], ctypes.c_void_p) if name in libraries else None
            for name in request["sides"]
        ]
        self._view = ctypes.c_char.from_buffer(memory)  # which keeps it mapped
        self._memory = ctypes.addressof(self._view)
        self._places = (ctypes.c_int64 * len(request["places"]))(*request["places"])
        self._numbers = (_Number * max(1, len(request["numbers"])))(*map(_make_number, request["numbers"]))
        self._clock = WALL_CLOCK if request["threads"] > 1 else PROCESSOR_CLOCK

    def time_calls(self, message: bytes) -> int:
        """Nanoseconds of one call for each slot."""
        (side,) = NUMBER.unpack_from(message)
        count = len(message) // NUMBER.size - 1
        slots = (ctypes.c_int64 * count).from_buffer_copy(message, NUMBER.size)
        arguments = (slots, ctypes.c_int64(count), self._places, self._numbers, self._clock)
        elapsed: int = self._driver(self._programs[side], ctypes.c_void_p(self._memory), *arguments)
        return elapsed


def _make_number(value: float) -> _Number:
    return _Number(whole=value) if isinstance(value, int) else _Number(real=value)


# -- where the package is not


def serve_process(request: Record, answers: BinaryIO) -> None:
    """In the process that is timed: load what the request names, then call it on the slots of each message."""
    die_with(request["parent"])
    try:
        caller = ProgramCaller(request, request["paths"], mmap.mmap(request["memory"], 0))
    except (OSError, AttributeError) as error:
        sys.exit(str(error))
    answers.write(b"+")
    while len(head := sys.stdin.buffer.read(NUMBER.size)) == NUMBER.size:
        answers.write(NUMBER.pack(caller.time_calls(sys.stdin.buffer.read(NUMBER.unpack(head)[0]))))


class CallingProcess(TurnTimer):
    """Our end of a process that has loaded some sides and calls them on slots in shared memory."""

    def __init__(self, request: Record) -> None:
        """Raises TimingFault where it cannot load them."""
        self._process = start_process(__name__, request["memory"])
        self._send(json.dumps(request).encode() + b"\n")
        if self._receive(1, _LOAD_S) != b"+":
            raise TimingFault("it cannot be loaded here: " + self._explain_end())
        super().__init__(self._process.pid, request["threads"], request["stride"])

    def exchange_message(self, message: bytes, seconds: float) -> bytes:
        self._send(NUMBER.pack(len(message)) + message)
        return self._receive(NUMBER.size, seconds)

    def close(self) -> None:
        kill_group(self._process)

    def _send(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            raise TimingFault("the process in which it is timed has gone: " + self._explain_end())

    def _receive(self, size: int, seconds: float) -> bytes:
        fd, data, end = self._process.stdout.fileno(), b"", time.monotonic() + seconds
        while len(data) < size:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                self.close()
                raise TimingFault(f"no answer within {seconds:g} s: it was ended")
            piece = os.read(fd, size - len(data))
            if not piece:
                raise TimingFault("the process in which it is timed has gone: " + self._explain_end())
            data += piece
        return data

    def _explain_end(self) -> str:
        with contextlib.suppress(Exception):  # TimeoutExpired: it is ended then
            self._process.wait(2.0)
        self.close()
        words = self._process.stderr.read().decode(errors="replace").strip()
        return str((words.splitlines() or [explain_status(self._process.returncode)])[-1])[:500]


class LibraryMixer(FreshMixer):
    """Mixes inputs by a library of ours: Python takes 5 ns a byte and more."""

    def load_library(self, path: Path) -> LibraryMixer:
        library = ctypes.CDLL(str(path))
        self._add, self._choose, self._reorder = (library[name] for name in (ADD, CHOOSE, REORDER))
        for function in (self._add, self._choose, self._reorder):
            function.restype = None
        return self

    def prepare_noise(self, array: InputArray, noise: ArrayNoise) -> Any:
        if not array.columns:
            return noise.choice, noise.bits or bytes(len(noise.choice))
        steps = list_steps(array.columns)
        return [(ctypes.c_int32 * len(row))(*row) for row in (*noise.orders, steps)]

    def add_entries(
        self, target: memoryview, place: int, pools: Sequence[Any], starts: Sequence[int], weights: Sequence[float]
    ) -> None:
        array = self.arrays[place]
        sources = [_point_into(pool, start * array.width) for pool, start in zip(pools, starts)]
        count = ctypes.c_int64(len(target) // array.width)
        self._add(_point_at(target), *sources, *map(ctypes.c_double, weights), count, _SUMMED.index(array.sums))

    def choose_entries(
        self, target: memoryview, place: int, pools: Sequence[Any], starts: Sequence[int], noises: Sequence[int]
    ) -> None:
        width = self.arrays[place].width
        parts = zip((*pools, *self.noises[place]), (*starts, *noises))
        sources = [_point_into(data, start * width) for data, start in parts]
        self._choose(_point_at(target), *sources, ctypes.c_int64(len(target)))

    def reorder_rows(self, target: memoryview, place: int, pools: Sequence[Any], seed: int) -> None:
        array, (*orders, steps) = self.arrays[place], self.noises[place]
        sizes = (len(steps), array.size // array.unit, array.columns, array.width)
        sources = (*(_point_into(pool, 0) for pool in pools), orders[seed % len(orders)], steps)
        self._reorder(_point_at(target), *sources, *map(ctypes.c_int64, sizes), ctypes.c_uint64(seed))


def _point_at(target: memoryview) -> Any:
    return ctypes.byref(ctypes.c_char.from_buffer(target))


def _point_into(data: bytes, place: int) -> ctypes.c_void_p:
    """Of bytes that somebody holds."""
    return ctypes.c_void_p((ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0) + place)


@dataclass(frozen=True)
class CarriedCase:
    """A program and its partner at one shape set of a packed folder. Fits `TimedCase`."""

    mixer: InputMixer
    request: Record  # of a process that calls them, without its sides
    fd: int
    memory: memoryview
    recipes: Sequence[Recipe] = ()

    @property
    def threads(self) -> int:
        threads: int = self.request["threads"]
        return threads

    @property
    def stride(self) -> int:
        return self.mixer.layout.stride

    @property
    def most_calls(self) -> int | None:
        return self.mixer.most_calls

    def start_process(self, sides: Sequence[Side]) -> CallingProcess:
        paths = self.request["paths"]
        chosen = {DRIVER: paths[DRIVER], **{side.value: paths[side.value] for side in sides}}
        return CallingProcess({**self.request, "paths": chosen})

    def fill_turn(self, process: Any, turn: Turn, prepared: Mapping[int, Recipe]) -> dict[int, Recipe]:
        return self.mixer.fill_slots(self.memory, turn, prepared)

    def read_outputs(self, process: Any, slot: int) -> list[bytes]:
        return self.mixer.read_outputs(self.memory, slot)


def measure_set(folder: PackedFolder, program: Record, shape_set: Record, outputs: OutputFiles) -> dict[str, Any]:
    """Pairs in one process, by its own clock; then, at full grade, each side in a process of its own, by ours."""
    problem = explain_misfit(program["needs"])
    if not problem and program["threads"] > count_processors():
        problem = f"it has {program['threads']} threads, of which {count_processors()} can run at once here"
    if problem:
        raise TimingFault(problem)
    for digest in program["artefacts"].values():
        folder.read_file(digest)
    seed, asked = secrets.randbits(48), folder.manifest["protocol"]
    with tempfile.TemporaryFile() if not hasattr(os, "memfd_create") else open(os.memfd_create("slots"), "w+b") as file:
        os.ftruncate(file.fileno(), SLOT_MEMORY)
        case = _make_case(folder, program, shape_set, seed, file.fileno())
        plan, schedule = plan_pairs(case, read_protocol(asked, program), {}), secrets.randbits(64)
        pairs = list(measure_pairs(case, plan, schedule))
        is_apart = asked["apart"] and program["has_partner"]
        apart = list(measure_apart(case, plan, schedule)) if is_apart else []
        read = [check for times in (*pairs, *apart) for check in times.outputs]
        return {
            "seed": seed,
            "slots": plan.slots,
            "pairs": [write_times(times) for times in pairs],
            "apart": [write_times(times) for times in apart],
            "checks": [
                outputs.keep_check(recipe, hash_arrays(case.mixer.mix_inputs(recipe)), arrays)
                for recipe, arrays in choose_checks(read, shape_set["outputs"], asked["check_bytes"])
            ],
        }


def _make_case(folder: PackedFolder, program: Record, shape_set: Record, seed: int, fd: int) -> CarriedCase:
    arrays, carried = read_arrays(shape_set["inputs"]), CarriedArrays(shape_set)
    draws = [expand_draw(arrays, folder.read_file, seed, number) for number in range(shape_set["draws"])]
    mixer = LibraryMixer(carried.layout, arrays, draws, draw_noises(arrays, seed))
    paths = {name: str(folder.path / "files" / digest) for name, digest in program["artefacts"].items()}
    request = {
        "paths": paths,
        "function": shape_set["calls"]["program"]["function"],
        "sides": SIDES,
        "places": mixer.layout.places,
        "stride": mixer.layout.stride,
        "numbers": carried.numbers,
        "threads": program["threads"],
        "memory": fd,
        "parent": os.getpid(),
    }
    return CarriedCase(mixer.load_library(Path(paths[MIXER])), request, fd, memoryview(mmap.mmap(fd, 0)))


def describe_devices() -> dict[str, Any]:
    """Nothing beside the processor."""
    return {}


def write_times(times: PairTimes) -> dict[str, Any]:
    """Those of one process as JSON."""
    figures = {"error": times.error, "filling_ns": times.filling_ns}
    return {"program": list(times.program), "partner": list(times.partner), **figures}


def explain_misfit(needs: Record) -> str:
    """Why artefacts cannot run on this processor; "": they can."""
    machine = platform.machine()
    if machine != needs.get("machine", machine):
        return f"it was built for {needs['machine']}, this machine is {machine}; try: pack it on such a machine"
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        words = ""
    features = set(words.partition("\n\n")[0].split())
    missing = [feature for feature in needs.get("features", ()) if feature not in features]
    if missing:
        isa = needs.get("isa", "another instruction set")
        return f"it was built for {isa}, and this processor lacks {', '.join(missing)}; try: pack it on such a machine"
    return ""
