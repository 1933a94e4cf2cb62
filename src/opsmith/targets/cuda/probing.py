"""Where kernels in CUDA can be timed here, and judged."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.cuda import CUDA
from opsmith.targets.gpu.nvidia.devices import probe_timed
from opsmith.targets.probed import JUDGED, ProbedDevice

__all__ = ["probe_judged", "probe_timed"]


def probe_judged() -> Iterator[ProbedDevice]:
    """The emulator."""
    lack = CUDA.explain_lack()
    compiler = "" if lack else CUDA.describe_toolchain()
    use, lacks = ("", (lack,)) if lack else (JUDGED, ())
    yield ProbedDevice("cuda:emulated", use, "an emulator on the processor", compiler=compiler, lacks=lacks)
