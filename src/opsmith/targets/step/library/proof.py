"""The proof that an operator is right on every input that its verdict rests on.

The trials, their data, the reference and the limits are the verifier's; the operator is called as a user calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.tolerance import describe_difference
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.library.operator import Operator
from opsmith.targets.trial import list_runnable


def trial_names(operator: Operator) -> list[str]:
    """What the trials of an operator are called: a shape set, or hand-made cases, and a precision."""
    return [trial.name for trial in list_runnable(make_trials(operator.task))]


def failures(operator: Operator, function: Callable[..., Any], trial_number: int) -> list[str]:
    """What is wrong with the results of `function`, the operator's, on all inputs of trial number `trial_number`."""
    return list(_find_failures(operator, function, trial_number))


def _find_failures(operator: Operator, function: Callable[..., Any], trial_number: int) -> Iterator[str]:
    case = list_runnable(make_trials(operator.task))[trial_number].data
    for number, (bindings, single) in enumerate(zip(case.bindings, case.singles, strict=True)):
        limits = single.limits_for(
            operator.graph_at(bindings.sizes)
        )  # the expected values, before the operator has seen the data
        tensors = {name: tensor.clone() for name, tensor in bindings.input_data.items()}
        sizes = {name: bindings.sizes[name] for name in operator.free_names}
        results = operator.run_on(bindings) if bindings.random_global else function(**tensors, **sizes)
        changed = [name for name, tensor in tensors.items() if not torch.equal(tensor, bindings.input_data[name])]
        yield from (f"{case.label(number)}: {name} was changed" for name in changed)
        for output, row, output_limits in zip(
            operator.task.outputs, _split_results(results, len(limits)), limits, strict=True
        ):
            for result, limit in zip(row, output_limits, strict=True):
                problem = describe_difference(result, limit.of_draw(0))
                yield from [f"{case.label(number)}: {output.name}: {problem}"] if problem else []


def _split_results(results: Any, outputs: int) -> list[Sequence[Tensor]]:
    """Per output its fields."""
    by_output = (results,) if outputs == 1 else results
    return [row if isinstance(row, tuple) else (row,) for row in by_output]
