"""The larger and the smaller of two numbers by a comparison, which has a vector form; `fmaxf` is a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.dependence import MAXIMA, MINIMA
from opsmith_lab.c.tuning.syntax import SyntaxTree, exchange_nodes, read_range, read_text, walk_nodes
from opsmith_lab.c.tuning.vectorising import Edits

if TYPE_CHECKING:
    from tree_sitter import Node

_STEMS = {"fmaxf": "larger_of", "fmax": "larger_of", "fminf": "smaller_of", "fmin": "smaller_of"}


def list_extreme_calls(tree: SyntaxTree) -> list[Node]:
    return [
        node
        for node in walk_nodes(tree.root)
        if node.type == "call_expression"
        and read_text(node.named_children[0]) in MAXIMA | MINIMA
        and len(node.named_children[1].named_children) == 2
    ]


def replace_extremes(tree: SyntaxTree) -> str:
    """Every call of such a function, by one of the program's own that compares."""
    calls = list_extreme_calls(tree)
    names = {read_text(call.named_children[0]) for call in calls}
    own = {name: tree.make_name(_STEMS[name] + ("" if name.endswith("f") else "_double")) for name in sorted(names)}
    texts: dict[int, str] = {}
    for call in reversed(calls):  # inner ones first
        texts[call.id] = _write_call(call, own[read_text(call.named_children[0])], texts)
    outer = [call for call in calls if not _is_within(call, calls)]
    edits: Edits = {read_range(call): texts[call.id] for call in outer}
    place = tree.find_last_include()
    edits[place, place] = "\n\n" + "\n\n".join(_write_function(name, own[name]) for name in sorted(names)) + "\n"
    return tree.replace_ranges(edits)


def _is_within(call: Node, calls: list[Node]) -> bool:
    return any(
        each.id != call.id and each.start_byte <= call.start_byte and call.end_byte <= each.end_byte for each in calls
    )


def _write_call(call: Node, name: str, texts: dict[int, str]) -> str:
    """With the number that is surely one last: it is what remains where the comparison fails."""
    first, second = call.named_children[1].named_children
    if _is_sure(first, call) and not _is_sure(second, call):
        first, second = second, first
    return f"{name}({exchange_nodes(first, texts)}, {exchange_nodes(second, texts)})"


def _is_sure(argument: Node, call: Node) -> bool:
    """A constant, or the variable that the result goes to."""
    if argument.type == "number_literal":
        return True
    parent = call.parent
    target = parent.child_by_field_name("left") if parent is not None else None
    return target is not None and read_text(target) == read_text(argument)


def _write_function(function: str, name: str) -> str:
    kind = "float" if function.endswith("f") else "double"
    sign = ">" if function in MAXIMA else "<"
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\nreturn a {sign} b ? a : b;\n}}"
