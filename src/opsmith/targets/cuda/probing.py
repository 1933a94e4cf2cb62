"""Where kernels in CUDA can be timed here, and judged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from opsmith.records import printable
from opsmith.targets.cuda import CUDA
from opsmith.targets.cuda.carrying import hash_gpu
from opsmith.targets.cuda.device_calls import ask_driver
from opsmith.targets.probed import JUDGED, TIMED, ProbedDevice

_NO_SMI = "nvidia-smi: not installed, so that clocks are not recorded; try: install NVIDIA's driver with its tools"
_NO_SANITIZER = "compute-sanitizer: not installed, so that faults are not explained; try: install the CUDA toolkit"


def probe_timed() -> Iterator[ProbedDevice]:
    """NVIDIA's devices, as the driver says them."""
    answer = ask_driver()
    if not answer["gpus"]:
        lack = f"{answer.get('gpu_lack') or 'no device'}; on a machine with a GPU: opsmith measure --on ssh:HOST"
        yield ProbedDevice("cuda", "", lacks=(lack,))
    tools = (("nvidia-smi", _NO_SMI), ("compute-sanitizer", _NO_SANITIZER))
    lacks = tuple(lack for tool, lack in tools if shutil.which(tool) is None)
    for gpu in answer["gpus"]:
        yield ProbedDevice(
            f"cuda:{gpu['index']}",
            TIMED,
            printable(str(gpu["name"])),
            str(gpu["architecture"]),
            f"CUDA {gpu['cuda']}",
            int(gpu["memory"]),
            lacks=lacks,
            digest=hash_gpu(gpu),
        )


def probe_judged() -> Iterator[ProbedDevice]:
    """The emulator."""
    lack = CUDA.explain_lack()
    compiler = "" if lack else CUDA.describe_toolchain()
    use, lacks = ("", (lack,)) if lack else (JUDGED, ())
    yield ProbedDevice("cuda:emulated", use, "an emulator on the processor", compiler=compiler, lacks=lacks)
