"""WGSL behind the `Target` protocol: naga looks at a program, the software driver of this machine runs it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from opsmith.problems.dtypes import BYTE_FLOATS, TYPES
from opsmith.records import Task
from opsmith.targets.gpu.library_package import GpuPackages, PackageWords, PackedProgram
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.gpu.programs import Findings, GpuPrograms
from opsmith.targets.gpu.prompts import GpuPrompts
from opsmith.targets.gpu.tasks import GpuTasks
from opsmith.targets.native.signature import fill_places
from opsmith.targets.programs import Build, Solved
from opsmith.targets.wgsl import webgpu
from opsmith.targets.wgsl.canonical import write_canonical
from opsmith.targets.wgsl.conventions import check_conventions
from opsmith.targets.wgsl.encoding import DTYPES
from opsmith.targets.wgsl.lexing import blank_comments
from opsmith.targets.wgsl.limits import LIMITS
from opsmith.targets.wgsl.recognition import is_program
from opsmith.targets.wgsl.running import run_artefacts
from opsmith.targets.wgsl.source import check_source
from opsmith.targets.wgsl.syntax import WgslSyntaxError, read_module

VERIFIER = "wgsl-3"  # raise it whenever a verdict can change: trials, limits, passes, what is refused

_NEEDS = """\
A call runs its program on the first device of WebGPU that is no software driver, or else on that one (Mesa's llvmpipe,
on which the programs were judged; `OPSMITH_WGSL_DEVICE=software` asks for it). Tensors lie on the CPU, and are copied
to the device and back."""

_NIBBLES = ", one byte in each; its numbers are i32(b << 28u) >> 28u and i32(b << 24u) >> 28u"
_FP8 = """
fn NAME_to_f32(code: u32) -> f32 {
  let size = code & 127u;
  let large = bitcast<f32>((size << SHIFT) + OFFSET + select(0u, OFFSET, size > MOST));
  let value = select(large, f32(size) * UNIT, size < CODES);
  return select(value, -value, code > 127u);
}
fn f32_to_NAME(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let size = min(bits & 0x7fffffffu, LARGEST);
  let small = bitcast<u32>(bitcast<f32>(size) + SCALE) & 127u;
  let large = (size - OFFSET + HALF + (size >> SHIFT & 1u)) >> SHIFT;
  let code = select(large, small, size < LEAST);
  return (bits >> 24u & 128u) | select(code, 127u, (bits & 0x7fffffffu) > 0x7f800000u);
}
""".lstrip("\n")


class WgslTarget(GpuTasks, GpuPrograms, GpuPrompts, GpuPackages):
    """Fits `Built`, `Loaded`, `Driven`, `Executed`, `Equipped`, `Versioned`, `Canonical`, `Commented`, `Suffixed`,
    and what `GpuTasks`, `GpuPrograms` and `GpuPrompts` fit."""

    name = "wgsl"
    verifier = VERIFIER
    needs = _NEEDS
    suffix = ".wgsl"
    dtypes = DTYPES
    limits = LIMITS

    explain_lack = staticmethod(cache(webgpu.explain_lack_of_webgpu))

    def describe_toolchain(self) -> str:
        from opsmith.targets.wgsl.compiling import describe_driver  # noqa: PLC0415 - not in candidates' processes

        return describe_driver()

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    def list_kernels(self, source: str) -> Collection[str] | None:
        try:
            return [name for name, function in read_module(source).functions.items() if function.is_entry]
        except WgslSyntaxError:
            return None

    def compare_plan(self, plan: BoundPlan, source: str) -> Findings:
        return () if check_source(source) else check_conventions(source, plan)

    def describe_type(self, dtype: str) -> str:
        word = f"{TYPES[dtype].wgsl[0]} in arrays"
        if dtype in BYTE_FLOATS:
            return f"{word}, its code in each; write these functions:\n{fill_places(_FP8, dtype)}"
        return f"{word}{_NIBBLES if dtype == 'int4x2' else ', one number in each'}"

    blank_comments = staticmethod(blank_comments)

    canonical_form = staticmethod(write_canonical)

    def build_program(self, task: Task, source: str) -> Build:
        from opsmith.targets.wgsl.compiling import build_forms  # noqa: PLC0415 - not in candidates' processes

        bound = self.bind_program(task, source)
        if not isinstance(bound, BoundPlan):
            return Build({}, bound)
        return build_forms(source, bound)

    # -- programs taken away: few commands need it

    requirements: Sequence[str] = ("torch>=2.6", "wgpu>=0.32,<0.33")  # of a package

    package = PackageWords("WGSL", "opsmith.targets.wgsl.library_programs:WgslPrograms", " on a device of WebGPU")

    def pack_program(self, solved: Solved) -> PackedProgram:
        from opsmith.targets.wgsl.instrumenting import list_checks  # noqa: PLC0415 - not in candidates' processes

        plan = self.require_plan(solved.task, solved.source)
        kernels = {
            kernel: {"widths": dict(widths), "has_numbers": has_numbers}
            for kernel, (_, widths, _, has_numbers) in list_checks(read_module(solved.source), plan)["kernels"].items()
        }
        return PackedProgram({"plan": plan.write_json(), "kernels": kernels})

    def runtime_paths(self) -> Sequence[Path]:
        return tuple(webgpu.list_runtime())

    execute_artefacts = staticmethod(run_artefacts)

    def preload_runtime(self) -> None:
        webgpu.preload_driver()


WGSL = WgslTarget()
