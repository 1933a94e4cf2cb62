"""A CUDA program for the stand-alone runner: its cubin, with what the types of its parameters say of numbers.

Nothing is emulated here: what only a GPU can run is carried as well.
"""

from __future__ import annotations

from opsmith.targets.cuda.building import CudaRequest, compile_cached, describe_tools
from opsmith.targets.cuda.nvrtc import CubinResult
from opsmith.targets.cuda.syntax import list_kernels
from opsmith.targets.gpu.nvidia.carrying import list_artefacts
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.programs import Build, CarriedBuild

_WIDTHS = {  # of numbers, by the type of the parameter; of others the driver says the size
    "i32": ("int", "int32_t", "signed", "signed int"),
    "u32": ("unsigned", "unsigned int", "uint32_t"),
    "i64": ("long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t"),
    "u64": ("unsigned long", "unsigned long long", "uint64_t", "size_t"),
    "f32": ("float",),
    "f64": ("double",),
}
_WIDTH_BY_TYPE = {name: width for width, names in _WIDTHS.items() for name in names}


def build_carried(request: CudaRequest, store: BuildCache | None) -> CarriedBuild:
    """The cubin with the plan and the symbols of kernels, or why there is none."""
    needs = {"architecture": request.arch}
    result = compile_cached(request, store)
    if not isinstance(result, CubinResult):
        return CarriedBuild(result, needs)
    widths = {
        head.name: [_WIDTH_BY_TYPE.get(parameter.type, "") for parameter in head.parameters]
        for head in list_kernels(request.source)
    }
    artefacts = list_artefacts(result.cubin, request.plan, result.symbols, widths)
    return CarriedBuild(Build(artefacts, toolchain=describe_tools(request.arch).partition(", emulated")[0]), needs)
