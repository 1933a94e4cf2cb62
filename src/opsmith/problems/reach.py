"""Reach: how many input elements an output element depends on, counted on a draw by the derivatives of the reference.

Only floats count: what is summed of whole numbers is exact.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.faults import TaskFault
from opsmith.problems.precision import default_dtype, default_of
from opsmith.problems.problem import Problem
from opsmith.problems.reference import clone_names, run_texts


def count_reach(problem: Problem, bindings: Bindings) -> list[int]:
    """One number for each output tensor. Where the reference has no derivative, what a reduction of all inputs to this
    tensor would need."""
    tensors = bindings.input_data.items()
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors if tensor.is_floating_point()}
    try:
        with torch.enable_grad(), default_dtype(default_of(bindings.wide)):
            clones = {name: tensor.clone() for name, tensor in {**bindings.input_data, **leaves}.items()}
            values = run_texts(problem, {**bindings.namespace, "input_data": clones})
            return [_count_tensor(value, leaves) or _estimate_reach(value, leaves) for value in values]
    except (TaskFault, RuntimeError):  # code that runs without derivatives alone
        return [_estimate_reach(value, leaves) for value in run_texts(problem, clone_names(bindings))]


def _count_tensor(value: Tensor, leaves: Mapping[str, Tensor]) -> int:
    """The inputs with a derivative of the largest entry, or of the last one; 0: it has none."""
    if not value.requires_grad or not value.numel():
        return 0
    flat = value.reshape(-1)
    places = {int(flat.detach().nan_to_num(posinf=0.0, neginf=0.0).abs().argmax()), flat.numel() - 1}
    return max(_count_entry(flat[place], leaves) for place in sorted(places))


def _count_entry(entry: Tensor, leaves: Mapping[str, Tensor]) -> int:
    gradients = torch.autograd.grad(entry, list(leaves.values()), retain_graph=True, allow_unused=True)
    return sum(int(torch.count_nonzero(gradient)) for gradient in gradients if gradient is not None)


def _estimate_reach(value: Tensor, leaves: Mapping[str, Tensor]) -> int:
    return max(1, sum(tensor.numel() for tensor in leaves.values()) // max(1, value.numel()))
