"""What a task's worker does for any language whose programs compute in the declared types: trials and their inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from opsmith.records import Task
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.native.task import TaskOptions
from opsmith.targets.trial import TaskFault, Trial, TrialResult


class DrawnTrials:
    """Fits `HidesSizes`, `Referenced`, and what `Target` and `Executed` ask of trials but `compare_outputs`."""

    name: str

    @abstractmethod
    def read_options(self, words: Mapping[str, Any]) -> TaskOptions:
        """Those of this language (`NativeTasks`). Raises UsageError."""

    def list_trials(self, task: Task) -> Sequence[Trial]:
        from opsmith.targets.native.trials import make_trials  # noqa: PLC0415 - imports torch

        return make_trials(task.text, self.read_options).trials

    def hidden_trials(self, task: Task, program: str) -> HiddenTrials:
        """`program`: a form of it that is equal for programs that differ in names and layout only."""
        from opsmith.targets.native.trials import make_trials  # noqa: PLC0415 - imports torch

        return HiddenTrials(make_trials(task.text, self.read_options).draw_hidden(program))

    def encode_inputs(self, trial: Trial) -> bytes:
        encoded: bytes = trial.data.encoded_inputs
        return encoded

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        """Never called: programs are executed."""
        raise NotImplementedError(f"target {self.name}: its programs are executed")

    def run_reference(self, trial: Trial) -> object:
        reference: object = trial.data.run_reference()
        return reference
