"""Functions that are called under a condition, called always: a choice between numbers has a vector form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.syntax import SyntaxTree, list_called, list_inner_loops, read_range, read_text, walk_nodes
from opsmith_lab.c.tuning.vectorising import VECTOR_FUNCTIONS, Edits

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class ConditionalCall:
    """A call within one side of `?:`, in a statement of an innermost loop."""

    statement: Node
    call: Node

    @property
    def function(self) -> str:
        return read_text(self.call.named_children[0])


def list_conditional_calls(tree: SyntaxTree) -> Iterator[ConditionalCall]:
    """Those whose arguments read nothing that is not read or written anyway."""
    for loop in tree.loops:
        if list_inner_loops(loop.node):
            continue
        for statement in loop.statements:
            if statement.type != "expression_statement":
                continue
            for node in walk_nodes(statement):
                if node.type == "conditional_expression":
                    yield from _list_calls(statement, node)


def _list_calls(statement: Node, choice: Node) -> Iterator[ConditionalCall]:
    sides = [choice.child_by_field_name(name) for name in ("consequence", "alternative")]
    outside = Counter(_list_elements(statement))
    for side in sides:
        outside -= Counter(_list_elements(side)) if side is not None else Counter()
    for side in sides:
        for node in walk_nodes(side) if side is not None else ():
            is_call = node.type == "call_expression" and bool(list_called(node) & VECTOR_FUNCTIONS)
            if is_call and set(_list_elements(node)) <= set(outside):
                yield ConditionalCall(statement, node)


def _list_elements(node: Node) -> list[str]:
    return [read_text(child) for child in walk_nodes(node) if child.type == "subscript_expression"]


def hoist_call(tree: SyntaxTree, conditional: ConditionalCall) -> str:
    name = tree.make_name("always")
    kind = "float" if conditional.function.endswith("f") and conditional.function != "erf" else "double"
    start = conditional.statement.start_byte
    edits: Edits = {(start, start): f"{kind} {name} = {read_text(conditional.call)};\n"}
    edits[read_range(conditional.call)] = name
    return tree.replace_ranges(edits)
