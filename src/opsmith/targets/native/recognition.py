"""Whether a text as a whole is a program in C or its like, as it must be told of the parts of a model's reply.

What is wrong with a program is another question (`source_checks`): one that is refused later is a program all the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opsmith.targets.native.source_checks import DIRECTIVES, LARGEST_SOURCE
from opsmith.targets.native.tokens import Token, split_lines


@dataclass(frozen=True)
class Beginnings:
    """What a declaration begins with."""

    words: Collection[str]
    types: re.Pattern[str]


def read_code(text: str, beginnings: Beginnings) -> Sequence[Token]:
    """The tokens outside of directives, where the text begins and ends as code does and closes every brace that it
    opens; none where it does not."""
    if len(text) > 2 * LARGEST_SOURCE:
        return ()
    lines = split_lines(text)
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    return code if code and _begins_as_code(lines[0].tokens, beginnings) and _ends_as_code(code) else ()


def _begins_as_code(tokens: Sequence[Token], beginnings: Beginnings) -> bool:
    """Whether a first line is a directive, or a declaration by its first word."""
    if tokens[0].text == "#":
        return len(tokens) > 1 and tokens[1].text in DIRECTIVES
    return tokens[0].text in beginnings.words or beginnings.types.fullmatch(tokens[0].text) is not None


def _ends_as_code(code: Sequence[Token]) -> bool:
    depth = 0
    for token in code:
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0:
            return False
    return depth == 0 and code[-1].text in ("}", ";")
