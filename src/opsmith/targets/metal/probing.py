"""Where kernels in Metal can be judged here. None is timed."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.metal import METAL
from opsmith.targets.probed import ProbedDevice, probe_emulator


def probe_judged() -> Iterator[ProbedDevice]:
    return probe_emulator(METAL)
