"""Whether a text as a whole is a WGSL program."""

from __future__ import annotations

import re

from opsmith.targets.wgsl.lexing import split_source

_LARGEST = 1 << 17  # characters
_BEGINNING = re.compile(r"enable|requires|diagnostic|struct|alias|const|override|var|fn|const_assert|@")


def is_program(text: str) -> bool:
    """Whether it begins and ends as WGSL does, closes every brace that it opens, and has a kernel or tries to.

    >>> is_program("@compute @workgroup_size(1) fn f() { }"), is_program("Use @compute fn f() { }")
    (True, False)
    """
    if len(text) > _LARGEST or "fn" not in text:
        return False
    tokens = [token.text for token in split_source(text)]
    if not tokens or _BEGINNING.fullmatch(tokens[0]) is None or tokens[-1] not in ("}", ";"):
        return False
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if depth < 0:
            return False
    return depth == 0 and "fn" in tokens
