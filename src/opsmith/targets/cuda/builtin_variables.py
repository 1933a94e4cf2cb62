"""Nothing in a program may hang on where `threadIdx` and its like lie: on a GPU they have no place in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opsmith.records import Diagnostic
from opsmith.targets.cuda.syntax import read_text
from opsmith.targets.native.source_checks import KIND, Findings

if TYPE_CHECKING:
    from tree_sitter import Node

BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_CASTS = frozenset({"reinterpret_cast", "const_cast", "static_cast"})


def check_builtins(root: Node) -> Findings:
    """Uses of their addresses, and references to them from which a program takes one."""
    nodes = list(_walk_nodes(root))
    takers = _CASTS | {name for node in nodes if node.type == "function_definition" for name in _name_taker(node)}
    for node in nodes:
        name = read_text(node) if node.type == "identifier" else ""
        if name in BUILTINS and _has_address(node, takers):
            expected = "its values: a built-in variable has no address"
            remedy = f"copy it: `const auto copy = {name};`"
            yield Diagnostic(KIND, "program", f"the address of `{name}`", expected, remedy, node.start_point[0] + 1)


def _walk_nodes(root: Node) -> Iterator[Node]:
    """All named nodes, by a stack of our own."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


def _name_taker(function: Node) -> Iterator[str]:
    """The function's name, if a parameter of it is a reference and it takes an address or casts one."""
    declarator = function.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if declarator is None or name is None:
        return
    has_reference = any(node.type == "reference_declarator" for node in _walk_nodes(declarator))
    if has_reference and any(_is_taking(node) for node in _walk_nodes(function)):
        yield read_text(name).rsplit("::", 1)[-1]


def _is_taking(node: Node) -> bool:
    is_use = node.type in ("pointer_expression", "call_expression")
    return is_use and read_text(node).startswith(("&", "reinterpret_cast"))


def _has_address(node: Node, takers: frozenset[str]) -> bool:
    """Whether `&` is applied to a variable or its member, or a reference is bound to the variable."""
    parent = node.parent
    is_member = parent is not None and parent.type == "field_expression"
    if is_member and parent is not None:
        parent = parent.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is None or parent.type == "pointer_expression" or is_member:
        return parent is not None and parent.type == "pointer_expression" and read_text(parent).startswith("&")
    return parent.type.startswith("lambda_capture") or _binds_reference(parent, takers)


def _binds_reference(node: Node, takers: frozenset[str]) -> bool:
    if node.type == "init_declarator":
        declarator = node.child_by_field_name("declarator")
        return declarator is not None and declarator.type == "reference_declarator"
    if node.type == "cast_expression":
        type_ = node.child_by_field_name("type")
        return type_ is not None and "&" in read_text(type_)
    call = node.parent if node.type == "argument_list" else None
    function = call.child_by_field_name("function") if call is not None else None
    return function is not None and read_text(function).split("<")[0].strip().rsplit("::", 1)[-1] in takers
