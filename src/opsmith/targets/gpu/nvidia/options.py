"""What a task for NVIDIA's GPUs can be told beside its problem: the architecture that its kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES
from opsmith.targets.gpu.options import GpuOptions
from opsmith.targets.gpu.passes import EMULATED_PASSES
from opsmith.targets.native.layout import Pass

DEFAULT_ARCH = "sm_90"


@dataclass(frozen=True)
class NvidiaOptions(GpuOptions):
    """How the programs of a task are built."""

    arch: str = DEFAULT_ARCH

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.arch not in ARCHITECTURES:
            raise UsageError(f"option arch: given {self.arch!r}; expected one of {', '.join(ARCHITECTURES)}")

    @property
    def full_passes(self) -> tuple[Pass, ...]:
        return EMULATED_PASSES
