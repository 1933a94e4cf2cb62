"""A GPU language as small as one can be: kernels are found by a word, nothing is built."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.records import Diagnostic, Task
from opsmith.targets.gpu.canonical import write_canonical_plan
from opsmith.targets.gpu.options import GpuOptions
from opsmith.targets.gpu.plan import LaunchPlan
from opsmith.targets.gpu.programs import GpuPrograms
from opsmith.targets.gpu.reading import read_plan
from opsmith.targets.gpu.tasks import GpuTasks


@dataclass(frozen=True)
class PlainOptions(GpuOptions):
    chip: str = "one"

    def __post_init__(self) -> None:
        if self.chip not in ("one", "two"):
            raise UsageError(f"option chip: given {self.chip!r}; expected one or two")


class PlainGpuTarget(GpuTasks, GpuPrograms):
    name = "plain_gpu"
    verifier = "plain_gpu-1"
    suffix = ".gpu"
    options = PlainOptions
    dtypes = ("fp32", "fp16", "int32")

    def base_prompt(self, role: str) -> str | None:
        return None

    def read_program(self, task: Task, text: str) -> str | None:
        return text

    def check_source(self, source: str) -> tuple[Diagnostic, ...]:
        return (Diagnostic("PARSE", "program", "asm", "no assembly"),) if "asm" in source else ()

    def list_kernels(self, source: str) -> Collection[str]:
        return re.findall(r"^kernel (\w+)", source, re.MULTILINE)

    def canonical_form(self, source: str) -> str:
        plan = read_plan(source)
        assert isinstance(plan, LaunchPlan)
        return write_canonical_plan(plan, {}) + "\n".join(re.findall(r"^kernel.*", source, re.MULTILINE))


PLAIN_GPU = PlainGpuTarget()
