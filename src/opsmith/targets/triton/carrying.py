"""A Triton program for the stand-alone runner: a cubin of all kernels that the problem's sizes ask for.

Neither Triton nor torch is needed there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.errors import TargetError
from opsmith.targets.gpu.nvidia.carrying import KERNELS, PLAN, PROGRAM
from opsmith.targets.gpu.plan import BoundPlan, ResolvedLaunch, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault, resolve_plan
from opsmith.targets.programs import Build
from opsmith.targets.triton.compiling import TritonCubin
from opsmith.targets.triton.specialising import Specialisation, specialise

_WARP = 32
_WIDTHS = {"fp32": "f32"}  # of numbers, as the runner names them, where Triton names them otherwise
_SCRATCH = (["i64", 0], ["i64", 0])  # what Triton's launcher gives each kernel beside its arguments: no memory


def list_artefacts(result: TritonCubin, plan: BoundPlan) -> dict[str, bytes]:
    """Of a carried build."""
    return {PROGRAM: result.cubin, PLAN: plan.write_json().encode(), KERNELS: json.dumps(result.kernels).encode()}


def plan_call(build: Build, numbers: Sequence[float]) -> dict[str, Any]:
    """What is allocated and launched. Raises TargetError at numbers that the plan, or no kernel, is for."""
    kernels = json.loads(build.artefacts[KERNELS])
    try:
        resolved = resolve_plan(read_bound_plan(build.artefacts[PLAN]), numbers)
    except PlanFault as fault:
        raise TargetError(str(fault)) from fault
    launches = list(_list_launches(resolved.launches, kernels, numbers))
    return {"workspaces": list(resolved.workspaces), "launches": launches}


def _list_launches(
    launches: Sequence[ResolvedLaunch], kernels: Mapping[str, Any], numbers: Sequence[float]
) -> Iterator[dict[str, Any]]:
    for launch in launches:
        kernel = specialise(launch, numbers)
        if kernel.key not in kernels:
            expected = "sizes that the problem states, for which kernels were compiled"
            raise TargetError(f"line {launch.line}: launch {launch.kernel}: given {numbers}; expected {expected}")
        words = kernels[kernel.key]
        yield {
            "kernel": words["symbol"],
            "grid": list(launch.grid),
            "block": [_WARP * words["warps"], 1, 1],
            "shared": words["shared"],
            "args": [*_list_arguments(launch, kernel, numbers), *_SCRATCH],
        }


def _list_arguments(launch: ResolvedLaunch, kernel: Specialisation, numbers: Sequence[float]) -> Iterator[list[Any]]:
    for argument, type_ in zip(launch.arguments, kernel.types, strict=True):
        if argument.is_array:
            yield [argument.kind, argument.place]
        elif type_ != "1":  # else it is a constant
            yield [_WIDTHS.get(type_, type_), numbers[argument.place]]
