"""Metal: kernels with a launch plan, looked at by clang as C++ for OpenCL, and judged by emulation.

Apple's compiler never sees a program here, and verdicts say so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.records import Task
from opsmith.running.toolchain import CLANG, NO_CLANG, find_toolchain
from opsmith.targets.gpu.agreement import list_disagreements
from opsmith.targets.gpu.emulator.building import build_libraries
from opsmith.targets.gpu.emulator.running import EMULATED, PLAN, run_artefacts
from opsmith.targets.gpu.library_package import GpuPackages, PackageWords, PackedProgram
from opsmith.targets.gpu.options import EmulatedOptions
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.gpu.programs import Findings, GpuPrograms
from opsmith.targets.gpu.prompts import GpuPrompts
from opsmith.targets.gpu.resolving import DeviceLimits
from opsmith.targets.gpu.tasks import GpuTasks
from opsmith.targets.metal.agreement import check_launch
from opsmith.targets.metal.canonical import write_canonical
from opsmith.targets.metal.dialect import METAL_DIALECT, MOST_SHARED, find_large_memory
from opsmith.targets.metal.source import check_source, is_program
from opsmith.targets.metal.syntax import list_kernels
from opsmith.targets.metal.words import TYPES
from opsmith.targets.native.programs import open_cache
from opsmith.targets.native.tokens import blank_comments
from opsmith.targets.programs import Build, Solved

VERIFIER = "metal-2"  # raise it whenever a verdict can change: trials, limits, passes, what is refused

_NEEDS = """\
A call compiles its program by `torch.mps.compile_shader` and runs it on the GPU of a Mac. Programs were judged by
emulation: Apple's compiler has never seen them, and nobody has tried this on a Mac. Tensors of the CPU are copied there
and back."""
_NUMBERS = {"float": "float32", **dict.fromkeys(("long", "int64_t", "ulong", "uint64_t"), "int64")}  # dtypes of torch
_NUMBERS |= dict.fromkeys(("short", "ushort"), "int16")


class MetalTarget(GpuTasks, GpuPrograms, GpuPrompts, GpuPackages):
    """Metal behind the `Target` protocol."""

    name = "metal"
    verifier = VERIFIER
    suffix = ".metal"
    caveat = "emulated; never seen by Apple's compiler"  # said by reports
    needs = _NEEDS
    options = EmulatedOptions
    dtypes = tuple(TYPES)
    limits = DeviceLimits(block=(1024, 1024, 1024), grid=(2**31 - 1,) * 3, shared=MOST_SHARED)

    @staticmethod
    @cache
    def explain_lack() -> str:
        return NO_CLANG if find_toolchain(CLANG) is None else ""

    @staticmethod
    def describe_toolchain() -> str:
        toolchain = find_toolchain(CLANG)
        return (
            f"emulated by {toolchain.version if toolchain is not None else 'no clang'}; never seen by Apple's compiler"
        )

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    def list_kernels(self, source: str) -> Collection[str]:
        return [head.name for head in list_kernels(source)]

    def compare_plan(self, plan: BoundPlan, source: str) -> Findings:
        return () if check_source(source) else list_disagreements(plan, list_kernels(source), source, check_launch)

    def describe_type(self, dtype: str) -> str:
        nibbles = "; of b: char(b << 4) >> 4, then char(b) >> 4" if dtype == "int4x2" else ""
        codes = ", the code of each number: convert it by its bits" if dtype.startswith("fp8") else ""
        return f"{TYPES[dtype][0]}{codes}{nibbles}"

    blank_comments = staticmethod(blank_comments)

    canonical_form = staticmethod(write_canonical)

    def build_program(self, task: Task, source: str, is_kept: bool = False) -> Build:
        plan, needed = self.require_plan(task, source), "a program that is emulated, or Apple's compiler"
        libraries = build_libraries(METAL_DIALECT, source, plan, open_cache(), is_kept, needed)
        if isinstance(libraries, Build):
            return libraries
        if errors := tuple(find_large_memory(libraries[EMULATED], plan, source)):
            return Build({}, errors=errors)
        return Build({**libraries, PLAN: plan.write_json().encode()}, toolchain=self.describe_toolchain())

    def build_deployed(self, task: Task, source: str) -> Build:
        return self.build_program(task, source, is_kept=True)

    # -- programs taken away: few commands need it

    package = PackageWords("Metal", "opsmith.targets.metal.library_programs:MetalPrograms", " on the GPU of a Mac")

    def pack_program(self, solved: Solved) -> PackedProgram:
        """Raises UsageError for one that torch cannot launch."""
        plan = self.require_plan(solved.task, solved.source)
        if any(launch.shared != "0" for launch in plan.launches):
            expected = "threadgroup memory that kernels declare themselves: torch passes none"
            raise UsageError(f"{solved.task.id}: given shared= in its launch plan; expected {expected}")
        numbers = {
            head.name: [_NUMBERS.get(head.parameters[place].type, "int32") for _, place in sorted(head.buffers.items())]
            for head in list_kernels(solved.source)
        }
        return PackedProgram({"plan": plan.write_json(), "numbers": numbers})

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        return run_artefacts(METAL_DIALECT, artefacts, inputs)


METAL = MetalTarget()
