"""How kernels of a cubin are called where the package is not: by NVIDIA's driver, in a process for each measurement.

The stand-alone runner has this module do it (`carrying.CONVENTION`): the standard library of Python 3.8 or newer and
nothing else. A call is timed by the device's events, with the device idle and its cache flushed before it. Nothing of a
kernel runs where they are recorded, so that they are the trusted clock too.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from opsmith.targets.gpu.nvidia.driver import CudaDriver, DriverFault, KernelLaunch
from opsmith.timing.carried import (
    LARGEST_TEXT,
    CarriedArrays,
    OutputFiles,
    PackedFolder,
    ask_process,
    choose_checks,
    die_with,
    read_protocol,
    write_command,
)
from opsmith.timing.engine import SIDES, Side, TimingFault, plan_turns
from opsmith.timing.inputs import POISON, InputMixer, Recipe, expand_draw, hash_arrays, list_parts, read_arrays

CANARY, SLACK = 0x7B, 256  # around arrays in a GPU's memory

if TYPE_CHECKING:
    Record = Mapping[str, Any]
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
_DESCRIBING_S = 60.0
_LEAST_TURN_NS, _MOST_CALLS = 300_000, 16  # of kernels in a turn


def describe_devices() -> dict[str, Any]:
    """Each device here, or why there is none, in words. Asked in a process apart: a driver that hangs must not hang
    us."""
    return ask_process(__name__, {"is_described": True}, _DESCRIBING_S)


def ask_driver() -> dict[str, Any]:
    """What the driver says of its devices."""
    try:
        return {"gpus": _list_gpus()}
    except DriverFault as error:
        return {"gpus": [], "gpu_lack": str(error)}


def _list_gpus() -> list[dict[str, Any]]:
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
        self._driver, self._inputs = driver, read_arrays(shape_set["inputs"])
        module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
        sizes: dict[str, Sequence[int]] = {
            "input": [array.size for array in self._inputs],
            "output": shape_set["outputs"],
            "workspace": call["workspaces"],
        }
        self.arrays = {kind: [self._allocate_array(size) for size in row] for kind, row in sizes.items()}
        self._sizes = sizes
        self._launches = [KernelLaunch(driver, module, launch) for launch in call["launches"]]
        for ready in self._launches:
            ready.point(self.arrays)
        self._words = [
            self._describe_kernel(ready.function, launch) for ready, launch in zip(self._launches, call["launches"])
        ]

    def launch_kernels(self) -> None:
        for launch in self._launches:
            launch.start()

    def prepare_call(self, draws: Sequence[Sequence[int]], recipe: Recipe) -> None:
        """Fresh inputs by copies on the device; outputs and workspaces are poisoned."""
        for place, array in enumerate(self._inputs):
            for begin, end, draw in list_parts(array, place, recipe):
                if end > begin:
                    target, source = (
                        ctypes.c_uint64(start + begin) for start in (self.arrays["input"][place], draws[draw][place])
                    )
                    self._driver.call("cuMemcpyDtoD_v2", target, source, ctypes.c_size_t(end - begin))
        for kind in ("output", "workspace"):
            for start, size in zip(self.arrays[kind], self._sizes[kind]):
                self._fill_bytes(start, POISON, size)

    def read_arrays(self, kind: str) -> list[bytes]:
        return [self._read_bytes(start, size) for start, size in zip(self.arrays[kind], self._sizes[kind])]

    def find_damage(self) -> str:
        """What a kernel wrote outside of its arrays; "": nothing."""
        for kind, starts in self.arrays.items():
            for place, (start, size) in enumerate(zip(starts, self._sizes[kind])):
                for side, begin in (("before", start - SLACK), ("behind", start + size)):
                    if self._read_bytes(begin, SLACK).strip(bytes([CANARY])):
                        return f"it wrote {side} {kind} {place}"
        return ""

    def describe_kernels(self) -> list[dict[str, Any]]:
        return self._words

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
        folder, shape_set = PackedFolder(Path(request["folder"])), request["set"]
        self._keep_share = folder.manifest["protocol"]["check_bytes"] // request["program"]["processes"]
        self._driver = CudaDriver()
        self._driver.open_context()
        inputs, artefacts = read_arrays(shape_set["inputs"]), request["program"]["artefacts"]
        draws = [
            [self._upload_array(array) for array in expand_draw(inputs, folder.read_file, request["seed"], number)]
            for number in range(shape_set["draws"])
        ]
        self._mixer = InputMixer(CarriedArrays(shape_set).layout, inputs, draws)
        asked = read_protocol(folder.manifest["protocol"], request["program"])
        self._protocol = asked.fit_pairs(1.0, self._mixer.most_calls)
        self.sides = {
            side: GpuSide(self._driver, folder.read_file(artefacts[side]), shape_set, shape_set["calls"][side])
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

    def try_side(self, side: Side) -> None:
        """Two calls, and what they did outside of their arrays. Raises TimingFault."""
        for _ in range(2):
            self._time_call(side)
        self._refuse_damage(side)

    def time_pairs(self, outputs: OutputFiles) -> dict[str, Any]:
        calls = self._choose_calls()
        times: dict[str, list[float]] = {side.value: [] for side in SIDES}
        waits: dict[str, list[float]] = {side.value: [] for side in SIDES}
        checks = []
        for turn in plan_turns(self._protocol, calls, secrets.randbits(64)):
            elapsed, waited = 0.0, 0.0
            for slot in turn.slots:
                call_ns, wait_ns, recipe = self._time_call(turn.side)
                elapsed, waited = elapsed + call_ns, waited + wait_ns
                if slot in turn.checked:
                    self._refuse_damage(turn.side)
                    side = self.sides[turn.side]
                    checks.append((recipe, hash_arrays(side.read_arrays("input")), side.read_arrays("output")))
            if not turn.is_warm_up:
                times[turn.side.value].append(elapsed / calls)
                waits[turn.side.value].append(waited / calls)
        chosen = choose_checks(checks, self._mixer.layout.arrays.outputs, self._keep_share)
        return {
            "times": times,
            "waits": waits,
            "checks": [outputs.keep_check(*check) for check in chosen],
            "calls": calls,
        }

    def _refuse_damage(self, side: Side) -> None:
        damage = self.sides[side].find_damage()
        if damage:
            raise TimingFault(damage)

    def _choose_calls(self) -> int:
        times = [self._time_call(side)[0] for _ in range(3) for side in SIDES]
        calls = max(1, min(_MOST_CALLS, round(_LEAST_TURN_NS / max(1.0, min(times)))))
        return calls if self._mixer.most_calls is None else 1

    def _time_call(self, side: Side) -> tuple[float, float, Recipe]:
        """Nanoseconds of the kernels by the device's events, and of waiting for them."""
        driver = self._driver
        recipe = self._mixer.draw_recipe(random.SystemRandom(), self._calls_of[side])
        self._calls_of[side] += 1
        self.sides[side].prepare_call(self._mixer.draws, recipe)
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
            raise TimingFault(f"a call of {elapsed.value} ms by the device's events; expected some time")
        return elapsed.value * 1e6, waited, recipe

    def _create_event(self) -> Any:
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        return event

    def _upload_array(self, data: bytes) -> int:
        pointer = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, len(data))))
        if data:
            self._driver.call("cuMemcpyHtoD_v2", pointer, ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
        return pointer.value


def serve_process(request: Record, answers: BinaryIO) -> None:
    """In a process apart: one request's answer, a line of JSON; outputs go to files of the folder that it names."""
    if request.get("parent"):
        die_with(request["parent"])
    try:
        answer = ask_driver() if request["is_described"] else _answer_request(request)
    except (TimingFault, DriverFault) as error:
        answer = {"error": str(error)}
    answers.write(json.dumps(answer).encode() + b"\n")
    os._exit(0)  # the driver of a device that has failed may not end


def _answer_request(request: Record) -> dict[str, Any]:
    sides, measurement = [Side(side) for side in request["sides"]], GpuMeasurement(request)
    for side in sides:
        measurement.try_side(side)
    answer = {"kernels": {side.value: measurement.sides[side].describe_kernels() for side in sides}}
    return answer if len(sides) == 1 else {**answer, **measurement.time_pairs(OutputFiles(Path(request["outputs"])))}


def measure_set(folder: PackedFolder, program: Record, shape_set: Record, outputs: OutputFiles) -> dict[str, Any]:
    """Both sides alone first, so that an error is known for whose it is; then pairs, in several processes."""
    before = read_clocks()
    problem = explain_misfit(program["needs"])
    if problem:
        raise TimingFault(problem)
    asked, seed = folder.manifest["protocol"], secrets.randbits(48)
    request = {
        "is_described": False,
        "folder": str(folder.path),
        "program": program,
        "set": shape_set,
        "seed": seed,
        "outputs": str(outputs.folder),
        "parent": os.getpid(),
    }
    for side in SIDES:
        alone = {**request, "sides": [side]}
        answer = ask_process(__name__, alone, asked["deadline_s"])
        if "error" in answer:
            explained = _explain_by_sanitizer({**alone, "parent": 0}, asked["deadline_s"])
            whose = "" if side is Side.PROGRAM else "the partner: "
            raise TimingFault(whose + answer["error"] + ("\n" + explained if explained else ""))
    answers = []
    for number in range(program["processes"]):
        answers.append(ask_process(__name__, {**request, "sides": SIDES[:: 1 - 2 * (number % 2)]}, asked["deadline_s"]))
        if "error" in answers[-1]:
            raise TimingFault(answers[-1]["error"])
    return {
        "seed": seed,
        "slots": answers[0]["calls"],
        "pairs": [answer["times"] for answer in answers],
        "waits": [answer["waits"] for answer in answers],
        "apart": [],
        "checks": [check for answer in answers for check in answer["checks"]],
        "kernels": answers[0]["kernels"],
        "clocks_before": before,
        "clocks_after": read_clocks(),
    }


def explain_misfit(needs: Record) -> str:
    """Why a cubin cannot run here; "": it can."""
    answer = describe_devices()
    gpus = answer.get("gpus") or []
    if not gpus:
        return str(answer.get("gpu_lack") or answer.get("error") or "no CUDA device here")
    architecture, built_for = gpus[0]["architecture"], needs.get("architecture", gpus[0]["architecture"])
    is_same = architecture[:-1] == built_for[:-1] and architecture >= built_for
    if is_same or architecture == built_for.rstrip("af"):
        return ""
    name = gpus[0]["name"]
    return f"it was built for {built_for}, this device is {architecture} ({name}); try: pack it for that architecture"


def _explain_by_sanitizer(request: Record, seconds: float) -> str:
    """What compute-sanitizer prints of the same calls; "" where it is not installed."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return ""
    command = [program, "--tool", "memcheck", *write_command(__name__)]
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
