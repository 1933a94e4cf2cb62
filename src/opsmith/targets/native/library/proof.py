"""The proof that an operator is right on the inputs that its verdict rests on, and that torch can work with it.

The trials, their data, the reference and the limits are the verifier's; the operator is called as a user calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.data import PlannedTrial
from opsmith.problems.native import NativeData, NativeDraw
from opsmith.problems.tolerance import describe_difference
from opsmith.records import Level, Scrutiny
from opsmith.targets.native.library.operator import NativeOperator

Function = Callable[..., Any]


@lru_cache(maxsize=1)
def _plan_trials(operator: NativeOperator) -> list[PlannedTrial[NativeDraw]]:
    return list(NativeData(operator.problem).plan_trials())


def list_trial_names(operator: NativeOperator) -> list[str]:
    """What the trials of an operator are called: a shape set, or hand-made cases."""
    return [trial.name for trial in NativeData(operator.problem).plan_trials()]


def find_failures(operator: NativeOperator, function: Function, trial_number: int) -> list[str]:
    """What is wrong with the results of `function`, the operator's, on all inputs of a trial."""
    draws = _plan_trials(operator)[trial_number].draws
    return [failure for draw in draws for failure in _compare_draw(operator, function, draw, Tensor.clone)]


def find_hidden_failures(operator: NativeOperator, function: Function, secret: str) -> list[str]:
    """The same at sizes and with numbers that no file states, all that the full level draws from a secret."""
    draws = NativeData(operator.problem).draw_hidden(Scrutiny(secret, Level.FULL))
    return [failure for draw in draws for failure in _compare_draw(operator, function, draw, Tensor.clone)]


def find_layout_failures(operator: NativeOperator, function: Function) -> list[str]:
    """The same on inputs that are strided, and on some that begin where no allocator puts them."""
    draw = _plan_trials(operator)[0].draws[0]
    return [
        failure
        for change in (_spread_tensor, _shift_tensor)
        for failure in _compare_draw(operator, function, draw, change)
    ]


def check_operation(operator: NativeOperator) -> None:
    """What torch checks of an operator; that of its schema multiplies inputs, which torch cannot in floats of one
    byte."""
    inputs, named = make_call(operator)
    has_bytes = any(tensor.is_floating_point() and tensor.element_size() == 1 for tensor in inputs)
    checks = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    operation, arguments = operator.operation, (*inputs, *named.values())
    torch.library.opcheck(operation, arguments, test_utils=checks if has_bytes else ("test_schema", *checks))


def make_call(operator: NativeOperator) -> tuple[list[Tensor], dict[str, Any]]:
    """The positional and the named arguments of one call of the operator's function."""
    draw = _plan_trials(operator)[0].draws[0]
    return _split_arguments(operator, draw, Tensor.clone)


def _compare_draw(
    operator: NativeOperator, function: Function, draw: NativeDraw, change: Callable[[Tensor], Tensor]
) -> Iterator[str]:
    limits = draw.declared_limits  # the expected values, before the operator has seen the data
    inputs, named = _split_arguments(operator, draw, change)
    results = function(*inputs, **named)
    tensors = {entry.name: tensor for entry, tensor in zip(operator.problem.inputs, inputs, strict=True)} | named
    for name, own in draw.declared.input_data.items():
        if not torch.equal(tensors[name], own):
            yield f"{draw.label}: {name} was changed"
    for output, row, row_limits in zip(
        operator.problem.outputs, _split_results(results, len(limits)), limits, strict=True
    ):
        for result, limit in zip(row, row_limits, strict=True):
            difference = describe_difference(result, limit)
            yield from [f"{draw.label}: {output.name}: {difference}"] if difference else []


def _split_arguments(
    operator: NativeOperator, draw: NativeDraw, change: Callable[[Tensor], Tensor]
) -> tuple[list[Tensor], dict[str, Any]]:
    data = draw.declared.input_data
    inputs = [change(data[entry.name]) for entry in operator.problem.inputs]
    named: dict[str, Any] = {entry.name: change(data[entry.name]) for entry in operator.problem.parameters}
    freed = {name: draw.declared.sizes[name] for name in operator.plan.free}
    return inputs, {**named, **draw.problem.scalars, **freed}


def _spread_tensor(tensor: Tensor) -> Tensor:
    """The same numbers, every second place of a larger tensor."""
    spread = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)[..., 1]
    return spread.copy_(tensor)


def _shift_tensor(tensor: Tensor) -> Tensor:
    """The same numbers, one element behind where memory was allocated."""
    shifted = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape)
    return shifted.copy_(tensor)


def _split_results(results: Any, outputs: int) -> list[Sequence[Tensor]]:
    """Per output its tensors."""
    by_output = (results,) if outputs == 1 else results
    return [row if isinstance(row, tuple) else (row,) for row in by_output]
