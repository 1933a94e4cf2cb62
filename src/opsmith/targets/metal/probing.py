"""Where kernels in Metal can be judged here: by the emulator. None is timed."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.metal import METAL
from opsmith.targets.probed import JUDGED, ProbedDevice


def probe_timed() -> Iterator[ProbedDevice]:
    """None."""
    return iter(())


def probe_judged() -> Iterator[ProbedDevice]:
    """The emulator."""
    lack = METAL.explain_lack()
    compiler = "" if lack else METAL.describe_toolchain()
    use, lacks = ("", (lack,)) if lack else (JUDGED, ())
    yield ProbedDevice("metal:emulated", use, "an emulator on the processor", compiler=compiler, lacks=lacks)
