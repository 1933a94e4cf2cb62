"""The canonical form of a CUDA program: equal for programs that differ in names, comments and layout only.

Kernels, helpers, their parameters, variables and macros' parameters get names in the order in which they are declared,
workspaces those in which launches use them; the plan is a part of the form, in its own. What is reached in other ways
than by its scope keeps its name: members of classes, what is qualified, captured, or mentioned by macros. Two programs
that differ are never given one form, and some that do not differ are given two.

Needs the extra `cuda` (tree-sitter, which reads no header).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsmith.targets.cuda.syntax import parse_program, read_text
from opsmith.targets.gpu.canonical import write_plan_of
from opsmith.targets.native.renaming import Renaming, find_fixed_names, has_plain_macros, join_tokens
from opsmith.targets.native.tokens import TokenKind, join_splices, split_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_BEYOND_SCOPES = frozenset(  # within these a name may mean what its scope does not say
    {"qualified_identifier", "lambda_expression", "namespace_definition", "namespace_alias_definition"}
    | {"using_declaration", "alias_declaration", "class_specifier", "struct_specifier", "union_specifier"}
    | {"enum_specifier", "structured_binding_declarator", "for_range_loop", "friend_declaration", "operator_name"}
    | {"type_parameter_declaration", "variadic_type_parameter_declaration", "optional_type_parameter_declaration"}
    | {"requires_clause", "concept_definition", "type_definition", "try_statement", "template_template_parameter"}
    | {"launch_bounds", "field_initializer_list", "dependent_name", "type_requirement", "static_assert_declaration"}
)


def write_canonical(source: str) -> str:
    """The canonical form of a text that `check_source` lets pass. Raises UsageError where there is no parser."""
    text = join_splices(source)
    lines = split_lines(text)
    root = parse_program("".join(character if character.isascii() else "?" for character in text))
    if root.has_error or not has_plain_macros(lines):
        return f"{write_plan_of(source, {})}{join_tokens(lines, {})}"
    renaming = Renaming(find_fixed_names(lines, "unroll nounroll") | _find_unscoped(root), shows_file=False)
    renaming.walk_tree(root)
    return f"{write_plan_of(source, renaming.names_of_file)}{join_tokens(lines, renaming.new_names)}"


def _find_unscoped(root: Node) -> frozenset[str]:
    """All names within what is beyond the rules of scopes."""
    names: set[str] = set()
    stack = [(root, False)]
    while stack:
        node, is_beyond = stack.pop()
        is_beyond = is_beyond or node.type in _BEYOND_SCOPES
        if is_beyond and not node.children:
            tokens = (token for line in split_lines(read_text(node)) for token in line.tokens)
            names.update(token.text for token in tokens if token.kind is TokenKind.NAME)
        stack.extend((child, is_beyond) for child in node.children)
    return frozenset(names)
