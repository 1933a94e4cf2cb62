"""Derived data: the inputs of a problem as its statements compute them from the data of another one."""

from __future__ import annotations

import torch
from torch import Tensor

from opsmith.problems.authored import run_statements
from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.dims import DimError
from opsmith.problems.faults import make_fault
from opsmith.problems.precision import default_dtype, default_of, dtype_of
from opsmith.problems.problem import InputTensor, Problem
from opsmith.problems.reference import clone_names

LABEL = "drawn_from, code"


def compute_inputs(problem: Problem, code: str, origin: Bindings) -> Bindings:
    """The data of `problem` in the declared precision, as `code` computes it from another's. Raises TaskFault."""
    names = clone_names(origin)
    with default_dtype(default_of(False)), torch.no_grad():
        run_statements(code, LABEL, names, lambda: None)
    inputs = {entry.name: _take_tensor(entry, names.get(entry.name), origin) for entry in problem.inputs}
    parameters = {
        entry.name: _take_tensor(entry, origin.input_data.get(entry.name), origin) for entry in problem.parameters
    }
    return bind_tensors(origin.sizes, {**inputs, **parameters}, dict(origin.namespace), False, origin.random_global)


def _take_tensor(entry: InputTensor, value: object, origin: Bindings) -> Tensor:
    """A value as the tensor that the problem declares. Raises TaskFault."""
    where = f"{LABEL}, {entry.name}"
    try:
        shape = entry.type.shape_at(origin.sizes)
    except DimError as error:
        raise make_fault("TASK", where, str(error), "a whole size for every dim") from None
    if not isinstance(value, Tensor) or tuple(value.shape) != shape:
        form = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise make_fault("TASK", where, form, f"shape {shape} for {entry.type.label}")
    if value.is_floating_point() and not entry.type.is_floating:
        raise make_fault("TASK", where, str(value.dtype), f"{dtype_of(entry.type.dtype)} for {entry.type.label}")
    if bool(torch.isnan(value).any()):
        raise make_fault("TASK", where, "NaN", "numbers", "split where every value is a number")
    return value.detach().to(dtype_of(entry.type.dtype)).clone(memory_format=torch.contiguous_format)
