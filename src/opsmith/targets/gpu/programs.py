"""What GPU languages share of a target: a program's plan is checked, and outputs are judged as those of C are.

A language adds `check_source`, `list_kernels`, `canonical_form`, its prompt, and how programs are built and run;
`GpuTasks` is the part that makes tasks.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import Diagnostic, Stage, Task
from opsmith.targets.gpu.binding import bind_plan, find_missing_kernels
from opsmith.targets.gpu.faults import locate_fault
from opsmith.targets.gpu.plan import PLAN_WORDS, BoundPlan, LaunchPlan, PlanWords
from opsmith.targets.gpu.reading import KIND, MOST, add_texts, read_plan
from opsmith.targets.gpu.resolving import LIMITS, DeviceLimits, PlanFault, resolve_plan
from opsmith.targets.native.draw_judging import DrawnTrials
from opsmith.targets.native.signature import list_dims
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.programs import sort_parameters
from opsmith.targets.trial import Checked

Findings = tuple[Diagnostic, ...]
_UNROLLED = re.compile(r"#\s*pragma\s+(?:GCC\s+)?unroll\s*\(?\s*(\d+)")
_NAMED = re.compile(
    r"#\s*define[ \t]+(\w+)[ \t]+(\d+)\b"
    r"|\b(?:const|constexpr|override)\b[^=;(){}]*?\b(\w+)(?:\s*:\s*\w+)?\s*=\s*(\d+)[uU]?\s*[,;]"
)


def name_parameter(name: str) -> str:
    """The kind of a named constant: `num_stages` is a stage, `UNROLL` an unroll, `num_warps` a block."""
    words = {"stage": "stage", "unroll": "unroll", "warp": "block", "thread": "block"}
    return next((kind for word, kind in words.items() if word in name.lower()), "tile")


class GpuPrograms(DrawnTrials, ABC):
    """Fits `HidesSizes`, `Locating`, `Preloaded`, `Referenced`; most of `Target`, and what `Executed` asks of data."""

    name: str
    verifier: str
    plan_words: PlanWords = PLAN_WORDS
    comment = PLAN_WORDS.comment
    stages = ("PARSE", "COMPILE")
    limits: DeviceLimits = LIMITS

    @abstractmethod
    def check_source(self, source: str) -> Findings:
        """What is refused at PARSE, before a compiler sees it, beside the launch plan."""

    @abstractmethod
    def list_kernels(self, source: str) -> Collection[str] | None:
        """The names of the kernels that a text defines; None where that cannot be said of it. Never raises."""

    @abstractmethod
    def canonical_form(self, source: str) -> str:
        """Equal for programs that differ in names and layout only; the plan is a part of it (`canonical`)."""

    def check_program(self, task: Task, source: str) -> Checked:
        bound = self.bind_program(task, source)
        plan_errors = () if isinstance(bound, BoundPlan) else bound
        errors = (*self.check_source(source), *plan_errors)[:MOST]
        if errors:
            return Checked(Stage("PARSE"), errors=errors)
        return Checked(Stage.RUN, self.canonical_form(source))

    def bind_program(self, task: Task, source: str) -> BoundPlan | Findings:
        """The plan of a program for the arguments of its task, or what is wrong with it, also at the stated sizes."""
        plan = read_plan(source, self.plan_words)
        if isinstance(plan, tuple):
            return plan
        kernels = self.list_kernels(source)
        missing = () if kernels is None else find_missing_kernels(plan, kernels)
        bound = bind_plan(plan, read_task_problem(task.text))
        errors = (*missing, *(() if isinstance(bound, BoundPlan) else bound))
        if isinstance(bound, BoundPlan) and not errors:
            errors = self._check_stated_sizes(task, bound)
        if errors or not isinstance(bound, BoundPlan):
            return add_texts(errors, source)
        return self.compare_plan(bound, source) or bound

    def compare_plan(self, plan: BoundPlan, source: str) -> Findings:
        """Where kernels and the plan that launches them do not agree; `source` may have findings of its own."""
        return ()

    def require_plan(self, task: Task, source: str) -> BoundPlan:
        """The plan of a program that `check_program` passed. Raises ValueError for another one."""
        bound = self.bind_program(task, source)
        if not isinstance(bound, BoundPlan):
            raise ValueError(f"a program that is refused at PARSE: {bound[0]}")
        return bound

    def read_parameters(self, source: str) -> Mapping[str, tuple[int, ...]]:
        """As `Parametrised` has it: blocks and numbers for compilation of the plan, named constants, directives."""
        plan = read_plan(source, self.plan_words)
        pairs = [("unroll", int(match[1])) for match in _UNROLLED.finditer(source)]
        named = [(match[1] or match[3], match[2] or match[4]) for match in _NAMED.finditer(source)]
        if isinstance(plan, LaunchPlan):
            for launch in plan.launches:
                pairs += [("block", int(extent)) for extent in launch.block if extent.isdecimal()]
                named += [(name, text) for name, text in launch.meta if text.isdecimal()]
        return sort_parameters([*pairs, *((name_parameter(name), int(text)) for name, text in named)])

    def _check_stated_sizes(self, task: Task, bound: BoundPlan) -> Findings:
        """The first fault at the sizes that the problem states; built-in ones may be left out of its trials."""
        problem = read_task_problem(task.text)
        for name, sizes in choose_shape_sets(problem).items():
            if name != "base" and name not in problem.shapes:
                continue
            all_sizes = {**problem.base_sizes, **sizes}
            numbers = (*(all_sizes[name] for name in list_dims(problem)), *problem.scalars.values())
            try:
                resolve_plan(bound, numbers, self.limits)
            except PlanFault as fault:
                return (fault.make_finding(KIND),)
        return ()

    def runtime_paths(self) -> Sequence[Path]:
        return ()  # what artefacts are linked with is loaded before they are

    locate_failure = staticmethod(locate_fault)
