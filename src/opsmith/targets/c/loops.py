"""The loops of a C program: where they stand, and how they lie in each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from opsmith.targets.c.canonical import load_parser
from opsmith.targets.native.remarks import SourceLoop

if TYPE_CHECKING:
    from tree_sitter import Node

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
_BEFORE = frozenset({"comment", "preproc_call"})
_PRAGMA = re.compile(rb"#\s*pragma\s+omp\b")


def list_loops(source: str) -> list[SourceLoop]:
    """In the order of the text. Raises UsageError where there is no parser."""
    root = load_parser().parse(source.encode("utf-8", "replace")).root_node
    loops = []
    for node, depth in _walk_loops(root):
        first, is_innermost = node.start_point[0] + 1, all(child.id == node.id for child, _ in _walk_loops(node))
        within = range(first + 1, node.end_point[0] + 2) if is_innermost else ()
        # gcc places a loop under a pragma of OpenMP at its first statement, and at the pragma what it does before and
        # after the loop
        loops.append(SourceLoop(first, depth, is_innermost, (first, *within, *_find_pragma(node))))
    return loops


def _find_pragma(loop: Node) -> Iterator[int]:
    """The line of a pragma of OpenMP before a loop, where there is one."""
    node = loop.prev_named_sibling
    while node is not None and node.type in _BEFORE:
        if _PRAGMA.match(node.text or b""):
            yield node.start_point[0] + 1
        node = node.prev_named_sibling


def _walk_loops(root: Node) -> Iterator[tuple[Node, int]]:
    """All loops with their depth, by a stack of our own: a text may be nested deeper than calls can be."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if node.type in _LOOPS:
            depth += 1
            yield node, depth
        stack.extend((child, depth) for child in reversed(node.named_children))
