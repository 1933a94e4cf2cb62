"""C: one translation unit that defines the function of a problem, compiled by gcc and called as machine code."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from opsmith.records import Diagnostic, Task
from opsmith.targets.c.canonical import NO_PARSER, write_canonical
from opsmith.targets.c.improvement import write_improvement, write_platform
from opsmith.targets.c.packages import CPackages
from opsmith.targets.c.prompt import write_prompt, write_rules
from opsmith.targets.c.recognition import is_program
from opsmith.targets.c.source import check_source
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.build import explain_lack_of_compiler
from opsmith.targets.native.flags import find_isa
from opsmith.targets.native.programs import NativePrograms
from opsmith.targets.native.task import read_native_task
from opsmith.targets.native.tokens import blank_comments
from opsmith.targets.protocols import PROPOSER, Tuner

VERIFIER = "c-2"  # raise it whenever a verdict can change: trials, limits, passes, what is refused


class CTarget(NativeTasks, NativePrograms, CPackages):
    """C behind the `Target` protocol."""

    name = "c"
    verifier = VERIFIER
    suffix = ".c"

    def explain_lack(self) -> str:
        return _explain_lack()

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

    def check_source(self, source: str) -> tuple[Diagnostic, ...]:
        return check_source(source)

    def blank_comments(self, source: str) -> str:
        return blank_comments(source)

    def canonical_form(self, source: str) -> str:
        return write_canonical(source)

    def describe_build(self, task: Task, source: str) -> str:
        from opsmith.targets.c.loops import list_loops  # noqa: PLC0415 - few commands need it
        from opsmith.targets.native.remarks import describe_loops  # noqa: PLC0415

        return describe_loops(self._make_request(task, source, read_native_task(task.text)[1]), list_loops(source))

    def make_tuner(self) -> Tuner:
        from opsmith.targets.c.tuning.tuner import CTuner  # noqa: PLC0415 - few need it

        return CTuner()


@cache
def _explain_lack() -> str:
    if find_spec("tree_sitter") is None or find_spec("tree_sitter_c") is None:
        return NO_PARSER
    return explain_lack_of_compiler()


C = CTarget()
