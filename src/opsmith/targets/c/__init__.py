"""C: what is refused before any compiler sees a program, and its canonical form."""

from __future__ import annotations

from opsmith.records import Task
from opsmith.targets.c.prompt import write_prompt
from opsmith.targets.c.recognition import is_program
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.flags import find_isa
from opsmith.targets.protocols import PROPOSER


class CTarget(NativeTasks):
    """C."""

    name = "c"
    suffix = ".c"

    def base_prompt(self, role: str) -> str | None:
        return write_prompt(find_isa()) if role == PROPOSER else None

    def read_program(self, task: Task, text: str) -> str | None:
        return text if is_program(text) else None


C = CTarget()
