"""Triton: functions of Python with a launch plan, compiled for a stated GPU, and judged by Triton's interpreter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from opsmith.by_name import import_by_name
from opsmith.problems.digest import hash_problem
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import Diagnostic, Task
from opsmith.running.compiler import CompileFailure
from opsmith.targets.gpu.library_package import GpuPackages, PackageWords, PackedProgram
from opsmith.targets.gpu.nvidia.carrying import CONVENTION
from opsmith.targets.gpu.nvidia.options import DEFAULT_ARCH, NvidiaOptions
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.gpu.programs import GpuPrograms
from opsmith.targets.gpu.prompts import GpuPrompts
from opsmith.targets.gpu.resolving import resolve_plan
from opsmith.targets.gpu.tasks import GpuTasks
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.programs import open_cache
from opsmith.targets.native.signature import list_dims
from opsmith.targets.programs import Build, CarriedBuild, Solved
from opsmith.targets.triton.carrying import list_artefacts, plan_call
from opsmith.targets.triton.compiling import (
    TritonCubin,
    TritonOrder,
    compile_kernels,
    describe_triton,
    explain_lack_of_triton,
)
from opsmith.targets.triton.source import (
    check_source,
    is_program,
    list_disagreements,
    list_functions,
    write_canonical,
)
from opsmith.targets.triton.specialising import list_distinct, specialise
from opsmith.targets.triton.words import PLAN_WORDS, TYPES

VERIFIER = "triton-1"  # raise it whenever a verdict can change: trials, limits, passes, what is refused
PROGRAM, PLAN = "program", "plan"  # artefacts of a build
_INTERPRETER = "opsmith.targets.triton.interpreting"  # imports Triton: in candidates' processes only
_NEEDS = """\
A call compiles its program by Triton, on the GPU that torch finds, and runs it on torch's current stream. Programs were
judged by Triton's interpreter and compiled for a stated architecture: nobody has tried this on a GPU. Tensors of the
CPU are copied there and back."""


class TritonTarget(GpuTasks, GpuPackages, GpuPrograms, GpuPrompts):
    """Triton behind the `Target` protocol."""

    name = "triton"
    verifier = VERIFIER
    suffix = ".triton"
    comment = PLAN_WORDS.comment
    plan_words = PLAN_WORDS
    caveat = f"interpreted and compiled for {DEFAULT_ARCH}; not run on a GPU"  # said by reports
    needs = _NEEDS
    options = NvidiaOptions
    convention = CONVENTION
    package = PackageWords("Triton", "opsmith.targets.triton.library_programs:TritonPrograms", " on a GPU")
    requirements: Sequence[str] = ("torch>=2.6", "triton")
    dtypes = tuple(TYPES)
    prompt_values: Mapping[str, str] = MappingProxyType({"arch": DEFAULT_ARCH})

    explain_lack = staticmethod(explain_lack_of_triton)

    @staticmethod
    def describe_toolchain() -> str:
        return f"interpreted and compiled by {describe_triton()}; not run on a GPU"

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    def list_kernels(self, source: str) -> Collection[str]:
        return list_functions(source)

    def compare_plan(self, plan: BoundPlan, source: str) -> tuple[Diagnostic, ...]:
        return () if check_source(source) else list_disagreements(plan, source)

    def describe_type(self, dtype: str) -> str:
        nibbles = "; of b: (b << 4).to(tl.int8, bitcast=True) >> 4, then b.to(tl.int8, bitcast=True) >> 4"
        return f"tl.{TYPES[dtype][0]}{nibbles if dtype == 'int4x2' else ''}"

    canonical_form = staticmethod(write_canonical)

    def build_program(self, task: Task, source: str) -> Build:
        plan = self.require_plan(task, source)
        problem = self.find_problem(task)
        sizes = [each for name, each in choose_shape_sets(problem).items() if name == "base" or name in problem.shapes]
        result = self.compile_program(task, source, plan, sizes)
        if isinstance(result, BuildRefusal):
            return Build({}, errors=result.errors)
        if isinstance(result, CompileFailure):
            return Build({}, failure=result.reason)
        artefacts = {PROGRAM: source.encode(), PLAN: plan.write_json().encode()}
        return Build(artefacts, toolchain=self.describe_toolchain())

    def compile_program(
        self, task: Task, source: str, plan: BoundPlan, sizes: Sequence[Mapping[str, int]]
    ) -> TritonCubin | BuildRefusal | CompileFailure:
        """All kernels that launches at these sizes ask for."""
        problem, options = self.find_problem(task), self.find_options(task)
        assert isinstance(options, NvidiaOptions)
        launches = []
        for own in sizes:
            each = {**problem.base_sizes, **own}
            numbers = (*(each[name] for name in list_dims(problem)), *problem.scalars.values())
            for launch in resolve_plan(plan, numbers, self.limits).launches:
                launches.append(specialise(launch, numbers))
        order = TritonOrder(hash_problem(problem), source, options.arch, tuple(list_distinct(launches)))
        return compile_kernels(order, open_cache())

    # -- programs taken away: few commands need it

    def build_carried(self, task: Task, source: str) -> CarriedBuild:
        problem, plan = self.find_problem(task), self.require_plan(task, source)
        sizes = [*choose_shape_sets(problem).values(), *problem.bench.values()]
        result = self.compile_program(task, source, plan, sizes)
        if isinstance(result, BuildRefusal):
            return CarriedBuild(Build({}, errors=result.errors), {})
        if isinstance(result, CompileFailure):
            return CarriedBuild(Build({}, failure=result.reason), {})
        artefacts = list_artefacts(result, plan)
        return CarriedBuild(Build(artefacts, toolchain=describe_triton()), {"architecture": result.arch})

    plan_call = staticmethod(plan_call)

    def pack_program(self, solved: Solved) -> PackedProgram:
        plan = self.require_plan(solved.task, solved.source)
        return PackedProgram({"plan": plan.write_json()}, {".triton.py": solved.source.encode()})

    # -- in the candidate's process

    @staticmethod
    def preload_runtime() -> None:
        import_by_name(_INTERPRETER, "triton")

    @staticmethod
    def execute_artefacts(artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        run = import_by_name(f"{_INTERPRETER}:run_artefacts", "triton")
        outputs: bytes = run(artefacts[PROGRAM], artefacts[PLAN], inputs)
        return outputs


TRITON = TritonTarget()
