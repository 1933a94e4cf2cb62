"""Whether a text as a whole is a CUDA program."""

from __future__ import annotations

import re
from itertools import pairwise

from opsmith.targets.native.recognition import Beginnings, read_code
from opsmith.targets.native.tokens import TokenKind

KERNEL = "__global__"
_WORDS = """
static inline extern template typename namespace using constexpr const struct union enum class typedef void float double
int char long short unsigned signed bool half auto __global__ __device__ __host__ __shared__ __constant__
__forceinline__ __noinline__
"""
_BEGINNINGS = Beginnings(
    frozenset(_WORDS.split()),
    re.compile(r"u?int\d+_t|size_t|__?[A-Za-z]\w*|(?:float|half|int|uint|double)\d"),
)


def is_program(text: str) -> bool:
    """Whether it begins and ends as CUDA does, closes every brace that it opens, and defines a kernel or tries to.

    >>> is_program("__global__ void f(float *y) { *y = 1; }"), is_program("Use __global__ void f(float *y) { }")
    (True, False)
    """
    if KERNEL not in text:
        return False
    code = read_code(text, _BEGINNINGS)
    has_word = any(token.text == KERNEL for token in code)
    return has_word and any(left.kind is TokenKind.NAME and right.text == "(" for left, right in pairwise(code))
