"""TVM: one TVMScript function with the problem's arguments, compiled by TVM and LLVM, called as machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import Template

from opsmith.by_name import import_by_name
from opsmith.errors import UsageError
from opsmith.problems.digest import hash_problem
from opsmith.problems.dtypes import TYPES
from opsmith.records import Diagnostic, Stage, Task
from opsmith.running.compiler import CompileFailure
from opsmith.targets.c.library.package import find_judged_isa, write_package
from opsmith.targets.c.library.readme import OWNERSHIP, PROOF
from opsmith.targets.c.torch_extension import write_torch_extension
from opsmith.targets.c.torch_module import write_torch_module
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.build import BuildRefusal, explain_lack_of_compiler
from opsmith.targets.native.explain import read_program, run_with_sanitizers
from opsmith.targets.native.flags import find_isa
from opsmith.targets.native.layout import DELAYED
from opsmith.targets.native.library.texts import describe_usage
from opsmith.targets.native.programs import NativePrograms, open_cache
from opsmith.targets.native.prompt_texts import PromptTexts, append_example, read_prompt_file, write_improvement_prompt
from opsmith.targets.native.standalone import WIDEST
from opsmith.targets.native.task import NativeOptions, read_native_task, read_task_problem
from opsmith.targets.native.variants import Variant
from opsmith.targets.programs import Build, Solved, StandaloneProgram, TorchExtension, TorchModule
from opsmith.targets.protocols import PROPOSER, Scheduler
from opsmith.targets.trial import Checked
from opsmith.targets.tvm.compiling import TvmOrder, compile_texts, describe_tvm, explain_lack_of_tvm
from opsmith.targets.tvm.instrumenting import explain_report, instrument, write_checks
from opsmith.targets.tvm.interface import check_head, list_arrays, name_type, write_c_form, write_head, write_unit
from opsmith.targets.tvm.source import (
    check_source,
    explain_vector_scalars,
    is_program,
    read_parameters,
    refuse_parallel,
    refuse_shared_scalars,
    write_canonical,
)

VERIFIER = "tvm-4"  # raise it whenever a verdict can change: trials, limits, passes, what is refused

_CHECKED = "checked"  # the form of a program that explains its failure

_NEEDS = """\
Installing compiles the programs with gcc. Each is a unit in C that holds what TVM made of it, as assembly for the
instruction set of its verdict: TVM is not needed, and another instruction set takes another export."""

TEXTS = PromptTexts("opsmith.targets.tvm", ".tvm", NativeOptions(), write_head)


class TvmTarget(NativeTasks, NativePrograms):
    """TVMScript behind the `Target` protocol."""

    name = "tvm"
    verifier = VERIFIER
    comment = "#"
    suffix = ".tvm"
    requirements: Sequence[str] = ("torch>=2.6",)  # of a package
    write_function = staticmethod(write_head)

    @staticmethod
    def explain_lack() -> str:
        return explain_lack_of_tvm() or explain_lack_of_compiler()

    explained_kinds = frozenset({"RUN", "MEMORY", "STATE", "RACE", "DATA"})

    def describe_toolchain(self) -> str:
        return f"{describe_tvm()} {super().describe_toolchain()}"

    def describe_type(self, dtype: str) -> str:
        return f"{name_type(dtype)}, the bits of each" if TYPES[dtype].bytes == 1 else name_type(dtype)

    @staticmethod
    def frame_function(function: str) -> list[str]:
        return [function.rstrip()]  # without statements it is refused

    def base_prompt(self, role: str) -> str | None:
        return append_example(TEXTS, self.prompt_without_example()) if role == PROPOSER else None

    def prompt_without_example(self) -> str:
        return Template(read_prompt_file(TEXTS, "proposer.yaml")).substitute(isa=find_isa().name)

    def describe_platform(self) -> str:
        return Template(read_prompt_file(TEXTS, "platform.txt")).substitute(isa=find_isa().name)

    def improvement_prompt(self, has_example: bool) -> str:
        return write_improvement_prompt(TEXTS, self.prompt_without_example(), has_example)

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    canonical_form = staticmethod(write_canonical)

    read_parameters = staticmethod(read_parameters)

    def check_program(self, task: Task, source: str) -> Checked:
        checked = super().check_program(task, source)
        problem, options = read_native_task(task.text)
        errors: tuple[Diagnostic, ...] = checked.errors or check_head(problem, source)
        if not errors:
            errors = refuse_parallel(source) if options.threads == 1 else refuse_shared_scalars(source)
        return Checked(Stage("PARSE"), errors=errors) if errors else checked

    def write_assembly(self, task: Task, source: str) -> tuple[str, str]:
        return self._make_assembly(task, source, find_isa().name), find_isa().name

    def make_scheduler(self) -> Scheduler:
        scheduler: Scheduler = import_by_name("opsmith_lab.tvm.scheduler:TvmScheduler", "language 'tvm': schedules")()
        return scheduler

    def explain_failure(
        self, task: Task, source: str, inputs: bytes | memoryview, finding: Diagnostic
    ) -> tuple[Diagnostic, ...]:
        problem = read_task_problem(task.text)
        program = instrument(source, list_arrays(problem))
        assembly = self._compile(task, source, {_CHECKED: program.text})
        if not isinstance(assembly, Mapping):
            return ()
        unit = f"#define OPSMITH_OWN\n{write_checks(is_explained=True)}{write_unit(problem)}"
        failed = replace(read_program(task.text, unit, find_isa(), inputs), assembly=assembly[_CHECKED])
        return explain_report(program, source, run_with_sanitizers(failed)) or explain_vector_scalars(source)

    def build_forms(self, task: Task, source: str, options: NativeOptions, variants: Sequence[Variant]) -> Build:
        """A build that delays threads has the checks in place of that: they see every race."""
        problem = read_task_problem(task.text)
        hooks = write_checks(is_explained=False)
        checked = {one.name: replace(one, surroundings=one.surroundings + hooks) for one in variants}
        variants = [checked[one.name] if one.name == DELAYED else one for one in variants]
        texts = {DELAYED: instrument(source, list_arrays(problem)).text} if DELAYED in checked else {}
        assembly = self._compile(task, source, {"": source, **texts})
        if isinstance(assembly, BuildRefusal):
            return Build({}, assembly.errors)
        if isinstance(assembly, CompileFailure):
            return Build({}, failure=assembly.reason)
        build = self._build_variants(task, write_unit(problem), options, variants, assembly)
        return replace(build, toolchain=f"{describe_tvm()}, {build.toolchain}")

    def build_standalone(self, task: Task, source: str, inputs: bytes | memoryview) -> StandaloneProgram:
        text = self._write_c(task, source, WIDEST if find_isa().name == "x86-64-v4" else find_isa().name)
        return super().build_standalone(task, text, inputs)

    def _compile(
        self, task: Task, source: str, texts: Mapping[str, str], processor: str = ""
    ) -> Mapping[str, str] | BuildRefusal | CompileFailure:
        """The assembly of its forms by name; `processor`: in place of this machine's."""
        digest = hash_problem(read_task_problem(task.text))
        return compile_texts(TvmOrder(digest, texts, processor or find_isa().name), source, open_cache())

    # -- programs taken away, as C with what TVM made of them

    def _make_assembly(self, task: Task, source: str, processor: str) -> str:
        """Raises UsageError."""
        assembly = self._compile(task, source, {"": source}, processor)
        if not isinstance(assembly, Mapping):
            raise UsageError(f"task {task.id!r}: the program does not compile")
        return assembly[""]

    def _write_c(self, task: Task, source: str, processor: str) -> str:
        assembly = self._make_assembly(task, source, processor)
        return write_c_form(read_task_problem(task.text), assembly, processor)

    def _as_c(self, solved: Solved) -> Solved:
        own, sized = find_judged_isa(solved.build).name, solved.by_size
        parts = [replace(one, source=self._write_c(solved.task, one.source, own)) for one in sized]
        source = solved.source if parts else self._write_c(solved.task, solved.source, own)
        return replace(solved, source=source, by_size=tuple(parts))

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        files = write_package(name, [self._as_c(solved) for solved in operators], "TVM")
        for solved in operators:
            sources = {f"{solved.name}__{number}": one.source for number, one in enumerate(solved.by_size)}
            for unit, source in (sources or {solved.name: solved.source}).items():
                files[f"{name}/csrc/{unit}.tvm"] = source
        return files

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        return describe_usage(name, operators, _NEEDS)

    def describe_proof(self, name: str) -> str:
        return PROOF

    def describe_ownership(self, name: str) -> str:
        return OWNERSHIP.format(name=name)

    def write_torch_module(self, solved: Solved) -> TorchModule:
        return write_torch_module(self._as_c(solved))

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        return write_torch_extension(self._as_c(solved))


TVM = TvmTarget()
