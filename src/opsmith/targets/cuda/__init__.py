"""CUDA: kernels with a launch plan, compiled by NVRTC for a stated architecture, and judged by emulation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from opsmith.errors import UsageError
from opsmith.problems.digest import hash_problem
from opsmith.problems.dtypes import TYPES
from opsmith.records import Task
from opsmith.running.toolchain import CXX_COMPILER, NO_CXX_COMPILER, find_toolchain
from opsmith.targets.cuda.agreement import check_launch
from opsmith.targets.cuda.building import CudaRequest, build_cuda, describe_tools
from opsmith.targets.cuda.canonical import write_canonical
from opsmith.targets.cuda.carrying import build_carried
from opsmith.targets.cuda.dialect import CUDA_DIALECT
from opsmith.targets.cuda.recognition import is_program
from opsmith.targets.cuda.remarks import describe_resources
from opsmith.targets.cuda.source import check_source
from opsmith.targets.cuda.syntax import NO_PARSER, list_kernels
from opsmith.targets.cuda.toolkit import NO_NVRTC, find_toolkit
from opsmith.targets.gpu.agreement import list_disagreements
from opsmith.targets.gpu.emulator.running import run_artefacts
from opsmith.targets.gpu.library_package import GpuPackages, PackageWords, PackedProgram
from opsmith.targets.gpu.nvidia.carrying import CONVENTION, KERNELS, PLAN, PROGRAM, plan_call
from opsmith.targets.gpu.nvidia.options import DEFAULT_ARCH, NvidiaOptions
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.gpu.programs import Findings, GpuPrograms
from opsmith.targets.gpu.prompts import GpuPrompts
from opsmith.targets.gpu.tasks import GpuTasks
from opsmith.targets.native.programs import open_cache
from opsmith.targets.native.tokens import blank_comments
from opsmith.targets.programs import Build, CarriedBuild, Solved, TorchExtension, TorchModule

VERIFIER = "cuda-3"  # raise it whenever a verdict can change: trials, limits, passes, what is refused

_NEEDS = """\
A call launches the kernels by NVIDIA's driver: for tensors of a GPU on torch's current stream, without waiting; tensors
of the CPU are copied there and back. `programs/*.cubin` were compiled for the architecture that the table names, and
run on devices of its generation; the sources lie beside them."""


class CudaTarget(GpuTasks, GpuPrograms, GpuPrompts, GpuPackages):
    """CUDA behind the `Target` protocol."""

    name = "cuda"
    verifier = VERIFIER
    needs = _NEEDS
    suffix = ".cu"
    options = NvidiaOptions
    convention = CONVENTION
    prompt_values: Mapping[str, str] = MappingProxyType({"arch": DEFAULT_ARCH})

    @staticmethod
    @cache
    def explain_lack() -> str:
        if find_spec("tree_sitter") is None or find_spec("tree_sitter_cuda") is None:
            return NO_PARSER
        if find_toolkit() is None:
            return NO_NVRTC
        return NO_CXX_COMPILER if find_toolchain(CXX_COMPILER) is None else ""

    describe_toolchain = staticmethod(describe_tools)

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    def list_kernels(self, source: str) -> Collection[str]:
        return [head.name for head in list_kernels(source)]

    def compare_plan(self, plan: BoundPlan, source: str) -> Findings:
        return list_disagreements(plan, list_kernels(source), source, check_launch)

    def describe_type(self, dtype: str) -> str:
        word = TYPES[dtype].cuda[0]
        header = " of <cuda_fp8.h>, read by float(x[i]), made by its constructor" if "fp8" in word else ""
        nibbles = "; of b: (signed char)(b << 4) >> 4, then (signed char)b >> 4" if dtype == "int4x2" else ""
        return f"{word}{header}{nibbles}"

    blank_comments = staticmethod(blank_comments)

    canonical_form = staticmethod(write_canonical)

    def build_program(self, task: Task, source: str) -> Build:
        return build_cuda(self.make_request(task, source), open_cache())

    def build_deployed(self, task: Task, source: str) -> Build:
        return build_cuda(self.make_request(task, source), open_cache(), is_kept=True)

    def make_request(self, task: Task, source: str) -> CudaRequest:
        """What is built of a program that `check_program` passed."""
        options = self.find_options(task)
        assert isinstance(options, NvidiaOptions)
        plan = self.require_plan(task, source)
        return CudaRequest(hash_problem(self.find_problem(task)), source, plan, options.arch)

    def build_carried(self, task: Task, source: str) -> CarriedBuild:
        return build_carried(self.make_request(task, source), open_cache())

    plan_call = staticmethod(plan_call)

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        return run_artefacts(CUDA_DIALECT, artefacts, inputs)

    def describe_build(self, task: Task, source: str) -> str:
        problem, request = self.find_problem(task), self.make_request(task, source)
        return describe_resources(request, problem, open_cache())

    # -- programs taken away: few commands need it

    package = PackageWords(
        "CUDA", "opsmith.targets.gpu.nvidia.library_programs:CubinPrograms", ", launched by NVIDIA's driver"
    )

    def pack_program(self, solved: Solved) -> PackedProgram:
        """With the cubin as it is timed on a GPU. Raises UsageError for one that could not be built."""
        carried = self.build_carried(solved.task, solved.source)
        artefacts = carried.build.artefacts
        if not artefacts:
            reason = carried.build.failure or "; ".join(str(error) for error in carried.build.errors)
            raise UsageError(f"{solved.task.id}: its kernels were not built: {reason}; expected a cubin of each")
        texts = {name: artefacts[key].decode() for name, key in (("plan", PLAN), ("kernels", KERNELS))}
        return PackedProgram(
            {**texts, "architecture": str(carried.needs["architecture"])}, {".cubin": artefacts[PROGRAM]}
        )

    def write_torch_module(self, solved: Solved) -> TorchModule:
        from opsmith.targets.cuda.host_code.torch_module import write_torch_module  # noqa: PLC0415 - few commands need it

        return write_torch_module(solved)

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        from opsmith.targets.cuda.host_code.torch_extension import write_torch_extension  # noqa: PLC0415

        return write_torch_extension(solved)


CUDA = CudaTarget()
