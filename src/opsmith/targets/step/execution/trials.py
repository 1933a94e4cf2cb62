"""Trials: the draws of a task that a program must pass, in the order in which they are run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from opsmith.problems.data import ShapeSet
from opsmith.targets.step.execution.data import StepDraw, StepTrialData, TaskData
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.trial import Trial

TASKS_KEPT = 32  # tasks whose trials stay in memory


@dataclass(frozen=True)
class SetTrial(Trial):
    """A trial at a shape set."""

    shape_set: ShapeSet[StepDraw] = field(kw_only=True, repr=False, compare=False)

    def left_out(self) -> str:
        return self.shape_set.explain_left_out()


class TaskTrials(Sequence[Trial]):
    """All trials of one task: base first, large last. Raises TaskFault for a bad `global`."""

    def __init__(self, spec: TaskSpec) -> None:
        self.data = TaskData(spec)
        self._trials = [
            SetTrial(trial.name, StepTrialData(trial.draws, trial.is_wide), len(trial.draws), shape_set=trial.shape_set)
            for trial in self.data.plan_trials()
        ]

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._trials[index]


def make_trials(spec: TaskSpec) -> TaskTrials:
    """All trials of a task. Kept for the TASKS_KEPT tasks used last, by the identity of `spec`."""
    trials = _KEPT.get(id(spec))
    if trials is None:
        trials = _KEPT[id(spec)] = TaskTrials(spec)  # which holds `spec`, so that its id stays its own
        if len(_KEPT) > TASKS_KEPT:
            _KEPT.popitem(last=False)
    _KEPT.move_to_end(id(spec))
    return trials


_KEPT: OrderedDict[int, TaskTrials] = OrderedDict()
