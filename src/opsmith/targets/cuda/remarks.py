"""What the compiler made of each kernel: registers, spills, shared memory, barriers, and the occupancy that follows.

All figures are of the stated architecture: ptxas prints the resources, occupancy is computed from them and the plan's
block at the sizes that the problem states. No GPU is asked, so that nothing is said of time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.errors import OpsmithError
from opsmith.problems.problem import Problem
from opsmith.targets.cuda.building import CudaRequest, compile_cached, name_compiler
from opsmith.targets.cuda.nvrtc import CubinResult
from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES, KernelLoad, Occupancy, compute_occupancy
from opsmith.targets.gpu.plan import ResolvedLaunch
from opsmith.targets.gpu.resolving import resolve_plan
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.native.signature import list_dims

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS, _SHARED = re.compile(r"used (\d+) barriers"), re.compile(r"(\d+) bytes smem")
_GPUS: Mapping[str, tuple[str, int]] = {  # a GPU of the architecture, and its multiprocessors
    **{"sm_80": ("A100", 108), "sm_86": ("A10", 72), "sm_89": ("L40", 142), "sm_90": ("H100", 132)},
    "sm_100": ("B200", 148),
}


@dataclass(frozen=True)
class KernelResources:
    """What one kernel uses, as ptxas prints it."""

    registers: int  # of a thread
    stack: int  # bytes of a thread in local memory
    spill_stores: int  # bytes of a thread
    spill_loads: int
    shared: int  # bytes of a block, static
    barriers: int


class NoRemarksError(OpsmithError):
    """The compiler says nothing of this program."""


def read_resources(log: str) -> dict[str, KernelResources]:
    """By the kernel's symbol, from the compiler's log."""
    pieces = _ENTRY.split(log)[1:]
    return {symbol: _read_entry(text) for symbol, text in zip(pieces[::2], pieces[1::2], strict=True)}


def _read_entry(text: str) -> KernelResources:
    frame = _FRAME.search(text)
    stack, stores, loads = map(int, frame.groups()) if frame else (0, 0, 0)
    return KernelResources(
        _read_number(_USED, text), stack, stores, loads, _read_number(_SHARED, text), _read_number(_BARRIERS, text)
    )


def _read_number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def describe_resources(request: CudaRequest, problem: Problem, store: BuildCache | None) -> str:
    """All launches, with every figure explained. Raises OpsmithError for a program that does not compile."""
    result = compile_cached(request, store)
    if not isinstance(result, CubinResult):
        raise NoRemarksError(result.failure or "; ".join(map(str, result.errors)))
    resources = read_resources(result.log)
    numbers = (*(problem.base_sizes[name] for name in list_dims(problem)), *problem.scalars.values())
    launches = resolve_plan(request.plan, numbers).launches
    sizes = ", ".join(f"{name} = {problem.base_sizes[name]}" for name in list_dims(problem))
    rows = [
        f"Kernels as {name_compiler()} compiles them for {request.arch}; launches at {sizes or 'the stated sizes'}."
    ]
    for launch in launches:
        rows += _describe_launch(launch, resources[result.symbols[launch.kernel]], request.arch)
    return "\n".join(rows) + "\n"


def _describe_launch(launch: ResolvedLaunch, used: KernelResources, arch: str) -> Sequence[str]:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    load = KernelLoad(threads, used.registers, used.shared + launch.shared, used.barriers)
    rows = [
        f"line {launch.line}, {launch.kernel}: a grid of {_write_triple(launch.grid)} blocks of "
        f"{_write_triple(launch.block)} threads",
        *_describe_memory(used, launch, arch),
        *_describe_occupancy(compute_occupancy(arch, load), load, arch),
        *_describe_grid(launch, arch),
    ]
    return [rows[0], *(f"  {row}" for row in rows[1:])]


def _describe_memory(used: KernelResources, launch: ResolvedLaunch, arch: str) -> Iterator[str]:
    yield f"{used.registers} registers of a thread (255 at most; more of them let fewer warps run at once)"
    if used.spill_stores or used.spill_loads:
        yield (
            f"spills: {used.spill_stores} bytes stored, {used.spill_loads} loaded, of each thread: values without "
            "a register go through local memory, which is as slow as global memory; use fewer variables at once"
        )
    else:
        yield "no spills: every variable has a register"
    if used.stack > used.spill_stores:
        yield (
            f"{used.stack} bytes of local memory of a thread: arrays that a variable indexes lie there, as slow as "
            "global memory; unroll the loops over them"
        )
    largest = ARCHITECTURES[arch].shared_of_block
    yield (
        f"{used.shared + launch.shared} bytes of shared memory of a block ({used.shared} static, {launch.shared} "
        f"dynamic; {largest} at most, shared by all blocks on a multiprocessor)"
    )
    if used.barriers:
        yield f"{used.barriers} barrier{'s' if used.barriers > 1 else ''}: __syncthreads waits for the whole block"


def _describe_occupancy(occupancy: Occupancy, load: KernelLoad, arch: str) -> Iterator[str]:
    if not occupancy.blocks:
        bounds = " and ".join(occupancy.bounds)
        yield f"occupancy 0 %: no block fits on a multiprocessor of {arch}, for its {bounds}"
        return
    yield (
        f"theoretical occupancy {occupancy.share:.0%}: {occupancy.blocks} blocks, {occupancy.warps} of "
        f"{occupancy.most_warps} warps at once on a multiprocessor of {arch}; warps that wait for memory are hidden by "
        "others"
    )
    allowed = ", ".join(f"{name} {blocks}" for name, blocks in occupancy.limits.items())
    yield f"bound by {' and '.join(occupancy.bounds)}; blocks that each limit allows: {allowed}"
    if load.threads % 32:
        idle = 32 - load.threads % 32
        yield f"the last warp of a block has {idle} idle lanes: {load.threads} threads are no multiple of 32"


def _describe_grid(launch: ResolvedLaunch, arch: str) -> Iterator[str]:
    name, count = _GPUS[arch]
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    if blocks < count:
        yield f"{blocks} blocks for the {count} multiprocessors of an {name}: {count - blocks} have nothing to do"
    else:
        yield f"{blocks} blocks for the {count} multiprocessors of an {name}: {blocks / count:.1f} for each"


def _write_triple(sizes: Sequence[int]) -> str:
    """Without ones at the end.

    >>> _write_triple((256, 1, 1)), _write_triple((8, 32, 1))
    ('256', '8 x 32')
    """
    last = max((place for place, size in enumerate(sizes, 1) if size > 1), default=1)
    return " x ".join(map(str, sizes[:last]))
