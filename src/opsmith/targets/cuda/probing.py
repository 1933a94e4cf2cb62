"""Where kernels in CUDA can be timed here, and judged."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.cuda import CUDA
from opsmith.targets.gpu.nvidia.devices import probe_timed
from opsmith.targets.probed import ProbedDevice, probe_emulator

__all__ = ["probe_judged", "probe_timed"]


def probe_judged() -> Iterator[ProbedDevice]:
    return probe_emulator(CUDA)
