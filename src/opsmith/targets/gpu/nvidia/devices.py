"""NVIDIA's GPUs as their driver says them: those of this machine, and what measurements call a kind of one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from opsmith.records import content_hash, dumps, printable
from opsmith.targets.gpu.nvidia.device_calls import ask_driver
from opsmith.targets.probed import TIMED, ProbedDevice

DEVICE = "cuda"  # the kind, as leases, measurements and torch name it
_NO_SMI = "nvidia-smi: not installed, so that clocks are not recorded; try: install NVIDIA's driver with its tools"
_NO_SANITIZER = "compute-sanitizer: not installed, so that faults are not explained; try: install the CUDA toolkit"


def describe_device(machine: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of device: driver and clocks of the moment stand beside it, in its name and in the results."""
    gpu = machine["gpus"][0]
    name, architecture, cuda = (printable(str(gpu[word]))[:80] for word in ("name", "architecture", "cuda"))
    return _hash_gpu(gpu), f"{name} ({architecture}, CUDA {cuda})"


def probe_timed() -> Iterator[ProbedDevice]:
    """For `probing` of each language whose programs run there."""
    answer = ask_driver()
    if not answer["gpus"]:
        lack = f"{answer.get('gpu_lack') or 'no device'}; on a machine with a GPU: opsmith measure --on ssh:HOST"
        yield ProbedDevice(DEVICE, "", lacks=(lack,))
    tools = (("nvidia-smi", _NO_SMI), ("compute-sanitizer", _NO_SANITIZER))
    lacks = tuple(lack for tool, lack in tools if shutil.which(tool) is None)
    for gpu in answer["gpus"]:
        yield ProbedDevice(
            f"{DEVICE}:{gpu['index']}",
            TIMED,
            printable(str(gpu["name"])),
            str(gpu["architecture"]),
            f"CUDA {gpu['cuda']}",
            int(gpu["memory"]),
            lacks=lacks,
            digest=_hash_gpu(gpu),
        )


def _hash_gpu(gpu: Mapping[str, Any]) -> str:
    """The digest of a kind of GPU, of what the driver says of one, without its version and clocks of the moment."""
    names = ("name", "architecture", "memory", "multiprocessors", "l2_bytes", "clock_khz", "memory_clock_khz")
    return content_hash(DEVICE, dumps({name: gpu.get(name) for name in names}))
