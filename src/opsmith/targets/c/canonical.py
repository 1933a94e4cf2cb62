"""The canonical form of a C program: equal for programs that differ in names, comments and layout only.

Locals, parameters (of macros too) and static functions and variables get names in the order in which they are declared,
each in its scope; all that is seen outside (`kernel`, types, fields, labels) keeps its own, as does every other name
that a macro mentions. The parser expands no macros, so that a program whose macros are more than constants and
expressions in brackets keeps all its names, as does one that it cannot read: two programs that differ are never given
one form, and some that do not differ are given two.

Needs the extra `c` (tree-sitter, which reads no header).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from opsmith.errors import UsageError
from opsmith.targets.native.renaming import Renaming, find_fixed_names, has_plain_macros, join_tokens
from opsmith.targets.native.tokens import join_splices, split_lines

if TYPE_CHECKING:
    from tree_sitter import Parser

NO_PARSER = "the language C: its parser is not installed; try: pip install 'opsmith[c]'"


def write_canonical(source: str) -> str:
    """The canonical form of a text that `check_source` lets pass. Raises UsageError where there is no parser."""
    text = join_splices(source)
    return join_tokens(split_lines(text), _choose_names(text))


def list_inner_names(source: str) -> dict[int, str]:
    """Names that nobody outside sees, by their places in the joined source. None of a program that keeps its names, or
    is no ASCII. Raises UsageError where there is no parser."""
    text = join_splices(source)
    matches = (re.compile(r"\w+").match(text, place) for place in (_choose_names(text) if text.isascii() else ()))
    return {match.start(): match[0] for match in matches if match is not None}


def _choose_names(text: str) -> dict[int, str]:
    """New names by their places; none where the parser may read the text otherwise than a compiler."""
    lines = split_lines(text)
    tree = load_parser().parse("".join(character if character.isascii() else "?" for character in text).encode())
    if tree.root_node.has_error or not has_plain_macros(lines):
        return {}
    renaming = Renaming(find_fixed_names(lines))
    renaming.walk_tree(tree.root_node)
    return renaming.new_names


@cache
def load_parser() -> Parser:
    """Raises UsageError."""
    try:
        import tree_sitter_c  # noqa: PLC0415  (an extra)
        from tree_sitter import Language, Parser  # noqa: PLC0415
    except ImportError:
        raise UsageError(NO_PARSER) from None
    return Parser(Language(tree_sitter_c.language()))
