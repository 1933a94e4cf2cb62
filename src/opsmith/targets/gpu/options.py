"""What a task of a GPU language can be told beside its problem: by default nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields

from opsmith.targets.gpu.passes import EMULATED_PASSES, FULL_PASSES
from opsmith.targets.native.layout import Pass
from opsmith.targets.native.task import Disagreement

DISAGREEMENT = Disagreement(
    "RACE",
    "the same outputs in whichever order threads and blocks run, and from call to call",
    "look for what several threads or blocks write without atomics, for what one thread reads that another writes with "
    "no barrier between, and for what is read before it is written",
    "look for workspaces, shared memory and outputs that are read before they are written, for entries that no thread "
    "writes, and for reads before or behind an array",
)


@dataclass(frozen=True)
class GpuOptions:
    """Options are the fields of a subclass: texts with a default, which `__post_init__` may refuse by UsageError."""

    @property
    def threads(self) -> int:
        return 1

    @property
    def full_passes(self) -> tuple[Pass, ...]:
        return FULL_PASSES

    @property
    def has_order(self) -> bool:
        return False  # atomics add in the order in which threads come

    @property
    def disagreement(self) -> Disagreement:
        return DISAGREEMENT

    def write_options(self) -> dict[str, str | int]:
        """Those that differ from the default; `read_options` reads them back."""
        values = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(type(self)(), name)}


@dataclass(frozen=True)
class EmulatedOptions(GpuOptions):
    """Of a language whose programs the emulator runs: what is kept is run as every program is."""

    @property
    def full_passes(self) -> tuple[Pass, ...]:
        return EMULATED_PASSES
