"""Devices beside the processor: GPUs, emulators, and what is missing for them.

Each is asked for in a process of its own with a deadline, so that a driver that hangs or crashes hangs nobody, and no
language is loaded here. What is missing says how to get it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opsmith.records import content_hash, dumps, printable

DEADLINE_S = 30.0
TIMED, JUDGED = "judged and timed", "judged"
_RUNNER = Path(__file__).parents[1] / "remote" / "runner.py"
_NO_SMI = "nvidia-smi: not installed, so that clocks are not recorded; try: install NVIDIA's driver with its tools"
_NO_SANITIZER = "compute-sanitizer: not installed, so that faults are not explained; try: install the CUDA toolkit"
_ASK_LANGUAGE = """
import json, sys
from opsmith.targets import get_target
target = get_target(sys.argv[1])
lack = target.explain_lack()
print(json.dumps({"lack": lack, "toolchain": "" if lack else target.describe_toolchain()}))
"""
_NO_WGPU = "the package wgpu is not installed; try: pip install 'opsmith[wgsl]'"
_ASK_ADAPTERS = """
import json
import wgpu
adapters = wgpu.gpu.enumerate_adapters_sync()
print(json.dumps([{key: str(value) for key, value in dict(adapter.info).items()} for adapter in adapters]))
"""


@dataclass(frozen=True)
class ProbedDevice:
    """A device that programs of some language run on, or why there is none."""

    device: str  # cuda:0, cuda:emulated, wgpu:llvmpipe
    use: str  # what it is good for: TIMED, JUDGED; "": nothing, as `lacks` says
    name: str = ""
    architecture: str = ""
    driver: str = ""
    memory: int | None = None  # bytes
    compiler: str = ""
    lacks: tuple[str, ...] = ()  # what is missing, each with what to try
    digest: str = ""  # as measurements name it; "": nothing is timed on it


def probe_devices(deadline: float = DEADLINE_S) -> list[ProbedDevice]:
    """All that is here or could be, in one order; each probe ends with the deadline at the latest."""
    probes = (_probe_cuda, _probe_emulator, _probe_adapters)
    with ThreadPoolExecutor(len(probes)) as executor:
        return [device for devices in executor.map(lambda probe: list(probe(deadline)), probes) for device in devices]


@cache
def list_own_gpus() -> dict[str, str]:
    """The GPUs of this machine that programs are timed on: their digests by name (`cuda:0`)."""
    return {device.device: device.digest for device in _probe_cuda(DEADLINE_S) if device.use == TIMED}


def _probe_cuda(deadline: float) -> Iterator[ProbedDevice]:
    answer = _ask_process([str(_RUNNER), "--describe"], deadline)
    gpus = answer.get("gpus") if isinstance(answer, dict) else None
    if not gpus:
        lack = answer if isinstance(answer, str) else answer.get("gpu_lack") or "no device"
        yield ProbedDevice("cuda", "", lacks=(f"{lack}; on a machine with a GPU: opsmith measure --on ssh:HOST",))
        return
    tools = (("nvidia-smi", _NO_SMI), ("compute-sanitizer", _NO_SANITIZER))
    lacks = tuple(lack for tool, lack in tools if shutil.which(tool) is None)
    for gpu in gpus:
        yield ProbedDevice(
            f"cuda:{gpu['index']}",
            TIMED,
            printable(str(gpu["name"])),
            str(gpu["architecture"]),
            f"CUDA {gpu['cuda']}",
            int(gpu["memory"]),
            lacks=lacks,
            digest=name_gpu(gpu),
        )


def name_gpu(gpu: Mapping[str, Any]) -> str:
    """The digest of a kind of GPU, of what the runner says of one, without its driver and clocks of the moment."""
    names = ("name", "architecture", "memory", "multiprocessors", "l2_bytes", "clock_khz", "memory_clock_khz")
    return content_hash("cuda", dumps({name: gpu.get(name) for name in names}))


def _probe_emulator(deadline: float) -> Iterator[ProbedDevice]:
    answer = _ask_process(["-c", _ASK_LANGUAGE, "cuda"], deadline)
    lack = answer if isinstance(answer, str) else str(answer.get("lack", ""))
    if lack:
        yield ProbedDevice("cuda:emulated", "", "an emulator on the processor", lacks=(lack,))
    else:
        compiler = str(answer.get("toolchain", "")) if isinstance(answer, dict) else ""
        yield ProbedDevice("cuda:emulated", JUDGED, "an emulator on the processor", compiler=compiler)


def _probe_adapters(deadline: float) -> Iterator[ProbedDevice]:
    answer = _ask_process(["-c", _ASK_ADAPTERS], deadline)
    if isinstance(answer, str):
        is_missing = "No module named 'wgpu'" in answer
        yield ProbedDevice("wgpu", "", lacks=(_NO_WGPU if is_missing else f"{answer}; try: opsmith devices once more",))
    elif not answer:
        lack = "no adapter; try: install a Vulkan driver, such as Debian's mesa-vulkan-drivers and libvulkan1"
        yield ProbedDevice("wgpu", "", lacks=(lack,))
    else:
        yield from {device.device: device for device in reversed([*map(_read_adapter, answer)])}.values()


def _read_adapter(adapter: Mapping[str, Any]) -> ProbedDevice:
    """Adapters of one name are one device, by the first of its drivers: Vulkan before OpenGL."""
    words = {key: printable(str(value)) for key, value in dict(adapter).items()}
    name = words.get("device") or words.get("description") or "unnamed"
    driver = f"{words.get('backend_type', '')} {words.get('description', '')}".strip()
    return ProbedDevice(f"wgpu:{name.split()[0].rstrip('(,')}", JUDGED, name, words.get("adapter_type", ""), driver)


def _ask_process(arguments: Sequence[str], seconds: float) -> Any:
    """What a process prints as JSON on its last line, or in words why there is nothing."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    try:
        answer, words = process.communicate(timeout=seconds)
        return json.loads(answer.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s: it was ended"
    except (ValueError, IndexError):
        status = process.returncode
        ended = f"the probe was killed by signal {-status}" if status < 0 else f"the probe ended with {status}"
        return ": ".join([ended, *(printable(line) for line in words.decode(errors="replace").splitlines()[-1:])])[:500]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
