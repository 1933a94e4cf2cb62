"""The loops of a C program: where they stand, and how they lie in each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opsmith.targets.c.canonical import load_parser
from opsmith.targets.native.remarks import SourceLoop

if TYPE_CHECKING:
    from tree_sitter import Node

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})


def list_loops(source: str) -> list[SourceLoop]:
    """In the order of the text. Raises UsageError where there is no parser."""
    root = load_parser().parse(source.encode("utf-8", "replace")).root_node
    return [SourceLoop(node.start_point[0] + 1, depth, not _holds_loops(node)) for node, depth in _walk_loops(root)]


def _walk_loops(root: Node) -> Iterator[tuple[Node, int]]:
    """All loops with their depth, by a stack of our own: a text may be nested deeper than calls can be."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if node.type in _LOOPS:
            depth += 1
            yield node, depth
        stack.extend((child, depth) for child in reversed(node.named_children))


def _holds_loops(node: Node) -> bool:
    return next((True for child, _ in _walk_loops(node) if child.id != node.id), False)
