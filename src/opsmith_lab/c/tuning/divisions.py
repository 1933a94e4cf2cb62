"""Divisions by a number that stays the same over a loop: one division before it, and products in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.syntax import (
    CountedLoop,
    SyntaxTree,
    find_assigned,
    find_declaration,
    list_all_declared,
    list_inner_loops,
    read_operator,
    read_text,
    walk_nodes,
)
from opsmith_lab.c.tuning.vectorising import Edits, find_loop_start

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class LoopDivision:
    """All divisions by one variable in an innermost loop."""

    loop: CountedLoop
    divisor: str
    type_text: str
    nodes: tuple[Node, ...]


def list_divisions(tree: SyntaxTree) -> Iterator[LoopDivision]:
    for loop in tree.loops:
        if list_inner_loops(loop.node):
            continue
        changing = find_assigned(loop.body) | {variable.name for variable in list_all_declared(loop.node)}
        nodes: dict[str, list[Node]] = {}
        for node in walk_nodes(loop.body):
            divisor = _find_divisor(node)
            if divisor and divisor not in changing:
                nodes.setdefault(divisor, []).append(node)
        for divisor, divisions in nodes.items():
            variable = find_declaration(loop.node, divisor)
            if variable is not None and variable.is_scalar and variable.type_text in ("float", "double"):
                yield LoopDivision(loop, divisor, variable.type_text, tuple(divisions))


def _find_divisor(node: Node) -> str:
    """The variable that an expression or an assignment divides by; "" for another one."""
    right = node.child_by_field_name("right")
    is_division = (node.type, read_operator(node)) in (("binary_expression", "/"), ("assignment_expression", "/="))
    return read_text(right) if is_division and right is not None and right.type == "identifier" else ""


def hoist_division(tree: SyntaxTree, division: LoopDivision) -> str:
    name, kind = tree.make_name(f"{division.divisor}_inverse"), division.type_text
    unit = "1.0f" if kind == "float" else "1.0"
    start = find_loop_start(division.loop.node)
    edits: Edits = {(start, start): f"{kind} {name} = {unit} / {division.divisor};\n"}
    for node in division.nodes:
        operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
        assert operator is not None
        assert right is not None
        edits[operator.start_byte, right.end_byte] = f"{read_text(operator).replace('/', '*')} {name}"
    return tree.replace_ranges(edits)
