"""The proof that an operator is right on every input that its verdict rests on.

The trials, their data, the reference and the limits are the verifier's; the operator is called as a user calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from opsmith.problems.data import PlannedTrial, ProblemData
from opsmith.problems.draws import Draw
from opsmith.problems.precision import default_dtype, default_of
from opsmith.problems.problem import Problem
from opsmith.problems.tolerance import describe_difference

Function = Callable[..., Any]


class PlainData(ProblemData[Draw]):
    """All draws of a problem, whatever computes on them."""

    def make_draw(self, shape_set: str, overrides: Mapping[str, int], seed: int, is_case: bool = False) -> Draw:
        return Draw(self, shape_set, overrides, seed, is_case)


def plan_trials(problem: Problem) -> list[PlannedTrial[Draw]]:
    """The trials of a problem: a shape set, or hand-made cases, and a precision, with a name."""
    return [trial for trial in PlainData(problem).plan_trials() if not trial.shape_set.explain_left_out()]


def find_failures(problem: Problem, function: Function, free: Sequence[str], trial: PlannedTrial[Draw]) -> list[str]:
    """What is wrong with the results of an operator on all inputs of a trial. free: sizes that no shape determines."""
    return [line for draw in trial.draws for line in compare_draw(problem, function, free, draw, trial.is_wide)]


def compare_draw(problem: Problem, function: Function, free: Sequence[str], draw: Draw, is_wide: bool) -> Iterator[str]:
    """What is wrong with the results on one draw, in one precision."""
    limits = draw.wide_limits if is_wide else draw.declared_limits  # before the operator has seen the data
    bindings, label = draw.wide if is_wide else draw.declared, f"{draw.label} {'float64' if is_wide else 'as declared'}"
    tensors = {name: tensor.clone() for name, tensor in bindings.input_data.items()}
    try:
        with default_dtype(default_of(is_wide)), torch.no_grad():
            results = function(**tensors, **{name: bindings.sizes[name] for name in free})
    except Exception as error:
        yield f"{label}: {type(error).__name__}: {error}"
        return
    changed = [name for name, tensor in tensors.items() if not torch.equal(tensor, bindings.input_data[name])]
    yield from (f"{label}: {name} was changed" for name in changed)
    by_output = (results,) if len(limits) == 1 else results
    rows = [row if isinstance(row, tuple) else (row,) for row in by_output]
    for output, row, row_limits in zip(problem.outputs, rows, limits, strict=True):
        for result, limit in zip(row, row_limits, strict=True):
            difference = describe_difference(result, limit)
            yield from [f"{label}: {output.name}: {difference}"] if difference else []
