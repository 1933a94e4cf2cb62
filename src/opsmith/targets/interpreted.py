"""A base class of targets whose programs are interpreted one by one: what such a language need not write again.

A subclass has `name`, `verifier`, `prompt` and three methods: `parse_program` makes a program of a text, `list_trials`
draws what it must compute, `evaluate_program` computes. Everything else has a default that it may replace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml

from opsmith.errors import TaskError
from opsmith.records import Diagnostic, Stage, Task
from opsmith.targets.protocols import PROPOSER
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

_SCRIPT = '''\
"""Task {task}: run with pytest."""

from opsmith.records import Stage
from opsmith.targets import get_target

TASK = {text!r}
PROGRAM = {source!r}


def test_the_program_is_right():
    target = get_target({target!r})
    task = target.read_task(TASK, {task!r})
    checked = target.check_program(task, PROGRAM)
    assert checked.stage == Stage.RUN, checked.errors
    for trial in target.list_trials(task):
        (result,) = target.run_programs([checked.program], trial)
        assert not result.errors, result.errors
'''


class ProgramError(Exception):
    """A program is wrong: the stage that refuses it, and every finding there."""

    def __init__(self, stage: str, *findings: Diagnostic) -> None:
        super().__init__("; ".join(map(str, findings)))
        self.stage = Stage(stage)
        self.findings = findings


class Case(NamedTuple):
    """The data of one trial."""

    inputs: Any
    expected: Any


class Interpreted(ABC):
    """Fits `Target`. A task file is a YAML mapping with `task_keys`, and `impl` where its author has a program."""

    name: str
    verifier: str
    prompt: str  # the proposer's
    comment = "#"
    stages: tuple[str, ...] = ("PARSE",)
    task_keys: tuple[str, ...] = ("inputs", "reference")  # all of them are shown to a model

    @abstractmethod
    def parse_program(self, task: Task, source: str) -> Any:
        """The program of a text. Raises ProgramError at one of `stages`."""

    @abstractmethod
    def list_trials(self, task: Task) -> Sequence[Trial]:
        """A Trial with a Case for each input that a program must be right on. Raises TaskFault."""

    @abstractmethod
    def evaluate_program(self, program: Any, inputs: Any) -> Any:
        """What a program computes from a case's inputs. An ArithmeticError or a ProgramError is the program's."""

    def compare_value(self, trial: Trial, value: Any) -> TrialResult:
        """Whether a number is the expected one."""
        expected = trial.data.expected
        errors = () if value == expected else (Diagnostic("DATA", trial.name, str(value), str(expected)),)
        return TrialResult(Stage.MATCH, errors, float(abs(value - expected)))

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """Raises TaskError for a text that is not such a mapping."""
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise TaskError(f"{path or task_id}: {error}") from error
        if not isinstance(data, dict) or not set(self.task_keys) <= set(data):
            keys = " and ".join(f"`{key}`" for key in self.task_keys)
            raise TaskError(f"{path or task_id}: expected a mapping with {keys}")
        mapping = {key: data[key] for key in self.task_keys}
        body = yaml.safe_dump(mapping, sort_keys=False, default_flow_style=None)
        return Task(task_id, self.name, body, data.get("impl"), path=path)

    def base_prompt(self, role: str) -> str | None:
        return self.prompt if role == PROPOSER else None

    def read_program(self, task: Task, text: str) -> str | None:
        is_program = self.check_program(task, text).stage.name not in self.stages[:1]
        return text.strip("\n") + "\n" if is_program else None

    def check_program(self, task: Task, source: str) -> Checked:
        try:
            return Checked(Stage.RUN, self.parse_program(task, source))
        except ProgramError as error:
            return Checked(error.stage, errors=error.findings)

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> list[TrialResult | TaskFault]:
        return [self._run_program(program, trial) for program in programs]

    def _run_program(self, program: Any, trial: Trial) -> TrialResult:
        try:
            return self.compare_value(trial, self.evaluate_program(program, trial.data.inputs))
        except ProgramError as error:
            return TrialResult(Stage.RUN, error.findings)
        except ArithmeticError as error:
            return TrialResult(Stage.RUN, (Diagnostic("RUN", trial.name, str(error), "a value"),))

    def write_script(self, task: Task, source: str) -> str:
        return _SCRIPT.format(task=task.id, text=task.text, source=source, target=task.target)
