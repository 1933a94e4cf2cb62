"""What does an audit see of a task's trials? The one place that knows how trials, references and verdicts are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from opsmith.targets import Trial
from opsmith.targets.step.execution.compare import compare
from opsmith.targets.step.execution.data import Bindings, Values, expected_values
from opsmith.targets.step.execution.trials import trials
from opsmith.targets.step.language.spec import TaskSpec, TensorSpec
from opsmith.targets.step.language.types import fields_of

Answer = Sequence[Sequence[Tensor]]  # per output, per field


@dataclass(frozen=True)
class Place:
    """One field of one output."""

    output: int
    field: int
    name: str  # "S0", or "S0, field 1" of a tuple


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
        return [[limit.expected[0].to(limit.dtype) for limit in row] for row in trial.data.limits]

    def passes(self, trial: Trial, answer: Answer) -> bool:
        return not compare(self.spec, trial.data, [[field[None] for field in row] for row in answer]).errors

    def slack(self, trial: Trial) -> float:
        """How far a result may lie from an expected value, as a part of the largest one; 0 where all is exact."""
        limits = [limit for row in trial.data.limits for limit in row if limit.allowed is not None]
        return max((_part(limit.allowed, limit.expected) for limit in limits), default=0.0)

    def bindings(self, trial: Trial) -> Bindings:
        """Sizes, input tensors and the names that author's code sees. Raises TaskFault."""
        bindings: Bindings = trial.data.bindings[0]
        return bindings

    def reference(self, trial: Trial, inputs: Mapping[str, Tensor]) -> Values:
        """What the reference makes of these inputs at the trial's sizes and precision. Raises TaskFault."""
        return expected_values(self.spec, replace(self.bindings(trial), input_data=inputs))


def _part(allowed: Tensor, expected: Tensor) -> float:
    finite = expected[torch.isfinite(expected)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    return float(allowed.max()) / largest if largest and allowed.numel() else 0.0


def shape_set(trial: Trial) -> str:
    return trial.name.split()[0]
