"""Forms: the shape in which a proven elementwise body gets a whole batch.

Broadcasting aligns axes from the right, so that fields of different rank need care: a scalar must meet every entry of
its own element's Buffer. The cheapest form that is right is chosen once per function and draw:

    as it is    all fields have one rank
    padded      [*axes, *layout] with axes of 1 after the batch's up to the highest rank: [B] -> [B, 1], beside [B, D]
    batch-last  [*layout, B], for bodies that look at the first axis (`Proof.structural`)

The first two take any number of batch axes, and repeated entries (stride 0) as they are; the last one, vmap and the
loop take one: `flatten_batch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from opsmith.targets.step.execution.bodies import Body
from opsmith.targets.step.execution.elementwise import Proof
from opsmith.targets.step.execution.slots import Slot

Axes = tuple[int, ...]  # of a batch
Apply = Callable[[list[Tensor] | None, list[Tensor], Axes], Sequence[Any]]
FlatApply = Callable[[list[Tensor] | None, list[Tensor], int], Sequence[Any]]  # one batch axis


def flatten_batch(apply: FlatApply, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> Sequence[Any]:
    """`apply` on operands with one batch axis; tensors among its results get all batch axes back."""
    if len(axes) == 1:
        return apply(state, input, axes[0])
    rank, batch = len(axes), math.prod(axes)
    old = None if state is None else [tensor.reshape(batch, *tensor.shape[rank:]) for tensor in state]
    results = apply(old, [tensor.reshape(batch, *tensor.shape[rank:]) for tensor in input], batch)
    return [result.reshape(*axes, *result.shape[1:]) if isinstance(result, Tensor) else result for result in results]


def batch_call(
    body: Body, proof: Proof, namespace: dict[str, Any], inputs: Sequence[Slot], outputs: Sequence[Slot]
) -> Apply:
    """The body as a function of batch-first operands; tensors among its results are batch-first too."""
    if proof.structural:
        return partial(flatten_batch, _batch_last(body, proof, namespace))
    top = max(slot.rank for slot in (*inputs, *outputs))
    missing_in, missing_out = [top - slot.rank for slot in inputs], [top - slot.rank for slot in outputs]
    apply = body.bind_names(namespace)
    if not any(missing_in) and not any(missing_out):
        return lambda state, input, axes: apply(state, input)

    def apply_padded(state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Any]:
        rank = len(axes)
        old = (
            None
            if state is None
            else [_pad_axes(tensor, rank, missing) for tensor, missing in zip(state, missing_out, strict=True)]
        )
        results = apply(
            old, [_pad_axes(tensor, rank, missing) for tensor, missing in zip(input, missing_in, strict=True)]
        )
        return [_drop_axes(tensor, rank, missing) for tensor, missing in zip(results, missing_out, strict=True)]

    return apply_padded


def _batch_last(body: Body, proof: Proof, namespace: dict[str, Any]) -> FlatApply:
    """The body on batch-apply_last views; `input_data` gets a apply_last axis of 1, which its results may keep."""
    if proof.reads_input_data:
        lifted = {name: tensor.unsqueeze(-1) for name, tensor in namespace["input_data"].items()}
        namespace = {**namespace, "input_data": lifted}
    apply = body.bind_names(namespace)

    def apply_last(state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Any]:
        old = None if state is None else [_to_last(tensor) for tensor in state]
        results = apply(old, [_to_last(tensor) for tensor in input])
        return [_to_first(tensor, batch) for tensor in results]

    return apply_last


def _to_last(tensor: Tensor) -> Tensor:
    return tensor if tensor.dim() == 1 else tensor.movedim(0, -1)


def _to_first(value: Any, batch: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    first = value if value.dim() == 1 else value.movedim(-1, 0)
    return first.expand(batch, *first.shape[1:]) if first.shape[0] == 1 else first


def _pad_axes(tensor: Tensor, rank: int, axes: int) -> Tensor:
    for _ in range(axes):
        tensor = tensor.unsqueeze(rank)
    return tensor


def _drop_axes(value: Any, rank: int, axes: int) -> Any:
    for _ in range(axes if isinstance(value, Tensor) else 0):
        value = value.squeeze(rank)
    return value
