"""A CUDA program for the stand-alone runner: its cubin, and what is launched with which arguments at given numbers.

Nothing is emulated here: what only a GPU can run is carried as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.errors import TargetError
from opsmith.records import content_hash, dumps, printable
from opsmith.targets.cuda import device_calls
from opsmith.targets.cuda.building import CudaRequest, compile_cached, describe_tools
from opsmith.targets.cuda.nvrtc import CubinResult
from opsmith.targets.cuda.syntax import list_kernels
from opsmith.targets.gpu.plan import WHOLE, BoundArgument, ResolvedLaunch, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault, resolve_plan
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.programs import Build, CallConvention, CarriedBuild

_PROGRAM, _PLAN, _KERNELS = "program", "plan", "kernels"
_WIDTHS = {  # of numbers, by the type of the parameter; of others the driver says the size
    "i32": ("int", "int32_t", "signed", "signed int"),
    "u32": ("unsigned", "unsigned int", "uint32_t"),
    "i64": ("long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t"),
    "u64": ("unsigned long", "unsigned long long", "uint64_t", "size_t"),
    "f32": ("float",),
    "f64": ("double",),
}
_WIDTH_BY_TYPE = {name: width for width, names in _WIDTHS.items() for name in names}


def describe_device(machine: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of device: driver and clocks of the moment stand beside it, in its name and in the results."""
    gpu = machine["gpus"][0]
    name, architecture, cuda = (printable(str(gpu[word]))[:80] for word in ("name", "architecture", "cuda"))
    return hash_gpu(gpu), f"{name} ({architecture}, CUDA {cuda})"


def hash_gpu(gpu: Mapping[str, Any]) -> str:
    """The digest of a kind of GPU, of what the driver says of one, without its version and clocks of the moment."""
    names = ("name", "architecture", "memory", "multiprocessors", "l2_bytes", "clock_khz", "memory_clock_khz")
    return content_hash("cuda", dumps({name: gpu.get(name) for name in names}))


CONVENTION = CallConvention(
    device_calls.__name__,
    "cuda-pairs/1",
    is_disturbed=False,
    has_outside_clock=False,
    full_processes=3,
    torch_device="cuda",
    describe_device=describe_device,
)


def build_carried(request: CudaRequest, store: BuildCache | None) -> CarriedBuild:
    """The cubin with the plan and the symbols of kernels, or why there is none."""
    needs = {"architecture": request.arch}
    result = compile_cached(request, store)
    if not isinstance(result, CubinResult):
        return CarriedBuild(CONVENTION, result, needs)
    parameters = {head.name: [parameter.type for parameter in head.parameters] for head in list_kernels(request.source)}
    kernels = {"symbols": dict(result.symbols), "parameters": parameters}
    artefacts = {
        _PROGRAM: result.cubin,
        _PLAN: request.plan.write_json().encode(),
        _KERNELS: json.dumps(kernels).encode(),
    }
    toolchain = describe_tools(request.arch).partition(", emulated")[0]
    return CarriedBuild(CONVENTION, Build(artefacts, toolchain=toolchain), needs)


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
    types = kernels["parameters"].get(launch.kernel, [])
    return {
        "kernel": kernels["symbols"].get(launch.kernel, launch.kernel),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared,
        "args": [list(row) for row in _list_arguments(launch.arguments, types, numbers)],
    }


def _list_arguments(
    arguments: Sequence[BoundArgument], types: Sequence[str], numbers: Sequence[float]
) -> Iterator[tuple[str, float]]:
    """Each as the runner reads it: an array by its kind and place, a number by its width."""
    for place, argument in enumerate(arguments):
        if argument.is_array:
            yield argument.kind, argument.place
        else:
            type_ = types[place] if place < len(types) else ""
            usual = "whole" if argument.type == WHOLE else "floating"
            yield _WIDTH_BY_TYPE.get(type_, usual), numbers[argument.place]
