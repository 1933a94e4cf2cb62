"""Right CUDA that only a GPU can run: programs that use it stay unjudged where there is none.

The list names what is known to be out of the emulator's reach, by header or by name; what else the emulator does not
know it says itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsmith.targets.cuda.source import GPU_HEADERS
from opsmith.targets.native.tokens import TokenKind, split_lines

_KINDS = (  # what it is, and its names
    ("tensor cores (wmma, mma)", r"wmma|nvcuda|mma_sync|load_matrix_sync|store_matrix_sync|__(h|i|b|d)mma_\w+"),
    ("asynchronous copies (cp.async)", r"__pipeline_\w+|memcpy_async|__cp_async\w*|cp_async\w*"),
    ("barriers in memory (mbarrier)", r"__mbarrier_\w+|mbarrier\w*|cuda_pipeline"),
    (
        "thread block clusters",
        r"__cluster_dims__|this_cluster|cluster_\w+|__clusterDim\w*|__block_size__",
    ),
    ("synchronisation of a whole grid", r"this_grid|grid_group|this_multi_grid|multi_grid_group"),
    ("floats smaller than fp8, and e8m0", r"__nv_fp[46]\w*|__nv_\w*e8m0\w*"),
    ("copies by TMA", r"CUtensorMap|__nv_tma\w*"),
)
_NAMES = tuple((what, re.compile(names)) for what, names in _KINDS)


def list_unsupported(source: str) -> Iterator[str]:
    """What of a program is not emulated, each in words with its line."""
    for line in split_lines(source):
        words = [token.text for token in line.tokens]
        if line.is_directive and words[1:2] == ["include"]:
            path = "".join(words[2:]).strip("<>")
            if path in GPU_HEADERS:
                yield f"line {line.tokens[0].line}: <{path}>"
            continue
        for token in line.tokens:
            kinds = (what for what, names in _NAMES if token.kind is TokenKind.NAME and names.fullmatch(token.text))
            yield from (f"line {token.line}: {what}: {token.text}" for what in kinds)


def needs_absent_header(source: str) -> bool:
    """Whether it includes one that is not installed with the compiler, so that nothing can be said of it."""
    return any(
        line.is_directive and [token.text for token in line.tokens[1:5]] in (["include", "<", "cuda", "/"],)
        for line in split_lines(source)
    )
