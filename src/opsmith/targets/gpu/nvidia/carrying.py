"""A cubin for the stand-alone runner: how it is called there, and what is launched with which arguments at given
numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opsmith.errors import TargetError
from opsmith.targets.gpu.nvidia import device_calls
from opsmith.targets.gpu.nvidia.devices import DEVICE, describe_device
from opsmith.targets.gpu.nvidia.launches import write_launches
from opsmith.targets.gpu.plan import BoundPlan, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault
from opsmith.targets.programs import Build, CallConvention

PROGRAM, PLAN, KERNELS = "program", "plan", "kernels"
CONVENTION = CallConvention(
    device_calls.__name__,
    "cuda-pairs/1",
    DEVICE,
    is_disturbed=False,
    has_outside_clock=False,
    full_processes=3,
    torch_device=DEVICE,
    describe_device=describe_device,
)


def list_artefacts(
    cubin: bytes, plan: BoundPlan, symbols: Mapping[str, str], widths: Mapping[str, Sequence[str]]
) -> dict[str, bytes]:
    """Of a carried build.

    `symbols`: what each kernel is called in the cubin. `widths`: of each kernel's parameters, in their order, as the
    runner names those of numbers (`i32`, `f64`); "": the driver says the size.
    """
    kernels = {"symbols": dict(symbols), "widths": {kernel: list(row) for kernel, row in widths.items()}}
    return {PROGRAM: cubin, PLAN: plan.write_json().encode(), KERNELS: json.dumps(kernels).encode()}


def plan_call(build: Build, numbers: Sequence[float]) -> dict[str, Any]:
    """What is allocated and launched. Raises TargetError where the plan has no value at these numbers."""
    kernels = json.loads(build.artefacts[KERNELS])
    try:
        return write_launches(read_bound_plan(build.artefacts[PLAN]), kernels, numbers)
    except PlanFault as fault:
        raise TargetError(str(fault)) from fault
