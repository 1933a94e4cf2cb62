"""Times packed programs on the machine that it is started on. One file: Python >= 3.8 on Linux and nothing else.

    python3 runner.py FOLDER [--results FOLDER]     # a folder that `opsmith measure --pack` wrote
    python3 runner.py --stream                      # the same over a pipe, as `opsmith measure --on ssh:HOST` does

FOLDER holds `manifest.json` and `files/`, each named by its sha256. A shape set of a program is measured in processes
apart from this one; what is measured is kept in `results/`, so that the same command goes on where it was stopped, and
`results.json` says it all at the end. Inputs follow from seeds that are drawn here; outputs of timed calls are kept,
and are compared where the folder was packed: no expected value is here.

Programs run with the rights of whoever starts this: what is packed was judged right in confinement before.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import mmap
import os
import platform
import random
import secrets
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

FORMAT = 1  # of the manifest and the results
RESULTS, MANIFEST = "results.json", "manifest.json"
POISON = 0xFF  # NaN in every float, -1 in every whole number
STEP = 1 << 19  # bytes of noise, from any of which on they may be used; two of them are drawn
STRIDE = 7919 * 8  # of places in the noise, from one step of an array to the next
CANARY, SLACK = 0x7B, 256  # around arrays in a GPU's memory
SIDES = ("program", "partner")
NUMBER = struct.Struct("<q")
MOST_SLOTS = 4096
SLOT_MEMORY = 256 << 20  # bytes of all slots together
LARGEST_TEXT = 20_000  # characters of what a process printed that are kept

if TYPE_CHECKING:
    Record = Mapping[str, Any]


class RunnerError(Exception):
    """What stops a measurement, in words."""


# -- data: inputs that follow from seeds; the packer computes the same


def expand_draw(arrays: Sequence[Record], read: Callable[[str], bytes], seed: int, number: int) -> list[bytearray]:
    """The inputs of one draw."""
    return [
        bytearray(_expand_array(array, read, f"{seed}:{number}:{place}", number)) for place, array in enumerate(arrays)
    ]


def _expand_array(array: Record, read: Callable[[str], bytes], seed: str, number: int) -> bytes:
    """`pools`: an array that cannot be drawn anew for each draw, or one with some entries, of which it is made."""
    if not array["unit"]:
        return read(array["pools"][number % len(array["pools"])])
    generator, size = random.Random(seed), array["size"]
    text = b"".join(_draw_pieces(read(array["pools"][0]), array, generator))
    return disturb_bytes(text, draw_noise(generator, size, array)) if array["mask"] and size else text


def _draw_pieces(pool: bytes, array: Record, generator: random.Random) -> Iterator[bytes]:
    """Entries of the pool from a random one on; rows that belong together are turned."""
    unit, missing, columns = array["unit"], array["size"], array["columns"]
    units = max(1, len(pool) // unit)
    while missing > 0:
        start = int(generator.random() * units) * unit
        piece = pool[start : start + (unit if columns else missing)]
        if columns:
            turn = int(generator.random() * columns) * (unit // columns)
            piece = piece[turn:] + piece[:turn]
        yield piece[:missing]
        missing -= len(piece)


def draw_noise(generator: random.Random, size: int, array: Record) -> bytes:
    """Bits within an array's mask."""
    mask = int.from_bytes(NUMBER.pack(_sign(array["mask"]))[: array["width"]] * (size // array["width"]), "little")
    return (generator.getrandbits(8 * size) & mask).to_bytes(size, "little")


def _sign(mask: int) -> int:
    return mask - (1 << 64) if mask >> 63 else mask


def disturb_bytes(data: bytes, noise: bytes) -> bytes:
    """Exclusive or."""
    return (int.from_bytes(data, "little") ^ int.from_bytes(noise, "little")).to_bytes(len(data), "little")


def draw_recipe(arrays: Sequence[Record], draws: int, most_calls: int | None, call: int) -> dict[str, Any]:
    """Of which draws a call's inputs are mixed, and from which byte on each array is of the second one."""
    if most_calls is not None:
        return {
            "first": call % draws,
            "second": call % draws,
            "cuts": [array["size"] for array in arrays],
            "novelty": 0,
        }
    generator = random.SystemRandom()
    first = generator.randrange(draws)
    second = (first + 1 + generator.randrange(max(1, draws - 1))) % draws
    return {
        "first": first,
        "second": second,
        "cuts": [_draw_cut(generator, array["size"], array["unit"]) for array in arrays],
        "novelty": generator.randrange(1 << 40),
    }


def _draw_cut(generator: random.Random, size: int, unit: int) -> int:
    units = size // unit if unit else 0
    return (1 + generator.randrange(units - 1)) * unit if units > 1 else size


def list_pieces(array: Record, place: int, recipe: Record) -> Iterator[tuple[int, int, int, int]]:
    """Begin and end in the array, number of the draw, and where the noise begins that disturbs it (-1: nothing)."""
    cut, width = recipe["cuts"][place], array["width"]
    for begin, end, draw in ((0, cut, recipe["first"]), (cut, array["size"], recipe["second"])):
        for number, start in enumerate(range(begin, end, STEP)):
            noise = recipe["novelty"] * (place + 1) * width + STRIDE * number
            yield start, min(end, start + STEP), draw, noise % STEP // width * width if array["mask"] else -1


def mix_inputs(
    arrays: Sequence[Record], draws: Sequence[Sequence[bytearray]], noises: Any, recipe: Record
) -> list[bytes]:
    """The inputs of a call. `noises`: of `draw_noises`; None: nothing is disturbed."""
    return [_mix_array(array, place, draws, noises, recipe) for place, array in enumerate(arrays)]


def _mix_array(array: Record, place: int, draws: Sequence[Sequence[bytearray]], noises: Any, recipe: Record) -> bytes:
    pieces = []
    for begin, end, draw, start in list_pieces(array, place, recipe):
        piece = bytes(draws[draw][place][begin:end])
        if noises is not None and start >= 0:
            piece = disturb_bytes(piece, noises[place][start : start + len(piece)])
        pieces.append(piece)
    return b"".join(pieces)


def draw_noises(arrays: Sequence[Record], seed: int) -> list[bytes]:
    """Of each array, which calls use from any place on."""
    return [
        draw_noise(random.Random(f"{seed}:noise:{place}"), 2 * STEP, array) if array["mask"] else b""
        for place, array in enumerate(arrays)
    ]


def hash_arrays(arrays: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(NUMBER.pack(len(array)))
        digest.update(array)
    return digest.hexdigest()


# -- the folder


class PackedFolder:
    """What was packed. Raises RunnerError for what is not as its manifest says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = (path / MANIFEST).read_text(encoding="utf-8")
            self.manifest = json.loads(self.text)
            version = self.manifest["format"]
            self._check_keys()
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise RunnerError(f"{path}: no manifest ({error!r}); expected a folder that opsmith packed")
        if version != FORMAT:
            raise RunnerError(f"manifest: format {version}; expected {FORMAT}; try: the runner beside it")

    def _check_keys(self) -> None:
        """Results become files of these names."""
        for _, shape_set in self.list_sets():
            key = shape_set["key"]
            if not (isinstance(key, str) and len(key) == 32 and key.isalnum()):
                raise ValueError(f"a shape set of the key {str(key)[:80]!r}")

    @property
    def id(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def read_file(self, digest: str) -> bytes:
        try:
            data = (self.path / "files" / digest).read_bytes()
        except OSError as error:
            raise RunnerError(f"file {digest[:12]}: {error.strerror}; expected all files that were packed")
        if hashlib.sha256(data).hexdigest() != digest:
            raise RunnerError(f"file {digest[:12]}: other bytes than were packed; try: copy the folder again")
        return data

    def list_sets(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for program in self.manifest["programs"]:
            for shape_set in program["sets"]:
                yield program, shape_set


# -- the machine

_TEXTS = ("proc/cpuinfo", "proc/meminfo", "sys/hypervisor/type")
_FOLDERS = ("sys/devices/system/cpu/cpu0/cpufreq", "sys/devices/system/cpu/cpu0/cache")
_CACHE_FILES = ("level", "type", "size", "shared_cpu_list")
_FREQUENCIES = ("scaling_governor", "cpuinfo_max_freq", "scaling_cur_freq")


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """What Linux says of the processor, as texts: who packed reads them as its own."""
    files = [root / name for name in _TEXTS]
    files += [root / _FOLDERS[0] / name for name in _FREQUENCIES]
    files += [file / name for file in sorted((root / _FOLDERS[1]).glob("index*")) for name in _CACHE_FILES]
    texts = {str(file.relative_to(root)): _read_text(file) for file in files}
    texts["proc/cpuinfo"] = texts.get("proc/cpuinfo", "").partition("\n\n")[0]
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "texts": {name: text for name, text in texts.items() if text},
    }


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def explain_misfit(needs: Record) -> str:
    """Why artefacts cannot run on this processor; "": they can."""
    machine = platform.machine()
    if machine != needs.get("machine", machine):
        return "it was built for {}, this machine is {}; try: pack it on such a machine".format(
            needs["machine"], machine
        )
    features = set(_read_text(Path("/proc/cpuinfo")).partition("\n\n")[0].split())
    missing = [feature for feature in needs.get("features", ()) if feature not in features]
    if missing:
        return "it was built for {}, and this processor lacks {}; try: pack it on such a machine".format(
            needs.get("isa", "another instruction set"), ", ".join(missing)
        )
    return ""


def read_clocks() -> list[dict[str, str]]:
    """What NVIDIA's tool says of its devices now; nothing where there is none."""
    names = (
        "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw,clocks_event_reasons.active"
    )
    command = ["nvidia-smi", "--query-gpu=" + names, "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = answer.stdout.decode(errors="replace").splitlines() if answer.returncode == 0 else []
    return [dict(zip(names.split(","), line.split(", "))) for line in lines]


# -- the order of calls


def plan_turns(protocol: Record, slots: int, generator: random.Random) -> Iterator[dict[str, Any]]:
    """The turns of one process: either side comes first equally often; whose slots are whose is drawn."""
    numbers = generator.sample(range(2 * slots), 2 * slots)
    slots_of = {"program": numbers[:slots], "partner": numbers[slots:]}
    count = protocol["warm_ups"] + protocol["pairs"]
    is_first = [place % 2 == 0 for place in range(count)]
    generator.shuffle(is_first)
    checked = set(generator.sample(range(protocol["warm_ups"], count), min(protocol["checks"], protocol["pairs"])))
    for number in range(count):
        for side in SIDES if is_first[number] else SIDES[::-1]:
            order = generator.sample(slots_of[side], slots)
            yield {
                "side": side,
                "slots": order,
                "calls": number * slots,
                "poisoned": {slot for slot in order if generator.random() < 0.5},
                "checked": order[generator.randrange(slots)] if number in checked and side == "program" else None,
                "is_warm_up": number < protocol["warm_ups"],
            }


# -- programs for the processor: a process that calls them, and our end of it


class CallingProcess:
    """A process that has loaded the sides and calls them on slots in shared memory. A context manager."""

    def __init__(self, folder: PackedFolder, program: Record, shape_set: Record, sides: Sequence[str], fd: int) -> None:
        self._has_threads = program["threads"] > 1
        self._stride = shape_set["stride"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__), "--calls"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[fd],
            start_new_session=True,
        )
        _running.add(self._process)
        request = {
            "driver": str(folder.path / "files" / program["artefacts"]["driver"]),
            "sides": {side: str(folder.path / "files" / program["artefacts"][side]) for side in sides},
            "places": shape_set["places"],
            "numbers": shape_set["numbers"],
            "threads": program["threads"],
            "memory": fd,
            "parent": os.getpid(),
        }
        self._send(json.dumps(request).encode() + b"\n")
        self._expect_ready()
        self._clock, self._waited = self._read_clock(), 0
        self._stop(signal.SIGSTOP)

    def time_turn(self, side: str, slots: Sequence[int]) -> int:
        """Nanoseconds by the clock in the process."""
        words = [SIDES.index(side), *(slot * self._stride for slot in slots)]
        self._stop(signal.SIGCONT)
        begin = time.monotonic_ns()
        self._send(NUMBER.pack(len(words)) + struct.pack(f"<{len(words)}q", *words))
        elapsed: int = NUMBER.unpack(self._receive(NUMBER.size, 30.0))[0]
        self._waited = time.monotonic_ns() - begin
        self._stop(signal.SIGSTOP)
        return elapsed

    def count_time(self) -> int:
        """Nanoseconds of the last turn by the clock outside: processor time, or with threads the time we waited."""
        if self._has_threads:
            return self._waited
        before, self._clock = self._clock, self._read_clock()
        return self._clock - before

    def __enter__(self) -> CallingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        _kill_group(self._process)

    def _expect_ready(self) -> None:
        line = self._receive(1, 60.0)
        if line != b"+":
            raise RunnerError("it cannot be loaded here: " + self._explain_end())

    def _explain_end(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        _kill_group(self._process)
        words = self._process.stderr.read().decode(errors="replace").strip() if self._process.stderr else ""
        status = self._process.returncode
        ended = f"killed by signal {-status}" if status is not None and status < 0 else f"ended with {status}"
        return (words.splitlines() or [ended])[-1][:500]

    def _read_clock(self) -> int:
        try:
            return time.clock_gettime_ns((~self._process.pid << 3) | 2)
        except OSError:
            raise RunnerError("the process in which it is timed has gone: " + self._explain_end())

    def _stop(self, number: int) -> None:
        if self._has_threads:
            os.kill(self._process.pid, number)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            raise RunnerError("the process in which it is timed has gone: " + self._explain_end())

    def _receive(self, size: int, seconds: float) -> bytes:
        assert self._process.stdout is not None
        fd, data, end = self._process.stdout.fileno(), b"", time.monotonic() + seconds
        while len(data) < size:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                _kill_group(self._process)
                raise RunnerError(f"no answer within {seconds:g} s: it was ended")
            piece = os.read(fd, size - len(data))
            if not piece:
                raise RunnerError("the process in which it is timed has gone: " + self._explain_end())
            data += piece
        return data


_running: set[Any] = set()  # processes that we started
_is_ending = threading.Event()  # another thread ends it all: nothing more is written


def _kill_group(process: Any) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10.0)
    _running.discard(process)


def _die_with(parent: int) -> None:
    """This process is killed when the one that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def serve_calls() -> None:
    """In the process that is timed: load what the first line names, then call it on the slots of each message."""
    answers, request = _take_answers(), json.loads(sys.stdin.buffer.readline())
    _die_with(request["parent"])
    memory = mmap.mmap(request["memory"], 0)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    try:
        driver = ctypes.CDLL(request["driver"])["opsmith_time_calls"]
        libraries = {side: ctypes.CDLL(path) for side, path in request["sides"].items()}
        functions = [
            ctypes.cast(libraries[side]["kernel"], ctypes.c_void_p) if side in libraries else None for side in SIDES
        ]
    except (OSError, AttributeError) as error:
        sys.exit(str(error))
    for library in libraries.values() if request["threads"] > 1 else ():
        getattr(library, "omp_set_num_threads", int)(request["threads"])
    driver.restype = ctypes.c_int64
    places = (ctypes.c_int64 * len(request["places"]))(*request["places"])
    numbers = ctypes.create_string_buffer(b"".join(map(_pack_number, request["numbers"])) + bytes(8))
    clock = time.CLOCK_MONOTONIC if request["threads"] > 1 else time.CLOCK_PROCESS_CPUTIME_ID
    answers.write(b"+")
    while True:
        head = sys.stdin.buffer.read(NUMBER.size)
        if len(head) < NUMBER.size:
            return
        words = struct.unpack(f"<{NUMBER.unpack(head)[0]}q", sys.stdin.buffer.read(8 * NUMBER.unpack(head)[0]))
        slots = (ctypes.c_int64 * (len(words) - 1))(*words[1:])
        pointer, count = ctypes.c_void_p(address), ctypes.c_int64(len(slots))
        answers.write(NUMBER.pack(driver(functions[words[0]], pointer, slots, count, places, numbers, clock)))


def _take_answers() -> BinaryIO:
    """Where answers go: what programs print does not come there."""
    fd = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.set_inheritable(fd, False)
    return open(fd, "wb", buffering=0)


def _pack_number(value: float) -> bytes:
    return NUMBER.pack(value) if isinstance(value, int) else struct.pack("<d", value)


class Slots:
    """Shared memory for the calls of both sides, and the inputs that are put there, which never come twice."""

    def __init__(self, folder: PackedFolder, program: Record, shape_set: Record, seed: int, count: int) -> None:
        self.set, self.arrays = shape_set, shape_set["inputs"]
        self.fd = os.memfd_create("slots")
        os.ftruncate(self.fd, max(1, 2 * count * shape_set["stride"]))
        self.memory = mmap.mmap(self.fd, 0)
        self._view = ctypes.c_char.from_buffer(self.memory)
        self._address = ctypes.addressof(self._view)
        self._disturb = ctypes.CDLL(str(folder.path / "files" / program["artefacts"]["mixer"]))["opsmith_disturb"]
        draws = shape_set["draws"]
        self.draws = [expand_draw(self.arrays, folder.read_file, seed, number) for number in range(draws)]
        self.noises = draw_noises(self.arrays, seed)
        self._zeros = bytes(STEP)

    def fill_turn(self, turn: Record) -> dict[str, Any] | None:
        """Put fresh inputs into a turn's slots; the recipe of the one that is checked."""
        recipe = None
        for number, slot in enumerate(sorted(turn["slots"])):
            drawn = draw_recipe(self.arrays, len(self.draws), self.set["most_calls"], turn["calls"] + number)
            self._write_inputs(slot * self.set["stride"], drawn)
            if slot in turn["poisoned"]:
                for begin, end in self._list_outputs(slot):
                    ctypes.memset(self._address + begin, POISON, end - begin)
            recipe = drawn if slot == turn["checked"] else recipe
        return recipe

    def read_outputs(self, slot: int) -> list[bytes]:
        return [self.memory[begin:end] for begin, end in self._list_outputs(slot)]

    def close(self) -> None:
        del self._view
        with contextlib.suppress(BufferError):
            self.memory.close()
        os.close(self.fd)

    def _list_outputs(self, slot: int) -> Iterator[tuple[int, int]]:
        places = self.set["places"][len(self.arrays) :]
        for place, size in zip(places, self.set["outputs"]):
            begin = slot * self.set["stride"] + place
            yield begin, begin + size

    def _write_inputs(self, start: int, recipe: Record) -> None:
        for place, array in enumerate(self.arrays):
            target = self._address + start + self.set["places"][place]
            for begin, end, draw, noise_start in list_pieces(array, place, recipe):
                source = (ctypes.c_char * 1).from_buffer(self.draws[draw][place])
                address = ctypes.c_void_p(ctypes.addressof(source) + begin)
                noise = self.noises[place] if noise_start >= 0 else self._zeros
                self._disturb(
                    ctypes.c_void_p(target + begin),
                    address,
                    ctypes.c_char_p(noise),
                    max(0, noise_start),
                    ctypes.c_int64(end - begin),
                )


def measure_native(folder: PackedFolder, program: Record, shape_set: Record, keep: KeepFile) -> dict[str, Any]:
    """Pairs in one process, by its own clock; then, at full grade, each side in a process of its own, by ours."""
    problem = explain_misfit(program["needs"])
    if not problem and program["threads"] > len(os.sched_getaffinity(0)):
        problem = "it has {} threads, of which {} can run at once here".format(
            program["threads"], len(os.sched_getaffinity(0))
        )
    if problem:
        raise RunnerError(problem)
    for digest in program["artefacts"].values():
        folder.read_file(digest)
    protocol, seed = dict(folder.manifest["protocol"]), secrets.randbits(48)
    most_slots = SLOT_MEMORY // (2 * shape_set["stride"])
    if most_slots < 1:
        raise RunnerError("its arrays are too large to be timed: {} bytes a call".format(shape_set["stride"]))
    slots = Slots(folder, program, shape_set, seed, min(most_slots, MOST_SLOTS))
    try:
        count = _choose_slots(folder, program, shape_set, slots, protocol, min(most_slots, MOST_SLOTS))
        checks: list[dict[str, Any]] = []
        pairs = [
            _time_pairs(folder, program, shape_set, slots, protocol, count, checks)
            for _ in range(protocol["processes"])
        ]
        apart = [
            _time_apart(folder, program, shape_set, slots, protocol, count, checks)
            for _ in range(protocol["processes"] if protocol["apart"] and program["has_partner"] else 0)
        ]
        chosen = choose_checks(checks, protocol["check_bytes"], sum(shape_set["outputs"]))
        return {"seed": seed, "slots": count, "pairs": pairs, "apart": apart, "checks": keep_checks(chosen, keep)}
    finally:
        slots.close()


def _choose_slots(
    folder: PackedFolder, program: Record, shape_set: Record, slots: Slots, protocol: dict[str, Any], most: int
) -> int:
    """As many as make a turn long enough; the protocol gets fewer pairs where inputs would come twice."""
    most_calls = shape_set["most_calls"]
    call_ns: list[float] = []
    with CallingProcess(folder, program, shape_set, SIDES, slots.fd) as process:
        for side in SIDES:
            count, elapsed = 1, 0
            while True:
                chosen = list(range(count))
                slots.fill_turn({"slots": chosen, "calls": 0, "poisoned": (), "checked": None})
                process.time_turn(side, chosen)
                process.count_time()
                process.time_turn(side, chosen)
                elapsed = process.count_time()
                if elapsed >= 1_000_000 or count >= min(most, most_calls or most):
                    break
                count = min(4 * count, most, most_calls or most)
            call_ns.append(max(1, elapsed) / count)
    calls = round(protocol["turn_ns"] / max(min(call_ns), max(call_ns) / 5))
    fitting: int = max(1, min(calls, most, MOST_SLOTS))
    if most_calls is not None:
        fitting = max(1, min(fitting, most_calls // (protocol["pairs"] + protocol["warm_ups"])))
        if protocol["pairs"] + protocol["warm_ups"] > most_calls:
            protocol.update(pairs=max(1, most_calls - 1), warm_ups=min(1, most_calls - 1))
    return fitting


def _time_pairs(
    folder: PackedFolder,
    program: Record,
    shape_set: Record,
    slots: Slots,
    protocol: Record,
    count: int,
    checks: list[dict[str, Any]],
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    sides = SIDES if secrets.randbits(1) else SIDES[::-1]
    with CallingProcess(folder, program, shape_set, sides, slots.fd) as process:
        for turn in plan_turns(protocol, count, random.Random(secrets.randbits(64))):
            recipe = slots.fill_turn(turn)
            elapsed = process.time_turn(turn["side"], turn["slots"])
            _note_turn(times, checks, slots, turn, recipe, elapsed)
    return times


def _note_turn(
    times: dict[str, list[float]],
    checks: list[dict[str, Any]],
    slots: Slots,
    turn: Record,
    recipe: Record | None,
    elapsed: float,
) -> None:
    if turn["is_warm_up"]:
        return
    if elapsed <= 0:
        raise RunnerError(f"a turn of {elapsed} ns; expected some time")
    times[turn["side"]].append(elapsed / len(turn["slots"]))
    if recipe is not None:
        inputs = hash_arrays(mix_inputs(slots.arrays, slots.draws, slots.noises, recipe))
        checks.append({"recipe": recipe, "inputs": inputs, "outputs": slots.read_outputs(turn["checked"])})


def _time_apart(
    folder: PackedFolder,
    program: Record,
    shape_set: Record,
    slots: Slots,
    protocol: Record,
    count: int,
    checks: list[dict[str, Any]],
) -> dict[str, list[float]]:
    """Less what a turn without a call costs, in the partner's process."""
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    overheads = []
    with contextlib.ExitStack() as stack:
        processes = {
            side: stack.enter_context(CallingProcess(folder, program, shape_set, [side], slots.fd))
            for side in SIDES[::-1]
        }
        for turn in plan_turns(protocol, count, random.Random(secrets.randbits(64))):
            process = processes[turn["side"]]
            if turn["side"] == "partner":
                slots.fill_turn(turn)
                process.time_turn("partner", ())
                overheads.append(process.count_time())
            recipe = slots.fill_turn(turn)
            process.time_turn(turn["side"], turn["slots"])
            _note_turn(times, checks, slots, turn, recipe, process.count_time())
    overhead = (min(overheads) if program["threads"] > 1 else statistics.median(overheads)) / count
    for side in SIDES:
        times[side] = [elapsed - overhead for elapsed in times[side]]
        if min(times[side]) <= 0:
            raise RunnerError("a call is too short for the clock outside the process")
    return times


# -- outputs that are compared elsewhere

KeepFile = Any  # Callable[[bytes], str]: keeps bytes and gives their name


def choose_checks(checks: Sequence[dict[str, Any]], most_bytes: int, size: int) -> list[dict[str, Any]]:
    """Of all that were read some that nobody could know, as many as may be carried; one at least."""
    count = max(1, min(len(checks), most_bytes // max(1, size)))
    return random.SystemRandom().sample(list(checks), min(count, len(checks)))


def keep_checks(checks: Sequence[dict[str, Any]], keep: KeepFile) -> list[dict[str, Any]]:
    return [dict(check, outputs=[keep(output) for output in check["outputs"]]) for check in checks]


# -- programs for NVIDIA's GPUs: the driver's API, in a process for each measurement

LIBRARY_VARIABLE = "OPSMITH_LIBCUDA"  # another file than libcuda.so.1
_ATTRIBUTES = {  # of a device, by the numbers of cuda.h
    "multiprocessors": 16,
    "capability_major": 75,
    "capability_minor": 76,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_multiprocessor": 39,
    "shared_per_block_optin": 97,
}
_FUNCTION_ATTRIBUTES = {"most_threads": 0, "static_shared": 1, "local": 3, "registers": 4}
_DYNAMIC_SHARED = 8
_LARGE_SHARED = 48 << 10  # bytes from which on a kernel must be told that it may have them
_NUMBERS = {
    "i8": ctypes.c_int8,
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
_LEAST_TURN_NS, _MOST_CALLS = 300_000, 16  # of kernels in a turn


class CudaDriver:
    """NVIDIA's driver on one device: its functions, called with a check of what they return."""

    def __init__(self, index: int = 0) -> None:
        name = os.environ.get(LIBRARY_VARIABLE, "libcuda.so.1")
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise RunnerError(f"no CUDA driver here ({error}); try: install NVIDIA's driver")
        self.call("cuInit", ctypes.c_uint(0))
        self.device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self.device), ctypes.c_int(index))
        self._context = context

    def open_context(self) -> None:
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self.device)
        self.call("cuCtxSetCurrent", self._context)

    def call(self, name: str, *arguments: Any) -> None:
        try:
            function = self._library[name]
        except AttributeError:
            raise RunnerError(f"the CUDA driver has no {name}; try: a newer driver")
        result = function(*arguments)
        if result:
            raise RunnerError(f"{name}: {self._name_error(result)}")

    def has_function(self, name: str) -> bool:
        return hasattr(self._library, name)

    def ask_number(self, name: str, *arguments: Any) -> int:
        """The whole number that a function writes to its first argument."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def _name_error(self, number: int) -> str:
        text = ctypes.c_char_p()
        try:
            is_named = self._library["cuGetErrorName"](ctypes.c_int(number), ctypes.byref(text)) == 0
        except AttributeError:
            is_named = False
        return (text.value or b"").decode() if is_named and text.value else f"error {number}"


def describe_gpus() -> list[dict[str, Any]]:
    """Each device that the driver has. Raises RunnerError where there is no driver."""
    driver = CudaDriver()
    version = driver.ask_number("cuDriverGetVersion")
    rows = []
    for index in range(driver.ask_number("cuDeviceGetCount")):
        device = ctypes.c_int()
        driver.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        driver.call("cuDeviceGetName", name, ctypes.c_int(256), device)
        driver.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        row = {
            key: driver.ask_number("cuDeviceGetAttribute", ctypes.c_int(number), device)
            for key, number in _ATTRIBUTES.items()
        }
        architecture = "sm_{}{}".format(row.pop("capability_major"), row.pop("capability_minor"))
        place = {"name": name.value.decode(errors="replace"), "architecture": architecture, "memory": memory.value}
        rows.append(dict(place, index=index, cuda=f"{version // 1000}.{version % 1000 // 10}", **row))
    return rows


class GpuSide:
    """One side's kernels, arrays and arguments on the device."""

    def __init__(self, driver: CudaDriver, cubin: bytes, shape_set: Record, call: Record) -> None:
        self._driver, self._set = driver, shape_set
        module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
        sizes: dict[str, Sequence[int]] = {
            "input": [array["size"] for array in shape_set["inputs"]],
            "output": shape_set["outputs"],
            "workspace": call["workspaces"],
        }
        self.arrays = {kind: [self._allocate_array(size) for size in row] for kind, row in sizes.items()}
        self._sizes = sizes
        self._launches = [self._prepare_launch(module, launch) for launch in call["launches"]]

    def launch_kernels(self) -> None:
        for function, place, parameters, _ in self._launches:
            self._driver.call("cuLaunchKernel", function, *place, ctypes.c_void_p(), parameters, ctypes.c_void_p())

    def prepare_call(self, draws: Sequence[Sequence[int]], recipe: Record) -> None:
        """Fresh inputs by copies on the device; outputs and workspaces are poisoned."""
        for place, array in enumerate(self._set["inputs"]):
            target, cut = self.arrays["input"][place], recipe["cuts"][place]
            for begin, end, draw in ((0, cut, recipe["first"]), (cut, array["size"], recipe["second"])):
                if end > begin:
                    source = ctypes.c_uint64(draws[draw][place] + begin)
                    self._driver.call(
                        "cuMemcpyDtoD_v2", ctypes.c_uint64(target + begin), source, ctypes.c_size_t(end - begin)
                    )
        for kind in ("output", "workspace"):
            for start, size in zip(self.arrays[kind], self._sizes[kind]):
                self._fill_bytes(start, POISON, size)

    def read_outputs(self) -> list[bytes]:
        return [self._read_bytes(start, size) for start, size in zip(self.arrays["output"], self._sizes["output"])]

    def find_damage(self) -> str:
        """What a kernel wrote outside of its arrays; "": nothing."""
        for kind, starts in self.arrays.items():
            for place, (start, size) in enumerate(zip(starts, self._sizes[kind])):
                for side, begin in (("before", start - SLACK), ("behind", start + size)):
                    if self._read_bytes(begin, SLACK).strip(bytes([CANARY])):
                        return f"it wrote {side} {kind} {place}"
        return ""

    def describe_kernels(self) -> list[dict[str, Any]]:
        return [words for _, _, _, words in self._launches]

    def _allocate_array(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size + 2 * SLACK))
        self._fill_bytes(pointer.value, CANARY, size + 2 * SLACK)
        return pointer.value + SLACK

    def _fill_bytes(self, start: int, byte: int, size: int) -> None:
        if size:
            self._driver.call("cuMemsetD8_v2", ctypes.c_uint64(start), ctypes.c_ubyte(byte), ctypes.c_size_t(size))

    def _read_bytes(self, start: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(max(1, size))
        if size:
            self._driver.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(start), ctypes.c_size_t(size))
        return data.raw[:size]

    def _prepare_launch(self, module: Any, launch: Record) -> tuple[Any, list[Any], Any, dict[str, Any]]:
        function = ctypes.c_void_p()
        self._driver.call("cuModuleGetFunction", ctypes.byref(function), module, launch["kernel"].encode())
        if launch["shared"] > _LARGE_SHARED:
            self._driver.call(
                "cuFuncSetAttribute", function, ctypes.c_int(_DYNAMIC_SHARED), ctypes.c_int(launch["shared"])
            )
        values = self._make_values(function, launch)
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        pointers._values = values  # type: ignore[attr-defined]  # they live as long as what points to them
        place = [ctypes.c_uint(number) for number in (*launch["grid"], *launch["block"], launch["shared"])]
        return function, place, pointers, self._describe_kernel(function, launch)

    def _make_values(self, function: Any, launch: Record) -> list[Any]:
        """The arguments. The driver says how large parameters are; another number of them, or another size, is
        refused."""
        sizes = self._list_parameter_sizes(function, len(launch["args"]) + 1)
        if sizes is not None and len(sizes) != len(launch["args"]):
            raise RunnerError(
                f"kernel {launch['kernel']}: {len(sizes)} parameters; the plan gives {len(launch['args'])}"
            )
        known_sizes = sizes or [0] * len(launch["args"])
        values = [self._make_value(kind, value, size) for (kind, value), size in zip(launch["args"], known_sizes)]
        for place, (value, size) in enumerate(zip(values, known_sizes)):
            if size and ctypes.sizeof(value) != size:
                raise RunnerError(
                    f"{launch['kernel']}: parameter {place} has {size} bytes, the plan gives {ctypes.sizeof(value)}"
                )
        return values

    def _make_value(self, kind: str, value: Any, size: int) -> Any:
        if kind in self.arrays:
            return ctypes.c_uint64(self.arrays[kind][value])
        if kind in ("whole", "floating"):  # of a width that the driver alone knows
            if not size:
                raise RunnerError("the CUDA driver does not say how large parameters are; try: a newer one (12.4)")
            kind = {("whole", 8): "i64", ("whole", 4): "i32", ("floating", 8): "f64"}.get((kind, size), "f32")
        return _NUMBERS[kind](value)

    def _list_parameter_sizes(self, function: Any, most: int) -> list[int] | None:
        """None: this driver cannot say them."""
        if not self._driver.has_function("cuFuncGetParamInfo"):
            return None
        sizes: list[int] = []
        with contextlib.suppress(RunnerError):  # there is no further one
            while len(sizes) < most:
                place = [ctypes.c_size_t(len(sizes)), ctypes.c_size_t(), ctypes.c_size_t()]
                self._driver.call("cuFuncGetParamInfo", function, place[0], *map(ctypes.byref, place[1:]))
                sizes.append(place[2].value)
        return sizes

    def _describe_kernel(self, function: Any, launch: Record) -> dict[str, Any]:
        words = {
            "kernel": launch["kernel"],
            "grid": launch["grid"],
            "block": launch["block"],
            "shared": launch["shared"],
        }
        for name, number in _FUNCTION_ATTRIBUTES.items():
            words[name] = self._driver.ask_number("cuFuncGetAttribute", ctypes.c_int(number), function)
        threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
        words["blocks_per_multiprocessor"] = self._driver.ask_number(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            function,
            ctypes.c_int(threads),
            ctypes.c_size_t(launch["shared"]),
        )
        return words


class GpuMeasurement:
    """Calls of sides on one device, timed by its events, with the device idle and its cache flushed before each."""

    def __init__(self, request: Record) -> None:
        folder = PackedFolder(Path(request["folder"]))
        self._set, self._protocol = request["set"], request["protocol"]
        self._driver = CudaDriver()
        self._driver.open_context()
        artefacts, self._calls = request["program"]["artefacts"], self._set["calls"]
        self._draws = self._upload_draws(folder, request["seed"])
        self.sides = {
            side: GpuSide(self._driver, folder.read_file(artefacts[side]), self._set, self._calls[side])
            for side in request["sides"]
        }
        l2_bytes = self._driver.ask_number(
            "cuDeviceGetAttribute", ctypes.c_int(_ATTRIBUTES["l2_bytes"]), self._driver.device
        )
        self._flush_bytes = max(2 * l2_bytes, 1 << 20)
        self._flushed = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(self._flushed), ctypes.c_size_t(self._flush_bytes))
        self._events = [self._create_event() for _ in range(2)]
        self._calls_of = dict.fromkeys(SIDES, 0)

    def try_side(self, side: str) -> None:
        """Two calls, and what they did outside of their arrays. Raises RunnerError."""
        for _ in range(2):
            self._time_call(side)
        damage = self.sides[side].find_damage()
        if damage:
            raise RunnerError(damage)

    def time_pairs(self) -> dict[str, Any]:
        calls = self._choose_calls()
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        waits: dict[str, list[float]] = {side: [] for side in SIDES}
        checks = []
        for turn in plan_turns(self._protocol, calls, random.Random(secrets.randbits(64))):
            elapsed, waited = 0.0, 0.0
            for slot in turn["slots"]:
                call_ns, wait_ns, recipe = self._time_call(turn["side"])
                elapsed, waited = elapsed + call_ns, waited + wait_ns
                if slot == turn["checked"]:
                    checks.append(self._read_check(turn["side"], recipe))
            if not turn["is_warm_up"]:
                times[turn["side"]].append(elapsed / calls)
                waits[turn["side"]].append(waited / calls)
        return {"times": times, "waits": waits, "checks": checks, "calls": calls}

    def _read_check(self, side: str, recipe: Record) -> dict[str, Any]:
        damage = self.sides[side].find_damage()
        if damage:
            raise RunnerError(damage)
        outputs = self.sides[side].read_outputs()
        inputs = [
            self.sides[side]._read_bytes(start, array["size"])
            for start, array in zip(self.sides[side].arrays["input"], self._set["inputs"])
        ]
        return {"recipe": recipe, "inputs": hash_arrays(inputs), "outputs": outputs}

    def _choose_calls(self) -> int:
        times = [self._time_call(side)[0] for _ in range(3) for side in SIDES]
        calls = max(1, min(_MOST_CALLS, round(_LEAST_TURN_NS / max(1.0, min(times)))))
        most_calls = self._set["most_calls"]
        return calls if most_calls is None else 1

    def _time_call(self, side: str) -> tuple[float, float, dict[str, Any]]:
        """Nanoseconds of the kernels by the device's events, and of waiting for them."""
        driver = self._driver
        recipe = draw_recipe(self._set["inputs"], len(self._draws), self._set["most_calls"], self._calls_of[side])
        self._calls_of[side] += 1
        self.sides[side].prepare_call(self._draws, recipe)
        driver.call(
            "cuMemsetD8_v2", self._flushed, ctypes.c_ubyte(secrets.randbits(8)), ctypes.c_size_t(self._flush_bytes)
        )
        driver.call("cuCtxSynchronize")
        begin = time.perf_counter_ns()
        driver.call("cuEventRecord", self._events[0], ctypes.c_void_p())
        self.sides[side].launch_kernels()
        driver.call("cuEventRecord", self._events[1], ctypes.c_void_p())
        driver.call("cuCtxSynchronize")
        waited = time.perf_counter_ns() - begin
        elapsed = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(elapsed), *self._events)
        if elapsed.value <= 0:
            raise RunnerError(f"a call of {elapsed.value} ms by the device's events; expected some time")
        return elapsed.value * 1e6, waited, recipe

    def _create_event(self) -> Any:
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        return event

    def _upload_draws(self, folder: PackedFolder, seed: int) -> list[list[int]]:
        return [
            [
                self._upload_array(bytes(array))
                for array in expand_draw(self._set["inputs"], folder.read_file, seed, number)
            ]
            for number in range(self._set["draws"])
        ]

    def _upload_array(self, data: bytes) -> int:
        pointer = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, len(data))))
        if data:
            self._driver.call("cuMemcpyHtoD_v2", pointer, ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
        return pointer.value


def serve_gpu() -> None:
    """In a process apart: one request's answer, a line of JSON; outputs go to files of the folder that it names."""
    answers, request = _take_answers(), json.loads(sys.stdin.buffer.readline())
    if request["is_owned"]:
        _die_with(request["parent"])
    try:
        measurement = GpuMeasurement(request)
        for side in request["sides"]:
            measurement.try_side(side)
        answer: dict[str, Any] = {
            "kernels": {side: measurement.sides[side].describe_kernels() for side in request["sides"]}
        }
        if len(request["sides"]) == 2:
            answer.update(measurement.time_pairs())
            keep = OutputFiles(Path(request["outputs"])).keep_bytes
            answer["checks"] = keep_checks(
                choose_checks(answer["checks"], request["check_bytes"], sum(request["set"]["outputs"])), keep
            )
    except RunnerError as error:
        answer = {"error": str(error)}
    answers.write(json.dumps(answer).encode() + b"\n")
    os._exit(0)  # the driver of a device that has failed may not end


def measure_gpu(folder: PackedFolder, program: Record, shape_set: Record, outputs: Path) -> dict[str, Any]:
    """Both sides alone first, so that an error is known for whose it is; then pairs, in several processes."""
    problem = explain_gpu_misfit(program["needs"])
    if problem:
        raise RunnerError(problem)
    protocol, seed = folder.manifest["protocol"], secrets.randbits(48)
    request = {
        "folder": str(folder.path),
        "program": program,
        "set": shape_set,
        "protocol": protocol,
        "seed": seed,
        "outputs": str(outputs),
        "check_bytes": protocol["check_bytes"] // protocol["gpu_processes"],
        "parent": os.getpid(),
        "is_owned": True,
    }
    for side in SIDES:
        answer = _ask_gpu(dict(request, sides=[side]), protocol["deadline_s"])
        if "error" in answer:
            explained = _explain_by_sanitizer(dict(request, sides=[side], is_owned=False), protocol["deadline_s"])
            whose = "" if side == "program" else "the partner: "
            raise RunnerError(whose + answer["error"] + ("\n" + explained if explained else ""))
    answers = []
    for number in range(protocol["gpu_processes"]):
        answers.append(_ask_gpu(dict(request, sides=SIDES[:: 1 - 2 * (number % 2)]), protocol["deadline_s"]))
        if "error" in answers[-1]:
            raise RunnerError(answers[-1]["error"])
    return {
        "seed": seed,
        "slots": answers[0]["calls"],
        "pairs": [answer["times"] for answer in answers],
        "waits": [answer["waits"] for answer in answers],
        "apart": [],
        "checks": [check for answer in answers for check in answer["checks"]],
        "kernels": answers[0]["kernels"],
    }


def explain_gpu_misfit(needs: Record) -> str:
    """Why a cubin cannot run here; "": it can. Asked in a process apart: a driver that hangs must not hang us."""
    answer = ask_process(["--describe"], b"", 60.0)
    gpus = answer.get("gpus") or []
    if not gpus:
        return str(answer.get("gpu_lack") or answer.get("error") or "no CUDA device here")
    architecture, built_for = gpus[0]["architecture"], needs.get("architecture", gpus[0]["architecture"])
    is_same = architecture[:-1] == built_for[:-1] and architecture >= built_for
    return (
        ""
        if is_same or architecture == built_for.rstrip("af")
        else (
            "it was built for {}, this device is {} ({}); try: pack it for that architecture".format(
                built_for, architecture, gpus[0]["name"]
            )
        )
    )


def _ask_gpu(request: Record, seconds: float) -> dict[str, Any]:
    return ask_process(["--gpu"], json.dumps(request).encode() + b"\n", seconds)


def ask_process(arguments: Sequence[str], question: bytes, seconds: float) -> dict[str, Any]:
    """What a process of ours answers in one line of JSON, or `error`: how it ended; killed after so many seconds."""
    command = [sys.executable, "-I", "-S", os.path.abspath(__file__), *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    _running.add(process)
    try:
        answer, words = process.communicate(question, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {seconds:g} s: it was ended"}
    finally:
        _kill_group(process)
    try:
        data = json.loads(answer)
        return data if isinstance(data, dict) else {"error": "an answer that is none"}
    except ValueError:
        status = process.returncode
        ended = f"it was killed by signal {-status}" if status < 0 else f"it ended with {status}"
        lines = words.decode(errors="replace").strip().splitlines()
        return {"error": ": ".join([ended, *lines[-1:]])[:500]}


def _explain_by_sanitizer(request: Record, seconds: float) -> str:
    """What compute-sanitizer prints of the same calls; "" where it is not installed."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return ""
    command = [program, "--tool", "memcheck", sys.executable, "-I", "-S", os.path.abspath(__file__), "--gpu"]
    try:
        done = subprocess.run(
            command,
            check=False,
            input=json.dumps(request).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=4 * seconds,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"compute-sanitizer: {error}"
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("=========")]
    return "\n".join(lines[:40])[:LARGEST_TEXT]


# -- all of a folder


class OutputFiles:
    """Outputs by their sha256, compressed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep_bytes(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        (self._folder / digest).write_bytes(zlib.compress(data, 1))
        return digest


def measure_folder(folder: PackedFolder, results: Path, announce: Callable[[dict[str, Any]], None]) -> None:
    """Measure what `results` has nothing of yet, one file for each shape set; `announce` is told of each."""
    results.mkdir(parents=True, exist_ok=True)
    outputs = results / "outputs"
    for program, shape_set in folder.list_sets():
        path = results / (shape_set["key"] + ".json")
        if path.exists():
            continue
        row = _measure_set(folder, program, shape_set, outputs)
        draft = path.with_suffix(".unfinished")
        draft.write_text(json.dumps(row), encoding="utf-8")
        draft.replace(path)
        announce(row)


def _measure_set(folder: PackedFolder, program: Record, shape_set: Record, outputs: Path) -> dict[str, Any]:
    row = {"key": shape_set["key"], "artefact": program["artefacts"]["program"], "began": time.time()}
    row.update(
        name="{} at {}".format(program["name"], shape_set["name"]), clocks_before=read_clocks(), load=os.getloadavg()
    )
    try:
        if program["language"] == "cuda":
            row.update(measure_gpu(folder, program, shape_set, outputs))
        else:
            row.update(measure_native(folder, program, shape_set, OutputFiles(outputs).keep_bytes))
    except (RunnerError, ArithmeticError, MemoryError, LookupError, TypeError, ValueError) as error:
        row["error"] = str(error) if isinstance(error, RunnerError) else f"{type(error).__name__}: {error}"
    if _is_ending.is_set():
        time.sleep(60.0)
    row.update(clocks_after=read_clocks(), ended=time.time())
    return row


def describe_all() -> dict[str, Any]:
    """The machine and its GPUs, asked in a process apart."""
    return dict(describe_machine(), **ask_process(["--describe"], b"", 60.0))


def write_results(folder: PackedFolder, results: Path) -> Path:
    """One file of all that was measured."""
    rows = []
    for _, shape_set in folder.list_sets():
        path = results / (shape_set["key"] + ".json")
        if path.exists():
            rows.append(json.loads(path.read_text(encoding="utf-8")))
    answer = {"format": FORMAT, "manifest": folder.id, "machine": describe_all(), "results": rows}
    draft = results / (RESULTS + ".unfinished")
    draft.write_text(json.dumps(answer, indent=1), encoding="utf-8")
    draft.replace(results / RESULTS)
    return results / RESULTS


# -- over a pipe


def serve_stream() -> None:
    """Take a folder from the standard input, and send what is measured as it comes: lines of JSON, of which those of
    files are followed by bytes. The end of the input is the end of it all."""
    source, target = sys.stdin.buffer, _take_answers()
    place = os.path.dirname(os.path.abspath(__file__))  # a folder of its own, which goes when it ends
    _end_on_signals(place)
    try:
        _receive_files(source, Path(place))
        threading.Thread(target=_end_with, args=(source, place), daemon=True).start()
        folder = PackedFolder(Path(place))
        _send_line(target, {"kind": "machine", "machine": describe_all()})
        sent: set[str] = set()

        def announce(row: dict[str, Any]) -> None:
            for check in row.get("checks", ()):
                for digest in set(check["outputs"]) - sent:
                    data = (Path(place) / "results" / "outputs" / digest).read_bytes()
                    _send_line(target, {"kind": "output", "name": digest, "size": len(data)})
                    target.write(data)
                    sent.add(digest)
            _send_line(target, {"kind": "result", "result": row})

        measure_folder(folder, Path(place) / "results", announce)
        _send_line(target, {"kind": "end"})
    except (RunnerError, OSError) as error:
        _send_line(target, {"kind": "failure", "error": f"{error} (in {place})"})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _end_on_signals(place: str) -> None:
    """Signals that end us end what we started, and remove the folder."""

    def end_all(*_: object) -> None:
        _end_processes(place)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end_all)


def _end_processes(place: str) -> None:
    _is_ending.set()
    for process in list(_running):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for _ in range(100):  # the other thread may just be writing
        shutil.rmtree(place, ignore_errors=True)
        if not os.path.exists(place):
            break
        time.sleep(0.01)
    os._exit(1)


def _end_with(source: BinaryIO, place: str) -> None:
    while source.read(1):
        pass
    _end_processes(place)


def _receive_files(source: BinaryIO, place: Path) -> None:
    """The first line names the files and their sizes."""
    line = source.readline()
    (place / "files").mkdir(exist_ok=True)
    for name, size in json.loads(line)["files"]:
        if not all(part.replace(".", "").isalnum() for part in name.split("/")):
            raise RunnerError(f"a file that is called {name!r}")
        with open(str(place / name), "wb") as file:
            missing = size
            while missing:
                data = source.read(min(missing, 1 << 20))
                if not data:
                    raise RunnerError("the connection ended before all files had come")
                file.write(data)
                missing -= len(data)


def _send_line(target: BinaryIO, data: Record) -> None:
    target.write(json.dumps(data).encode() + b"\n")


def _describe_gpus_or_lack() -> dict[str, Any]:
    try:
        return {"gpus": describe_gpus()}
    except RunnerError as error:
        return {"gpus": [], "gpu_lack": str(error)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Time packed programs on this machine.")
    parser.add_argument("folder", nargs="?", default=".", help="what `opsmith measure --pack` wrote")
    parser.add_argument("--results", help="default: the folder `results` in it")
    for name in ("--stream", "--calls", "--gpu", "--describe"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for is_asked, serve in ((options.calls, serve_calls), (options.gpu, serve_gpu), (options.stream, serve_stream)):
        if is_asked:
            serve()
            return 0
    if options.describe:
        print(json.dumps(_describe_gpus_or_lack()))
        return 0
    return _measure_here(Path(options.folder), options.results)


def _measure_here(path: Path, results: str | None) -> int:
    def announce(row: dict[str, Any]) -> None:
        print("{}: {}".format(row["name"], row.get("error") or "measured"), file=sys.stderr)

    try:
        folder = PackedFolder(path)
        place = Path(results) if results else path / "results"
        measure_folder(folder, place, announce)
        print(write_results(folder, place))
    except KeyboardInterrupt:
        for process in list(_running):
            _kill_group(process)
        print("stopped; the same command goes on with what is left", file=sys.stderr)
        return 130
    except (RunnerError, OSError) as error:
        print(f"runner: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
