"""What a task's worker does for any language whose programs compute in the declared types: trials and their inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from opsmith.records import Scrutiny, Task
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.native.task import TaskOptions
from opsmith.targets.trial import TaskFault, Trial, TrialResult

if TYPE_CHECKING:
    from opsmith.targets.native.trials import NativeTrialData, NativeTrials


class DrawnTrials:
    """Fits `HidesSizes`, `Preloaded`, `Referenced`, and what `Target` and `Executed` ask of trials."""

    name: str

    @abstractmethod
    def read_options(self, words: Mapping[str, Any]) -> TaskOptions:
        """Those of this language (`NativeTasks`). Raises UsageError."""

    def list_trials(self, task: Task) -> Sequence[Trial]:
        return self._make_trials(task).trials

    def hidden_trials(self, task: Task, program: Any, scrutiny: Scrutiny) -> HiddenTrials:
        return HiddenTrials(self._make_trials(task).draw_hidden(scrutiny))

    def _make_trials(self, task: Task) -> NativeTrials:
        from opsmith.targets.native.trials import make_trials  # noqa: PLC0415 - imports torch

        return make_trials(task.text, self.read_options)

    def encode_inputs(self, trial: Trial) -> bytes:
        encoded: bytes = trial.data.encoded_inputs
        return encoded

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        """Never called: programs are executed."""
        raise NotImplementedError(f"target {self.name}: its programs are executed")

    def run_reference(self, trial: Trial) -> object:
        reference: object = trial.data.run_reference()
        return reference

    def compare_outputs(self, trial: Trial, outputs: bytes | memoryview) -> TrialResult:
        """Of all passes."""
        return _load_judge()(trial.name, trial.data, outputs)

    def compare_calls(self, trial: Trial, outputs: bytes) -> TrialResult:
        """Of a process of the program's own."""
        from opsmith.targets.native.comparison import judge_calls  # noqa: PLC0415 - imports torch

        return judge_calls(trial.name, trial.data, outputs)

    def preload_modules(self) -> None:
        _load_judge()


@cache
def _load_judge() -> Callable[[str, NativeTrialData, bytes | memoryview], TrialResult]:
    from opsmith.targets.native.comparison import judge_outputs  # noqa: PLC0415 - imports torch

    return judge_outputs
