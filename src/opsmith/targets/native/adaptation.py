"""How a compiled language is asked for problems: those of problem files, and those of other targets' tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from opsmith.errors import TaskError, UsageError
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import is_problem_file, read_problem_with_warnings
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import explain_shape_sets
from opsmith.records import Task
from opsmith.targets.audit import Finding, Judge
from opsmith.targets.native.signature import describe_c_type, make_signature, write_prototype
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import (
    TaskOptions,
    read_options,
    read_task_problem,
    split_native_task,
    write_native_task,
)
from opsmith.targets.origins import find_stating
from opsmith.targets.problem import NAME as PROBLEM_FILE
from opsmith.targets.problem import audit_stated


class NativeTasks:
    """The part of a compiled language that makes tasks: `Stating`, `Adapting`, `Configured`, `Explained`,
    `Audited`, `Framed`."""

    name: str
    comment: str
    write_function: Callable[[Problem], str] | None = staticmethod(write_prototype)  # None: tasks show no function

    def read_options(self, words: Mapping[str, Any]) -> TaskOptions:
        """Those of this language. Raises UsageError."""
        return read_options(words)

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """A problem file as a task. Raises TaskError with line and column; unknown keys are logged as warnings."""
        if not is_problem_file(text):
            expected = (
                f"expected a problem file, with `problem: {task_id}`; try, for a file of another language: --target"
            )
            raise TaskError(f"{path or task_id}: given no problem for the target {self.name}; {expected}")
        file, warnings = read_problem_with_warnings(text, path or task_id)
        for warning in warnings:
            logging.getLogger("opsmith.tasks").warning("%s: %s", path or task_id, warning)
        bare = Task(task_id, self.name, write_problem(file), group=file.group, path=path)
        return self._show_task(bare)

    def adapt_task(self, task: Task) -> Task:
        """The problem of another target's task as a task of this language. Raises TaskError."""
        if find_stating(task.target) is None:
            expected = f"a task of a target that states problems; {task.target} tells none"
            raise TaskError(f"{task.path or task.id}: given a task of target {task.target!r}; expected {expected}")
        text = write_native_task(task.text, "" if task.target == PROBLEM_FILE else task.target)
        return self._show_task(replace(task, target=self.name, text=text, impl=None, shown=""))

    def configure_task(self, task: Task, options: Mapping[str, Any]) -> Task:
        """The task with these options over its own. Raises UsageError for one that there is not."""
        origin, own, body = split_native_task(task.text)
        try:
            chosen = self.read_options({**own, **options})
        except UsageError as error:
            raise UsageError(f"target {self.name}: {error}") from error
        return self._show_task(replace(task, text=write_native_task(body, origin, chosen)))

    def find_problem(self, task: Task) -> Problem:
        return read_task_problem(task.text)

    def find_options(self, task: Task) -> TaskOptions:
        return self.read_options(split_native_task(task.text)[1])

    def describe_type(self, dtype: str) -> str:
        """What the language calls a type that its prompts do not name, and how its numbers are read."""
        return describe_c_type(dtype)

    def problem_digest(self, task: Task) -> str:
        return hash_problem(self.find_problem(task))

    def write_frame(self, task: Task) -> str:
        """The arguments in comments, and the function in C where programs define it."""
        problem = self.find_problem(task)
        signature = make_signature(problem)
        rows = [f"{self.comment} {row}" for row in (f"{task.id}: a program to be written", *signature.list_arguments())]
        if self.write_function is not None:
            rows += self.frame_function(self.write_function(problem))
        return "\n".join(rows) + "\n"

    @staticmethod
    def frame_function(function: str) -> list[str]:
        """The function with nothing in it, as lines of a program that no compiler takes."""
        refused = '#error "not written yet: take this line away when it is"'
        return ["#include <stdint.h>", "", refused, "", function.rstrip().removesuffix(";"), "{", "}"]

    def explain_message(self, task: Task, message: str) -> str:
        return explain_shape_sets(self.find_problem(task), message)

    def audit_task(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        return audit_stated(self.find_problem(task))

    def _show_task(self, task: Task) -> Task:
        problem = self.find_problem(task)
        name = task.id if problem.reference else ""
        shown = write_statement(problem, self.find_options(task), name, self.write_function, self.describe_type)
        return replace(task, shown=shown)
