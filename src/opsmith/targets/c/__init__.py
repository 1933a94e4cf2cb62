"""C: one translation unit that defines the function of a problem, compiled by gcc and called as machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec

from opsmith.by_name import import_by_name
from opsmith.records import Task
from opsmith.targets.c.canonical import NO_PARSER, write_canonical
from opsmith.targets.c.improvement import write_improvement, write_platform
from opsmith.targets.c.library.readme import OWNERSHIP, PROOF, describe_usage
from opsmith.targets.c.loops import list_loops
from opsmith.targets.c.prompt import write_prompt, write_rules
from opsmith.targets.c.recognition import is_program
from opsmith.targets.c.source import check_source
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.build import explain_lack_of_compiler
from opsmith.targets.native.flags import find_isa
from opsmith.targets.native.programs import NativePrograms
from opsmith.targets.native.remarks import describe_loops
from opsmith.targets.native.tokens import blank_comments
from opsmith.targets.programs import Solved, TorchExtension, TorchModule
from opsmith.targets.protocols import PROPOSER, Tuner

VERIFIER = "c-3"  # raise it whenever a verdict can change: trials, limits, passes, what is refused


class CTarget(NativeTasks, NativePrograms):
    """C behind the `Target` protocol."""

    name = "c"
    verifier = VERIFIER
    suffix = ".c"
    requirements: Sequence[str] = ("torch>=2.6",)  # of a package

    @staticmethod
    @cache
    def explain_lack() -> str:
        if find_spec("tree_sitter") is None or find_spec("tree_sitter_c") is None:
            return NO_PARSER
        return explain_lack_of_compiler()

    def base_prompt(self, role: str) -> str | None:
        return write_prompt(find_isa()) if role == PROPOSER else None

    def prompt_without_example(self) -> str:
        return write_rules(find_isa())

    def describe_platform(self) -> str:
        return write_platform(find_isa())

    def improvement_prompt(self, has_example: bool) -> str:
        return write_improvement(find_isa(), has_example)

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None

    check_source = staticmethod(check_source)

    blank_comments = staticmethod(blank_comments)

    canonical_form = staticmethod(write_canonical)

    def describe_build(self, task: Task, source: str) -> str:
        return describe_loops(self._make_request(task, source), list_loops(source))

    def number_program(self, source: str, number: int) -> str:
        return f"{source}\nenum {{ candidate_number = {number} }};\n"

    def make_tuner(self) -> Tuner:
        tuner: Tuner = import_by_name("opsmith_lab.c.tuning.tuner:CTuner", "language 'c': its tuner")()
        return tuner

    def read_parameters(self, source: str) -> Mapping[str, tuple[int, ...]]:
        read = import_by_name("opsmith_lab.c.tuning.parameters:read_parameters", "language 'c': its parameters")
        parameters: Mapping[str, tuple[int, ...]] = read(source)
        return parameters

    # -- programs taken away: few commands need it

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        from opsmith.targets.c.library.package import write_package  # noqa: PLC0415

        return write_package(name, operators)

    describe_usage = staticmethod(describe_usage)

    def describe_proof(self, name: str) -> str:
        return PROOF

    def describe_ownership(self, name: str) -> str:
        return OWNERSHIP.format(name=name)

    def write_torch_module(self, solved: Solved) -> TorchModule:
        from opsmith.targets.c.torch_module import write_torch_module  # noqa: PLC0415

        return write_torch_module(solved)

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        from opsmith.targets.c.torch_extension import write_torch_extension  # noqa: PLC0415

        return write_torch_extension(solved)


C = CTarget()
