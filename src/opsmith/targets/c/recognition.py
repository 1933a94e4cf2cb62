"""Whether a text as a whole is a C program for a task."""

from __future__ import annotations

import re
from itertools import pairwise

from opsmith.targets.c.source import FUNCTION
from opsmith.targets.native.recognition import Beginnings, read_code

_WORDS = """
static inline void typedef struct union enum const extern float double int char long short unsigned signed size_t
bool register volatile restrict
"""
_BEGINNINGS = Beginnings(
    frozenset(_WORDS.split()),
    re.compile(r"u?int\d+_t|__?[A-Za-z]\w*"),  # of <stdint.h>, _Float16, __m512, __attribute__
)


def is_program(text: str) -> bool:
    """Whether it begins and ends as C does, closes every brace that it opens, and defines the function or tries to.

    >>> is_program("void kernel(float *y) { *y = 1; }"), is_program("Use void kernel(float *y) { *y = 1; }")
    (True, False)
    """
    if FUNCTION not in text:
        return False
    texts = [token.text for token in read_code(text, _BEGINNINGS)]
    return any(pair == (FUNCTION, "(") for pair in pairwise(texts))
