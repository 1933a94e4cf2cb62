"""Every function that differs from an offered one by a single edit of its body or its start values.

The wanted values of a task do not come from its functions, so a right program over a changed function is a wrong
program, unless the change makes no difference. Operators, comparisons, numbers, fields, operands and calls are changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from opsmith.problems.constants import SwapNode
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import fields_of
from opsmith_lab.step.mutation.fn_laws import identity_of, parse_body

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EXTREMES = ("maximum", "minimum")


def edit_fn(fn: FnSpec) -> Iterator[FnSpec]:
    """All single edits of a function, each once."""
    identities = {identity_of(fn)}
    for changed in (*_edit_bodies(fn), *_edit_starts(fn)):
        name = identity_of(changed)
        if name not in identities:
            identities.add(name)
            yield changed


def _edit_starts(fn: FnSpec) -> Iterator[FnSpec]:
    for place, start in enumerate(fn.init or ()):
        for number in (0.0, 1.0, -1.0):
            if fn.init is not None and number != start:
                yield replace(fn, init=(*fn.init[:place], number, *fn.init[place + 1 :]))


def _edit_bodies(fn: FnSpec) -> Iterator[FnSpec]:
    """One function per node of the body and way to replace it; each starts from a tree of its own."""
    nodes = list(_walk_nodes(parse_body(fn)))
    for place, node in enumerate(nodes):
        for choice in range(len(list(_replace_node(node, fn)))):
            changed = parse_body(fn)
            old = list(_walk_nodes(changed))[place]
            SwapNode(old, list(_replace_node(old, fn))[choice]).visit(changed)
            yield replace(fn, apply=_unparse_body(changed))


def _unparse_body(tree: ast.Module) -> str:
    function = ast.fix_missing_locations(tree).body[0]
    assert isinstance(function, ast.FunctionDef)
    return "\n".join(ast.unparse(statement) for statement in function.body) + "\n"


def _walk_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but the numbers of fields, which `_replace_field` exchanges for other fields."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Subscript) and _is_field(node) and isinstance(child, ast.Constant)):
            yield from _walk_nodes(child)


def _is_field(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("input", "state")


def _replace_node(node: ast.AST, fn: FnSpec) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp():
            yield from _replace_operation(node)
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            yield from (
                ast.Compare(left, [changed()], comparators) for changed in COMPARISONS if not isinstance(op, changed)
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(changed) for changed in (value + 1, value - 1, 2 * value) if changed != value)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(at))) if name in ("input", "state"):
            yield from _replace_field(name, at, fn)
        case ast.Call():
            yield from _replace_call(node)
        case ast.List(elts=parts) if len(parts) > 1:
            yield ast.List(parts[::-1], ast.Load())


def _replace_operation(node: ast.BinOp) -> Iterator[ast.AST]:
    """Another operator, the operands exchanged, or one of them alone."""
    if isinstance(node.op, ARITHMETIC):
        yield from (
            ast.BinOp(node.left, operator(), node.right) for operator in ARITHMETIC if not isinstance(node.op, operator)
        )
    if not isinstance(node.op, ast.Add | ast.Mult):
        yield ast.BinOp(node.right, node.op, node.left)
    yield from (node.left, node.right)


def _replace_field(name: str, place: int, fn: FnSpec) -> Iterator[ast.AST]:
    """Another field of the input or of the state."""
    counts = {"input": len(fields_of(fn.input_dtype)), "state": len(fn.init or ())}
    for source, count in counts.items():
        for number in range(count):
            if (source, number) != (name, place):
                yield ast.Subscript(ast.Name(source, ast.Load()), ast.Constant(number), ast.Load())


def _replace_call(node: ast.Call) -> Iterator[ast.AST]:
    """Without the call; without one keyword; the other extreme."""
    if node.args:
        yield node.args[0]
    for place in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, [*node.keywords[:place], *node.keywords[place + 1 :]])
    match node.func:
        case ast.Attribute(value=value, attr=name) if name in EXTREMES:
            yield ast.Call(ast.Attribute(value, EXTREMES[1 - EXTREMES.index(name)], ast.Load()), node.args, [])
