"""The STeP target: streaming tensor programs for dataflow accelerators.

`STEP` is what the rest of the system sees. Checking needs no tensors, so `torch` is imported only by what executes:
`trials`, `run` and `cost` run code of the task's author and belong in worker processes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from opsmith.by_name import import_by_name
from opsmith.problems.digest import hash_problem
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import explain_shape_sets
from opsmith.records import CYCLES, OFF_CHIP_BYTES, ON_CHIP_BYTES, Diagnostic, Scrutiny, Stage, Task, strip_number
from opsmith.splits import Split
from opsmith.targets.programs import Traits
from opsmith.targets.protocols import GUARDIAN, PROPOSER, Sampler
from opsmith.targets.step.dataflow import dataflow_of
from opsmith.targets.step.documentation import describe_constructs
from opsmith.targets.step.improvement import describe_platform, write_improvement
from opsmith.targets.step.ir import read_spec, read_spec_with_warnings, write_spec
from opsmith.targets.step.language import canonical as isomorphism
from opsmith.targets.step.language.body import read_program
from opsmith.targets.step.language.check import Program, check_program
from opsmith.targets.step.language.copies import insert_copies
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.traits import manipulates_shapes, reuses_streams
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

if TYPE_CHECKING:
    from opsmith.targets.audit import Finding, Judge
    from opsmith.targets.hidden import HiddenTrials
    from opsmith.targets.programs import Dataflow, Solved
    from opsmith.targets.step.codegen.texts import StepTexts
    from opsmith.targets.step.executing import StepExecution
    from opsmith.targets.step.execution.data import StepTrialData
    from opsmith.targets.step.library.package import StepLibrary
    from opsmith.targets.step.planning import StepPlanning

ROLES = (PROPOSER, GUARDIAN)  # whose prompts lie in prompts/
_SAMPLER = "opsmith_lab.step.sampler:StepSampler"
_SEARCH = "opsmith_lab.step.sampler.search:search_programs"
VERIFIER = "step-5"  # raise it whenever a verdict can change: trials, tolerances, rules


@lru_cache(maxsize=512)
def spec_of(text: str) -> TaskSpec:
    """The records of a task text that was read before."""
    return read_spec(text)


class StepTarget:
    """STeP behind the `Target` protocol."""

    name = "step"
    verifier = VERIFIER
    comment = "#"
    stages = ("PARSE", "TYPE", "AFFINE")
    repaired_stage = "AFFINE"
    requirements = ("torch>=2.6",)  # of a package of operators
    outline_words = (
        "which fn makes each output's type and what feeds it, backwards to the inputs; the dims of every stream, "
        "innermost first; which streams are used more than once and need Copies"
    )

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """Raises TaskError with line and column; keys without meaning are logged as warnings."""
        spec, warnings = read_spec_with_warnings(text, path or task_id)
        for warning in warnings:
            logging.getLogger("opsmith.tasks").warning("%s: %s", path or task_id, warning)
        bare = replace(spec, impl=None, test_name="")
        visible = write_spec(replace(bare, shapes={}, margins=(), cases=(), drawn_from=None))
        return Task(task_id, self.name, write_spec(bare), spec.impl, strip_number(task_id), path, visible)

    def problem_digest(self, task: Task) -> str:
        return hash_problem(self.find_problem(task))

    def find_problem(self, task: Task) -> Problem:
        return spec_of(task.text).problem

    def base_prompt(self, role: str) -> str | None:
        return _read_prompt(f"{role}.yaml") if role in ROLES else None

    describe_constructs = staticmethod(describe_constructs)

    describe_platform = staticmethod(describe_platform)

    improvement_prompt = staticmethod(write_improvement)

    def read_program(self, task: Task, text: str) -> str | None:
        return read_program(tuple(entry.name for entry in spec_of(task.text).inputs), text)

    def check_program(self, task: Task, source: str) -> Checked:
        spec = spec_of(task.text)
        report = check_program(spec, source)
        program = Program(spec, source, report) if report.graph is not None else None
        return Checked(report.stage, program, report.errors, report.warnings)

    def list_trials(self, task: Task) -> Sequence[Trial]:
        return self._execution.make_trials(spec_of(task.text))

    def run_programs(self, programs: Sequence[Program], trial: Trial) -> list[TrialResult | TaskFault]:
        reports = [program.report_at(trial.data.sizes) for program in programs]
        graphs = [report.graph for report in reports if report.graph is not None]
        results = iter(self._execution.judge_programs(programs[0].spec, graphs, trial.data) if graphs else ())
        return [TrialResult(Stage.RUN, report.errors) if report.graph is None else next(results) for report in reports]

    def hidden_trials(self, task: Task, program: Program, scrutiny: Scrutiny) -> HiddenTrials | None:
        return self._execution.hidden_trials(task, program, scrutiny)

    def run_reference(self, trial: Trial) -> object:
        case: StepTrialData = trial.data
        return case.run_reference()

    def preload_modules(self) -> None:
        _ = self._execution

    def canonical_form(self, source: str) -> str:
        return isomorphism.canonical_text(source)

    def repair_program(self, task: Task, source: str) -> str | None:
        return insert_copies(spec_of(task.text), source)

    def write_script(self, task: Task, source: str) -> str:
        return self._texts.generate_script(spec_of(task.text), source)

    bare_reply = "a Python function `body` whose parameters are the streams of prepare()"

    def bare_prompt(self) -> str:
        return self._texts.bare_prompt(_read_prompt("proposer.yaml"))

    def bare_task(self, task: Task, source: str | None) -> str:
        return self._texts.bare_task(spec_of(task.prompt_text), source)

    def bare_answer(self, task: Task, source: str) -> str:
        return self._texts.body_text(spec_of(task.prompt_text), source.strip("\n") + "\n")

    def read_bare(self, text: str) -> tuple[str, str | None] | None:
        return self._texts.read_bare(text)

    def explain_message(self, task: Task, message: str) -> str:
        return explain_shape_sets(spec_of(task.text).problem, message)

    def audit_task(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        return self._execution.audit_task(spec_of(task.text), task, source, judge)

    def build_dataflow(self, task: Task, source: str) -> Dataflow | None:
        return dataflow_of(spec_of(task.text), source)

    objectives = (CYCLES, ON_CHIP_BYTES, OFF_CHIP_BYTES)

    def estimate_cost(self, task: Task, source: str) -> Mapping[str, Any]:
        return self._execution.cost_of(spec_of(task.text), source)

    def find_traits(self, task: Task, source: str) -> Traits | None:
        graph = check_program(spec_of(task.text), source).graph
        return None if graph is None else Traits(manipulates_shapes(graph), reuses_streams(graph))

    def plan_translation(self, task: Task, source: str, name: str) -> dict[str, Any]:
        return self._execution.plan_translation(spec_of(task.text), source, name)

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        return self._library.write_package(name, operators)

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        return self._library.describe_usage(name, operators)

    def describe_proof(self, name: str) -> str:
        return self._library.proof

    def describe_ownership(self, name: str) -> str:
        return self._library.ownership

    def list_splits(self, task: Task) -> Iterator[Split]:
        return self._planning.list_splits(spec_of(task.text))

    def renegotiate(self, task: Task, split: Split, node: str) -> Split | None:
        return self._planning.renegotiate(spec_of(task.text), split, node)

    def find_split_faults(self, task: Task, split: Split) -> tuple[Diagnostic, ...]:
        return self._planning.find_faults(spec_of(task.text), split)

    def describe_contracts(self) -> str:
        return self._planning.describe_contracts()

    def make_children(self, task: Task, split: Split) -> tuple[Task, ...]:
        specs = self._planning.list_children(spec_of(task.text), split)
        children = (
            self.read_task(write_spec(spec), f"{task.id}.{node.name}")
            for node, spec in zip(split.nodes, specs, strict=True)
        )
        return tuple(replace(child, group=task.group) for child in children)

    def join_programs(self, task: Task, split: Split, sources: Mapping[str, str]) -> str:
        return self._planning.join_programs(spec_of(task.text), split, sources)

    def enumerate_programs(self, task: Task) -> Iterator[str]:
        programs: Iterator[str] = import_by_name(_SEARCH, "language 'step': its search")(task.text)
        return programs

    def make_sampler(self) -> Sampler:
        sampler: Sampler = import_by_name(_SAMPLER, "language 'step': its sampler")()
        return sampler

    # -- what only some commands need, loaded once

    @cached_property
    def _execution(self) -> StepExecution:
        from opsmith.targets.step.executing import StepExecution  # noqa: PLC0415 - imports torch

        return StepExecution()

    @cached_property
    def _planning(self) -> StepPlanning:
        from opsmith.targets.step.planning import StepPlanning  # noqa: PLC0415 - imports torch

        return StepPlanning()

    @cached_property
    def _library(self) -> StepLibrary:
        from opsmith.targets.step.library.package import StepLibrary  # noqa: PLC0415 - imports torch

        return StepLibrary()

    @cached_property
    def _texts(self) -> StepTexts:
        from opsmith.targets.step.codegen.texts import StepTexts  # noqa: PLC0415 - few commands write Python

        return StepTexts()


@lru_cache(maxsize=2)
def _read_prompt(name: str) -> str:
    return files("opsmith.targets.step").joinpath("prompts", name).read_text(encoding="utf-8")


STEP = StepTarget()
