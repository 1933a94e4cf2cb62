"""CUDA as the emulator of GPUs is told of it: its words, what is not emulated, and what is rewritten in programs."""

from __future__ import annotations

import re
from pathlib import Path

from opsmith.problems.dtypes import TYPES
from opsmith.targets.gpu.emulator.dialect import EmulatedDialect, FindingWords

_DYNAMIC = re.compile(
    r"\bextern\b(?P<before>[^;{}]*?)\b__shared__\b(?P<type>[^;{}\[\]]*?)\b(?P<name>\w+)\s*"
    r"\[\s*\](?P<dims>(?:\s*\[[^\]]*\])*)\s*;"
)
_ALIGNMENT = re.compile(r"\b(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_ALIGNED = re.compile(r"\b__shared__(\s+)(alignas\s*\((?:[^()]|\([^()]*\))*\))")
_STATIC = re.compile(r"\bstatic(\s+)(?=__shared__\b)|(?<=\b__shared__)(\s+)static\b")
_REDUCE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<cooperative_groups/reduce\.h>", re.M)  # in the other header
_FOREIGN = (
    (re.compile(r"\b(?:__asm__|asm)\b"), "inline PTX (asm)"),
    (re.compile(r"\b(?:wmma|nvcuda)\b"), "wmma"),
    (re.compile(r"\bcp_async|\b__pipeline_|\bmemcpy_async\b|\bcuda::"), "cp.async and libcu++"),
    (re.compile(r"\b(?:this_grid|grid_group|this_cluster|cluster_group)\b"), "cooperative groups of a grid"),
    (re.compile(r"\b(?:coalesced_threads|coalesced_group|\w+ary_partition|labeled_partition)\b"), "coalesced groups"),
    (re.compile(r"\bcub::"), "cub"),
    (re.compile(r"<<<"), "launches from a kernel"),
    (re.compile(r"\bcluster(?:Idx|Dim)\b|\b__cluster_dims__\b"), "thread block clusters"),
    (re.compile(r"\b(?:tex[123]D|surf[123]D|cudaTextureObject_t)\b"), "textures"),
    (re.compile(r"\b__nv_fp[46]|\bcuda_fp[46]|\b__nv_\w*e8m0"), "floats smaller than fp8, and e8m0"),
    (re.compile(r"\b__nv_(?!cvt_)\w+_to_|\b__vadd[us]*[24]\b|\b__vsub[us]*[24]\b"), "SIMD words"),
)


def _rewrite_program(source: str) -> str:
    """The program with dynamic shared memory as a pointer to the runtime's; the lines stay."""
    text = _REDUCE.sub("#include <cooperative_groups.h>", _DYNAMIC.sub(_point_to_dynamic, source))
    text = _ALIGNED.sub(r"\2\1__shared__", text)
    return _STATIC.sub(lambda match: match[1] or match[2], text)


def _point_to_dynamic(match: re.Match[str]) -> str:
    words = f"{match['before']} {match['type']}"
    type_ = " ".join(_ALIGNMENT.sub(" ", re.sub(r'"C"', " ", words)).split())
    dims = match["dims"].strip()
    declarator = f"(*const {match['name']}){dims}" if dims else f"*const {match['name']}"
    pointer = f"{type_} (*){dims}" if dims else f"{type_} *"
    lines = "\n" * match[0].count("\n")
    return f"static {type_} {declarator} = ({pointer})opsmith_dynamic_memory;{lines}"


CUDA_DIALECT = EmulatedDialect(
    name="cuda",
    program="kernel.cu",
    headers=Path(__file__).parent / "emulated_headers",
    includes={  # numbers of 16 bits take a while to compile: only where they are named
        "opsmith_emulator.h": None,
        "opsmith_half.h": re.compile(r"half|bfloat|fp16|bf16", re.IGNORECASE),
        "opsmith_fp8.h": re.compile(r"fp8"),
    },
    foreign=_FOREIGN,
    shared="__shared__",
    kernel="__global__ void {}(...)",
    pointers={name: f"{row.cuda[0]} *" for name, row in TYPES.items()},
    rewrite=_rewrite_program,
    words=FindingWords(
        thread="thread",
        block="block",
        warp="warp",
        shared="shared memory",
        device="global memory",
        variable="a __device__ variable",
        barrier="__syncthreads()",
        warp_barrier="__syncwarp()",
        full_mask="0xffffffff",
        trap="__trap()",
        read_only="__ldg",
        operations=(
            "__syncwarp",
            "a shuffle (__shfl_*_sync)",
            "a vote (__ballot_sync and its like)",
            "__activemask",
            "__match_any_sync",
            "__match_all_sync",
            "__reduce_add_sync",
            *("__reduce_min_sync", "__reduce_max_sync") * 2,
            "__reduce_and_sync",
            "__reduce_or_sync",
            "__reduce_xor_sync",
        ),
    ),
)
