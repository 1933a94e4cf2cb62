"""What an audit sees of a problem's trials: every draw as a trial of its own, with what passes there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.compare import compare_outputs
from opsmith.problems.data import PlannedTrial, ProblemData
from opsmith.problems.draws import DrawT, TrialData
from opsmith.problems.problem import Problem
from opsmith.problems.tolerance import ROUNDINGS, WIDEST, Limit, find_largest

Answer = Sequence[Sequence[Tensor]]  # per output, per tensor


@dataclass(frozen=True)
class OutputPlace:
    """One tensor of one output."""

    output: int
    tensor: int
    name: str  # "S0", or "S0, field 1" where it has several


@dataclass(frozen=True, order=True)
class Slack:
    """How far a result may lie from an expected value, as a part of the largest one."""

    excess: float  # above 1: it says more about the problem than about rounding
    part: float


@dataclass
class SingleTrial(TrialData[DrawT]):
    """One draw in one precision."""

    @property
    def name(self) -> str:
        return self.label(0)

    @property
    def draw(self) -> DrawT:
        return self.draws[0]

    @property
    def data(self) -> Bindings:
        """Raises TaskFault."""
        return self.bindings[0]

    @cached_property
    def own_limits(self) -> list[list[Limit]]:
        """Per output and tensor: the expected values and how far a result may lie from them. Raises TaskFault."""
        return [[limit.of_draw(0) for limit in row] for row in self.limits]

    @property
    def expected_values(self) -> list[list[Tensor]]:
        """The answer that passes. Raises TaskFault."""
        return [[limit.expected.to(limit.dtype) for limit in row] for row in self.own_limits]

    def accepts_answer(self, answer: Answer) -> bool:
        """Whether a program that gives this answer passes."""
        results = [[tensor[None] for tensor in row] for row in answer]
        return not compare_outputs(self.draw.problem, self.limits, results, self.label).errors

    @property
    def slack(self) -> Slack:
        """The widest tolerance of the trial; of 0 where all is exact."""
        limits = [limit for row in self.own_limits for limit in row if limit.allowed is not None]
        return max((_measure_slack(limit) for limit in limits), default=Slack(0.0, 0.0))


@dataclass(frozen=True)
class Material(Generic[DrawT]):
    """A problem and its trials."""

    data: ProblemData[DrawT]
    trials: Sequence[SingleTrial[DrawT]]

    @classmethod
    def of_all(cls, data: ProblemData[DrawT]) -> Material[DrawT]:
        """Every draw of the shape sets that are not left out. Raises TaskFault."""
        planned = [trial for trial in data.plan_trials() if not trial.shape_set.explain_left_out()]
        return cls(data, _split_draws(planned))

    @classmethod
    def of_stated(cls, data: ProblemData[DrawT]) -> Material[DrawT]:
        """Every draw at the sizes that the file itself states. Raises TaskFault for a bad `global`."""
        planned = list(data.plan_trials())
        return cls(data, _split_draws(trial for trial in planned if trial.shape_set.is_stated))

    @property
    def problem(self) -> Problem:
        return self.data.problem

    @property
    def left_out(self) -> list[str]:
        """Which shape sets are left out, and why."""
        return [reason for shape_set in self.data.sets if (reason := shape_set.explain_left_out())]

    @property
    def wide_trials(self) -> list[SingleTrial[DrawT]]:
        """One trial per draw of data: those in float64, or all where a problem has none."""
        return [trial for trial in self.trials if trial.is_wide] or list(self.trials)

    @property
    def narrowed_outputs(self) -> list[str]:
        """The outputs whose reference computes with less than float64 in some trial."""
        numbers = {number for trial in self.wide_trials for number in trial.draw.narrowed_outputs}
        return [self.problem.outputs[number].name for number in sorted(numbers)]

    @property
    def output_places(self) -> list[OutputPlace]:
        """All tensors of all outputs."""
        return [
            OutputPlace(number, tensor, output.name if len(output.types) == 1 else f"{output.name}, field {tensor}")
            for number, output in enumerate(self.problem.outputs)
            for tensor in range(len(output.types))
        ]

    def find_another(self, trial: SingleTrial[DrawT]) -> SingleTrial[DrawT] | None:
        """The next draw of the shape set; of a hand-made input, a draw of the base shape. None: there is none."""
        own = trial.draw
        name = self.trials[0].draw.shape_set if own.is_case else own.shape_set
        same_set = [
            sibling for sibling in self.wide_trials if sibling.draw.shape_set == name and sibling.draw is not own
        ]
        later = [sibling for sibling in same_set if sibling.draw.seed > own.seed]
        return next(iter(later or same_set), None)


def _split_draws(planned: Iterable[PlannedTrial[DrawT]]) -> list[SingleTrial[DrawT]]:
    return [SingleTrial([draw], trial.is_wide) for trial in planned for draw in trial.draws]


def _measure_slack(limit: Limit) -> Slack:
    largest = find_largest(limit.expected)
    allowed = 0.0 if limit.allowed is None or not limit.allowed.numel() else float(limit.allowed.max())
    share = allowed / largest if largest else 0.0
    rounding = torch.finfo(limit.dtype).eps if limit.dtype.is_floating_point else 0.0
    return Slack(share / max(WIDEST, ROUNDINGS * rounding), share)
