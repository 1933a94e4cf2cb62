"""A cubin for the stand-alone runner: how it is called there, and what is launched with which arguments at given
numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.errors import TargetError
from opsmith.targets.gpu.nvidia import device_calls
from opsmith.targets.gpu.nvidia.devices import DEVICE, describe_device
from opsmith.targets.gpu.plan import WHOLE, BoundArgument, BoundPlan, ResolvedLaunch, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault, resolve_plan
from opsmith.targets.programs import Build, CallConvention

_PROGRAM, _PLAN, _KERNELS = "program", "plan", "kernels"
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
    return {_PROGRAM: cubin, _PLAN: plan.write_json().encode(), _KERNELS: json.dumps(kernels).encode()}


def plan_call(build: Build, numbers: Sequence[float]) -> dict[str, Any]:
    """What is allocated and launched. Raises TargetError where the plan has no value at these numbers."""
    kernels = json.loads(build.artefacts[_KERNELS])
    try:
        resolved = resolve_plan(read_bound_plan(build.artefacts[_PLAN]), numbers)
    except PlanFault as fault:
        raise TargetError(str(fault)) from fault
    launches = [_write_launch(launch, kernels, numbers) for launch in resolved.launches]
    return {"workspaces": list(resolved.workspaces), "launches": launches}


def _write_launch(launch: ResolvedLaunch, kernels: Mapping[str, Any], numbers: Sequence[float]) -> dict[str, Any]:
    widths = kernels["widths"].get(launch.kernel, [])
    return {
        "kernel": kernels["symbols"].get(launch.kernel, launch.kernel),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared,
        "args": [list(row) for row in _list_arguments(launch.arguments, widths, numbers)],
    }


def _list_arguments(
    arguments: Sequence[BoundArgument], widths: Sequence[str], numbers: Sequence[float]
) -> Iterator[tuple[str, float]]:
    """Each as the runner reads it: an array by its kind and place, a number by its width."""
    for place, argument in enumerate(arguments):
        if argument.is_array:
            yield argument.kind, argument.place
        else:
            width = widths[place] if place < len(widths) else ""
            yield width or ("whole" if argument.type == WHOLE else "floating"), numbers[argument.place]
