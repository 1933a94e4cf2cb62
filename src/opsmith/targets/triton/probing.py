"""Where kernels in Triton can be judged here, and timed."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.gpu.nvidia.devices import probe_timed
from opsmith.targets.probed import ProbedDevice, probe_emulator
from opsmith.targets.triton import TRITON

__all__ = ["probe_judged", "probe_timed"]


def probe_judged() -> Iterator[ProbedDevice]:
    return probe_emulator(TRITON, "Triton's interpreter on the processor")
