"""The canonical form of a Metal program: equal for programs that differ in names, comments and layout only.

Kernels, their parameters, and variables of known types become numbers, one for each name of the text, in the order in
which they are first mentioned. Fields, names of Metal's library and names that directives mention keep theirs: two
programs that differ are never given one form, and some that do not differ are given two. The plan is a part.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from opsmith.targets.gpu.canonical import write_plan_of
from opsmith.targets.metal.dialect import METAL_DIALECT
from opsmith.targets.metal.syntax import list_kernels
from opsmith.targets.native.renaming import join_tokens
from opsmith.targets.native.tokens import TokenKind, join_splices, split_lines

_TYPE = re.compile(r"(?:packed_)?(?:bool|u?char|u?short|u?int|u?long|float|half|bfloat)[234]?|auto|size_t|u?int\d+_t")
_MEMBER = frozenset({".", "->", "::"})


def write_canonical(source: str) -> str:
    """The canonical form of a text that passed the checks of PARSE."""
    text = join_splices(source)
    lines = split_lines(text)
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    heads = list_kernels(text)
    declared = {head.name for head in heads} | {each.name for head in heads for each in head.parameters}
    for place, (token, after) in enumerate(pairwise(code)):
        behind = code[place + 2].text if place + 2 < len(code) else ""
        if after.kind is TokenKind.NAME and behind in ("=", ";", ",", "[", ")", ":"):
            is_pointer = token.text in ("*", "&") and place and _TYPE.fullmatch(code[place - 1].text)
            if _TYPE.fullmatch(token.text) or is_pointer:
                declared.add(after.text)
    fixed = _list_library() | {after.text for token, after in pairwise(code) if token.text in _MEMBER}
    fixed |= {token.text for line in lines if line.is_directive for token in line.tokens}
    numbers: dict[str, str] = {}
    for token in code:
        if token.kind is TokenKind.NAME and token.text in declared - fixed:
            numbers.setdefault(token.text, f"${len(numbers)}")
    places = {token.place: numbers[token.text] for token in code if token.text in numbers}
    return f"{write_plan_of(source, numbers)}{join_tokens(lines, places)}"


@cache
def _list_library() -> frozenset[str]:
    """What a program may call or name of our headers."""
    texts = (path.read_text("utf-8") for path in METAL_DIALECT.headers.iterdir())
    pattern = r"[A-Za-z_]\w*(?=\()|(?<=#define )\w+|(?:mem|memory|thread)_\w+|(?<=[(_,])(?:simd|quad)(?:_\w+)?"
    return frozenset(word for text in texts for word in re.findall(pattern, text)) | {"metal", "simd", "quad"}
