"""Whether a text as a whole is a C program for a task, as it must be told of the parts of a model's reply.

What is wrong with a program is another question (`source`): one that is refused later is a program all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from opsmith.targets.c.source import FUNCTION
from opsmith.targets.native.source_checks import DIRECTIVES, LARGEST_SOURCE
from opsmith.targets.native.tokens import Token, split_lines

_WORDS = """
static inline void typedef struct union enum const extern float double int char long short unsigned signed size_t
bool register volatile restrict
"""
_BEGINNINGS = frozenset(_WORDS.split())
_TYPE = re.compile(r"u?int\d+_t|__?[A-Za-z]\w*")  # of <stdint.h>, _Float16, __m512, __attribute__


def is_program(text: str) -> bool:
    """Whether it begins and ends as C does, closes every brace that it opens, and defines the function or tries to.

    >>> is_program("void kernel(float *y) { *y = 1; }"), is_program("Use void kernel(float *y) { *y = 1; }")
    (True, False)
    """
    if len(text) > 2 * LARGEST_SOURCE or FUNCTION not in text:
        return False
    lines = split_lines(text)
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    return bool(code) and _begins_as_code(lines[0].tokens) and _ends_as_code(code) and _calls_for(code)


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


def _calls_for(code: Sequence[Token]) -> bool:
    """Whether the function's name stands before a bracket."""
    texts = [token.text for token in code]
    return any(pair == (FUNCTION, "(") for pair in pairwise(texts))
