"""The STeP target: streaming tensor programs for dataflow accelerators.

`STEP` is what the rest of the system sees. Checking needs no tensors, so `torch` is imported only by what executes:
`trials`, `run` and `cost` run code of the task's author and belong in worker processes.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from opsmith.records import Stage, Task
from opsmith.targets import Checked, Sampler, TaskFault, Trial, TrialResult
from opsmith.targets.step.ir import read_spec, read_spec_with_warnings, write_spec
from opsmith.targets.step.language import canonical as isomorphism
from opsmith.targets.step.language.body import read_program
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.checked import Program
from opsmith.targets.step.language.copies import insert_copies
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.traits import manipulates_shapes, reuses_streams
from opsmith.targets.traits import Traits

if TYPE_CHECKING:
    from opsmith.targets.audited import Finding, Judge
    from opsmith.targets.drawn import Dataflow
    from opsmith.targets.packaged import Solved
    from opsmith.targets.step.execution.trials import Case

VERIFIER = "step-2"  # raise it whenever a verdict can change: trials, tolerances, rules


@lru_cache(maxsize=512)
def spec_of(text: str) -> TaskSpec:
    """The records of a task text that was read before."""
    return read_spec(text)


def group_of(task_id: str) -> str:
    """What results are grouped by: `attn` of `attn_0`."""
    stem, _, number = task_id.rpartition("_")
    return stem if stem and number.isdigit() else task_id


class StepTarget:
    """STeP behind the `Target` protocol."""

    name = "step"
    verifier = VERIFIER
    requirements = ("torch>=2.6",)  # of a package of operators

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """Raises TaskError with line and column; keys without meaning are logged as warnings."""
        spec, warnings = read_spec_with_warnings(text, path or task_id)
        for warning in warnings:
            logging.getLogger("opsmith.tasks").warning("%s: %s", path or task_id, warning)
        bare = replace(spec, impl=None, test_name="")
        shown = write_spec(replace(bare, shapes={}, margins=(), cases=()))
        return Task(task_id, self.name, write_spec(bare), spec.impl, group_of(task_id), path, shown)

    def proposer_prompt(self) -> str:
        return _prompt("proposer.yaml")

    def guardian_prompt(self) -> str:
        return _prompt("guardian.yaml")

    def read_program(self, task: Task, text: str) -> str | None:
        return read_program(tuple(entry.name for entry in spec_of(task.text).inputs), text)

    def check(self, task: Task, source: str) -> Checked:
        spec = spec_of(task.text)
        report = check_program(spec, source)
        program = Program(spec, source, report) if report.graph is not None else None
        return Checked(report.stage, program, report.errors, report.warnings)

    def trials(self, task: Task) -> Sequence[Trial]:
        from opsmith.targets.step.execution.trials import trials  # noqa: PLC0415 - imports torch

        return trials(spec_of(task.text))

    def run(self, programs: Sequence[Program], trial: Trial) -> list[TrialResult | TaskFault]:
        from opsmith.targets.step.execution.judge import judge  # noqa: PLC0415 - imports torch

        reports = [program.at(trial.data.sizes) for program in programs]
        graphs = [report.graph for report in reports if report.graph is not None]
        judged = iter(judge(programs[0].spec, graphs, trial.data) if graphs else ())
        return [TrialResult(Stage.RUN, report.errors) if report.graph is None else next(judged) for report in reports]

    def reference(self, trial: Trial) -> object:
        case: Case = trial.data
        return case.run_reference()

    def preload(self) -> None:
        package = import_module("opsmith.targets.step.execution")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)

    def canonical(self, source: str) -> str:
        return isomorphism.canonical(source)

    def repair(self, task: Task, source: str) -> str | None:
        return insert_copies(spec_of(task.text), source)

    def script(self, task: Task, source: str) -> str:
        from opsmith.targets.step.codegen import generate_script  # noqa: PLC0415

        return generate_script(spec_of(task.text), source)

    bare_reply = "a Python function `body` whose parameters are the streams of prepare()"

    def bare_prompt(self) -> str:
        return _bare_prompt()

    def bare_task(self, task: Task, source: str | None) -> str:
        from opsmith.targets.step.codegen.bare import bare_task  # noqa: PLC0415

        return bare_task(spec_of(task.prompt_text), source)

    def bare_answer(self, task: Task, source: str) -> str:
        from opsmith.targets.step.codegen.parts import body_text  # noqa: PLC0415

        return body_text(spec_of(task.prompt_text), source.strip("\n") + "\n")

    def read_bare(self, text: str) -> tuple[str, str | None] | None:
        from opsmith.targets.step.codegen.bare_read import read_bare  # noqa: PLC0415

        return read_bare(text)

    def audit(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        from opsmith.targets.step.audit import audit  # noqa: PLC0415 - imports torch

        return audit(task, source, judge)

    def dataflow(self, task: Task, source: str) -> Dataflow | None:
        from opsmith.targets.step.dataflow import dataflow_of  # noqa: PLC0415

        return dataflow_of(spec_of(task.text), source)

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        from opsmith.targets.step.cost import cost_of  # noqa: PLC0415 - imports torch

        return cost_of(spec_of(task.text), source)

    def traits(self, task: Task, source: str) -> Traits | None:
        graph = check_program(spec_of(task.text), source).graph
        return None if graph is None else Traits(manipulates_shapes(graph), reuses_streams(graph))

    def package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        from opsmith.targets.step.library.package import package  # noqa: PLC0415 - imports torch

        return package(name, operators)

    def usage(self, name: str, operators: Sequence[Solved]) -> str:
        from opsmith.targets.step.library.package import usage  # noqa: PLC0415 - imports torch

        return usage(name, operators)

    def programs(self, task: Task) -> Iterator[str]:
        from opsmith.targets.step.sampler.search import programs  # noqa: PLC0415 - imports the sampler

        return programs(task.text)

    def sampler(self) -> Sampler:
        from opsmith.targets.step.sampler import StepSampler  # noqa: PLC0415 - imports numpy

        return StepSampler()


@lru_cache(maxsize=2)
def _prompt(name: str) -> str:
    return files("opsmith.targets.step").joinpath("prompts", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _bare_prompt() -> str:
    from opsmith.targets.step.codegen.bare import bare_prompt  # noqa: PLC0415

    return bare_prompt(_prompt("proposer.yaml"))


STEP = StepTarget()
