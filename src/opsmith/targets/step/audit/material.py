"""What does an audit see of a task's trials? The one place that knows how trials, references and verdicts are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from opsmith.targets import Trial
from opsmith.targets.step.execution.compare import compare
from opsmith.targets.step.execution.data import Bindings, Values, expected_values
from opsmith.targets.step.execution.tolerance import Limit
from opsmith.targets.step.execution.trials import trials
from opsmith.targets.step.language.spec import TaskSpec, TensorSpec
from opsmith.targets.step.language.types import fields_of

WIDEST = 0.01  # of the largest expected value may a tolerance be ...
ROUNDINGS = 128  # ... or this many roundings of the result's type, for types that round coarsely

Answer = Sequence[Sequence[Tensor]]  # per output, per field


@dataclass(frozen=True)
class Place:
    """One field of one output."""

    output: int
    field: int
    name: str  # "S0", or "S0, field 1" of a tuple


@dataclass(frozen=True, order=True)
class Slack:
    """How far a result may lie from an expected value, as a part of the largest one."""

    excess: float  # above 1: it says more about the task than about rounding
    part: float


@dataclass(frozen=True)
class Material:
    """A task and its trials."""

    spec: TaskSpec
    trials: Sequence[Trial]

    @classmethod
    def of(cls, spec: TaskSpec) -> Material:
        """Every draw of data as a trial of its own."""
        return cls(spec, [Trial(one.label(0), one) for trial in trials(spec) for one in trial.data.singles])

    @property
    def wide(self) -> list[Trial]:
        """The trials in float64: one per draw of data."""
        return [trial for trial in self.trials if trial.data.is_wide]

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs and parameters."""
        return (*self.spec.inputs, *self.spec.parameters)

    @property
    def places(self) -> list[Place]:
        return [
            Place(at, field, output.name if len(fields_of(output.dtype)) == 1 else f"{output.name}, field {field}")
            for at, output in enumerate(self.spec.outputs)
            for field in range(len(fields_of(output.dtype)))
        ]

    def expected(self, trial: Trial) -> list[list[Tensor]]:
        """The answer that passes. Raises TaskFault."""
        return [[limit.expected.to(limit.dtype) for limit in row] for row in self.limits(trial)]

    def limits(self, trial: Trial) -> list[list[Limit]]:
        """Per output and field: the expected values and how far a result may lie from them. Raises TaskFault."""
        return [[limit.of_draw(0) for limit in row] for row in trial.data.limits]

    def another(self, trial: Trial) -> Trial | None:
        """The next draw of the shape set; of a hand-made input, a draw of the base shape. None: there is none."""
        (own,) = trial.data.draws
        name = shape_set(self.trials[0]) if own.is_case else shape_set(trial)
        others = [other for other in self.wide if shape_set(other) == name and other.data.draws[0] is not own]
        later = [other for other in others if other.data.draws[0].seed > own.seed]
        return next(iter(later or others), None)

    def passes(self, trial: Trial, answer: Answer) -> bool:
        return not compare(self.spec, trial.data, [[field[None] for field in row] for row in answer]).errors

    def slack(self, trial: Trial) -> Slack:
        """The widest tolerance of a trial; of 0 where all is exact."""
        limits = [limit for row in self.limits(trial) for limit in row if limit.allowed is not None]
        return max((_slack(limit) for limit in limits), default=Slack(0.0, 0.0))

    def bindings(self, trial: Trial) -> Bindings:
        """Sizes, input tensors and the names that author's code sees. Raises TaskFault."""
        bindings: Bindings = trial.data.bindings[0]
        return bindings

    def reference(self, trial: Trial, inputs: Mapping[str, Tensor]) -> Values:
        """What the reference makes of these inputs at the trial's sizes and precision. Raises TaskFault."""
        return expected_values(self.spec, replace(self.bindings(trial), input_data=inputs))


def _slack(limit: Limit) -> Slack:
    finite = limit.expected[torch.isfinite(limit.expected)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    allowed = 0.0 if limit.allowed is None or not limit.allowed.numel() else float(limit.allowed.max())
    part = allowed / largest if largest else 0.0
    rounding = torch.finfo(limit.dtype).eps if limit.dtype.is_floating_point else 0.0
    return Slack(part / max(WIDEST, ROUNDINGS * rounding), part)


def shape_set(trial: Trial) -> str:
    return trial.name.split()[0]
