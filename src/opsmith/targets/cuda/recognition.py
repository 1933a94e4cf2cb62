"""Whether a text as a whole is a CUDA program, as it must be told of the parts of a model's reply.

What is wrong with a program is another question (`source`): one that is refused later is a program all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from opsmith.targets.native.source_checks import DIRECTIVES, LARGEST_SOURCE
from opsmith.targets.native.tokens import Token, TokenKind, split_lines

KERNEL = "__global__"
_WORDS = """
static inline extern template typename namespace using constexpr const struct union enum class typedef void float double
int char long short unsigned signed bool half auto __global__ __device__ __host__ __shared__ __constant__
__forceinline__ __noinline__
"""
_BEGINNINGS = frozenset(_WORDS.split())
_TYPE = re.compile(r"u?int\d+_t|size_t|__?[A-Za-z]\w*|(?:float|half|int|uint|double)\d")


def is_program(text: str) -> bool:
    """Whether it begins and ends as CUDA does, closes every brace that it opens, and defines a kernel or tries to.

    >>> is_program("__global__ void f(float *y) { *y = 1; }"), is_program("Use __global__ void f(float *y) { }")
    (True, False)
    """
    if len(text) > 2 * LARGEST_SOURCE or KERNEL not in text:
        return False
    lines = split_lines(text)
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    return bool(code) and _begins_as_code(lines[0].tokens) and _ends_as_code(code) and _defines_kernel(code)


def _begins_as_code(tokens: Sequence[Token]) -> bool:
    """Whether a first line is a directive, or a declaration by its first word."""
    if tokens[0].text == "#":
        return len(tokens) > 1 and tokens[1].text in DIRECTIVES
    return tokens[0].text in _BEGINNINGS or _TYPE.fullmatch(tokens[0].text) is not None


def _ends_as_code(code: Sequence[Token]) -> bool:
    depth = 0
    for token in code:
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0:
            return False
    return depth == 0 and code[-1].text in ("}", ";")


def _defines_kernel(code: Sequence[Token]) -> bool:
    """Whether the word of kernels stands in code, and some name before a bracket."""
    has_word = any(token.text == KERNEL for token in code)
    return has_word and any(left.kind is TokenKind.NAME and right.text == "(" for left, right in pairwise(code))
