"""Problem files as they are, before a language is asked for their problem: `opsmith check`, `opsmith tasks`.

A task of this target names a problem in no language. It can be audited and asked for in a language that takes problems
of others (`Adapting`); programs for it are refused with the words that say so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from opsmith.errors import UsageError
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem, read_problem_with_warnings
from opsmith.problems.problem import Problem
from opsmith.records import Task
from opsmith.targets.audit import Finding, Judge
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

NAME = "problem"
EXAMPLE = "c"  # a language that takes problems
NO_PROGRAM = f"no program was tried: add --target {EXAMPLE}, which needs plain/{{task}}.c beside the file"
TRY_TARGET = (
    f"try: --target {EXAMPLE} (or cuda, wgsl, metal, a language's TOML file), or a line `target: c` in the file"
)


@lru_cache(maxsize=512)
def _read_text(text: str) -> Problem:
    return read_problem(text).problem


def refuse_without_language(task: Task) -> Task:
    """The task, if it asks for its problem in a language. Raises UsageError."""
    if message := explain_lack_of_language(task):
        raise UsageError(message)
    return task


def explain_lack_of_language(task: Task) -> str:
    """Why nothing can be asked for yet; "": the task's problem is asked for in a language."""
    if task.target != NAME:
        return ""
    place = task.path or f"task {task.id}"
    return f"{place}: given a problem that states no language; expected the one to write in; {TRY_TARGET}"


def audit_stated(problem: Problem) -> Iterable[Finding]:
    """All findings on a problem, whatever language its tasks are in. Executes code of its author."""
    from opsmith.problems.audit.problem import audit_problem  # noqa: PLC0415 - imports torch

    return audit_problem(problem)


class ProblemTarget:
    """Behind the `Target` protocol, so that a problem file goes where task files go."""

    name = NAME
    verifier = "problem-1"
    comment = "#"
    stages = ("PARSE",)

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """Raises TaskError with line and column; unknown keys are logged as warnings."""
        file, warnings = read_problem_with_warnings(text, path or task_id)
        for warning in warnings:
            logging.getLogger("opsmith.tasks").warning("%s: %s", path or task_id, warning)
        return Task(task_id, NAME, write_problem(file), group=file.group, path=path)

    def find_problem(self, task: Task) -> Problem:
        return _read_text(task.text)

    def problem_digest(self, task: Task) -> str:
        return hash_problem(_read_text(task.text))

    def audit_task(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        return audit_stated(_read_text(task.text))

    def base_prompt(self, role: str) -> str | None:
        return None

    def read_program(self, task: Task, text: str) -> str | None:
        return None

    def check_program(self, task: Task, source: str) -> Checked:
        refuse_without_language(task)
        raise AssertionError("unreachable")

    def list_trials(self, task: Task) -> Sequence[Trial]:
        refuse_without_language(task)
        return ()

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        return ()


PROBLEM = ProblemTarget()
