"""The numbers by which a program in C divides its work: steps of loops, local arrays, unrolled turns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from opsmith.targets.programs import sort_parameters
from opsmith_lab.c.tuning.syntax import FOR, SyntaxTree, list_declared, read_operator, read_text, walk_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

_UNROLLED = re.compile(r"\s*#\s*pragma\s+(?:GCC\s+)?unroll\s*\(?\s*(\w+)")
_VECTOR = re.compile(r"vector_size\s*\(\s*(\d+)\s*\)")


def read_parameters(source: str) -> dict[str, tuple[int, ...]]:
    """As `targets.protocols.Parametrised` has it. A text with mistakes is read as far as it is C.

    >>> read_parameters("enum { TILE = 32 }; void kernel() { for (int n = 0; n < N; n += TILE) { float part[8]; } }")
    {'tile': (32,), 'block': (8,)}
    """
    return sort_parameters(_list_parameters(SyntaxTree(source)))


def _list_parameters(tree: SyntaxTree) -> Iterator[tuple[str, int]]:
    constants: dict[str, int] = {}  # names that stand for numbers, each where it is declared before its use
    for node in walk_nodes(tree.root):
        for name, value in _list_constants(node):
            constants[name] = _read_number(value, constants)
            if "stage" in name.lower():
                yield "stage", constants[name]
        if node.type == FOR:
            yield "tile", _read_step(node.child_by_field_name("update"), constants)
        elif node.type == "array_declarator":
            yield "block", _read_number(node.child_by_field_name("size"), constants)
        elif node.type == "preproc_call" and (match := _UNROLLED.match(read_text(node))):
            yield "unroll", int(match[1]) if match[1].isdecimal() else constants.get(match[1], 0)
        elif node.type == "attribute_specifier" and (match := _VECTOR.search(read_text(node))):
            yield "block", int(match[1])


def _list_constants(node: Node) -> Iterator[tuple[str, Node | None]]:
    if node.type in ("preproc_def", "enumerator"):
        name = node.child_by_field_name("name")
        yield read_text(name) if name is not None else "", node.child_by_field_name("value")
    for variable in list_declared(node):
        if "const" in variable.type_text.split() and variable.is_scalar:
            yield variable.name, variable.value


def _read_step(update: Node | None, constants: Mapping[str, int]) -> int:
    """By how much a loop's variable grows from turn to turn; 0: that is not constants."""
    if update is None or update.type != "assignment_expression":
        return 0
    right = update.child_by_field_name("right")
    if read_operator(update) == "+=":
        return _read_number(right, constants)
    if right is not None and right.type == "binary_expression" and read_operator(right) == "+":
        return max(_read_number(right.child_by_field_name(side), constants) for side in ("left", "right"))
    return 0


def _read_number(node: Node | None, constants: Mapping[str, int]) -> int:
    """0: it is no constant."""
    if node is None:
        return 0
    if node.type == "binary_expression" and read_operator(node) == "*":
        first, second = (_read_number(node.child_by_field_name(side), constants) for side in ("left", "right"))
        return first * second
    if node.type == "parenthesized_expression":
        return _read_number(next(iter(node.named_children), None), constants)
    text = read_text(node).strip()  # a macro's value is text
    match = re.fullmatch(r"\(?(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\)?", text)
    return int(match[1], 0 if match[1][:2] in ("0x", "0X") else 10) if match else constants.get(text, 0)
