"""Constraints: what the sizes of a problem keep beside whole dims, such as `len_indptr == batch_size + 1`.

A constraint is a comparison of whole-number expressions over dims, in a small part of Python's syntax, which is read
and never executed. An equality with a bare dim on one side says that this dim *follows* from the others: hidden sizes
draw the others and compute it. All that remains is checked.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

MAX_TEXT = 200  # characters of one constraint
MAX_NUMBER = 2**62  # of anything that an expression computes

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}


class ConstraintError(ValueError):
    """A constraint that cannot be read; `str(error)` says why."""


@lru_cache(maxsize=1024)
def parse_constraint(text: str) -> ast.Compare:
    """The comparison that a text states. Raises ConstraintError.

    >>> sorted(list_symbols("len_indptr == batch_size + 1"))
    ['batch_size', 'len_indptr']
    """
    if len(text) > MAX_TEXT:
        raise ConstraintError(f"{len(text)} characters; expected at most {MAX_TEXT}")
    if re.search(r"[^\w\s+\-*/%=!<>(),]", text):
        raise ConstraintError("it is no comparison of dims and whole numbers")
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConstraintError("Python cannot parse it") from None
    if not isinstance(node, ast.Compare):
        raise ConstraintError("it compares nothing")
    for operand in (node.left, *node.comparators):
        _check_expression(operand)
    if unknown := [type(sign).__name__ for sign in node.ops if type(sign) not in _COMPARISONS]:
        raise ConstraintError(f"{unknown[0]} is none of == != < <= > >=")
    return node


def _check_expression(node: ast.expr) -> None:
    """Raises ConstraintError unless `_compute_value` can compute it."""
    if isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) is int):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        operands = [node.left, node.right]
    elif isinstance(node, ast.Call) and _is_bound_call(node):
        operands = node.args
    else:
        raise ConstraintError(f"`{ast.unparse(node)[:60]}` is no sum, product, quotient or bound of dims")
    for operand in operands:
        _check_expression(operand)


def _is_bound_call(node: ast.Call) -> bool:
    is_named = isinstance(node.func, ast.Name) and node.func.id in _CALLS
    return is_named and len(node.args) > 1 and not node.keywords


def list_symbols(text: str) -> frozenset[str]:
    """The dims that a constraint names. Raises ConstraintError."""
    return _list_names(parse_constraint(text))


def _list_names(tree: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id not in _CALLS)


def satisfies_constraint(text: str, sizes: Mapping[str, int]) -> bool:
    """Whether sizes keep a constraint; one that has no value there is not kept.

    >>> satisfies_constraint("heads % groups == 0", {"heads": 8, "groups": 3})
    False
    """
    node = parse_constraint(text)
    try:
        values = [_compute_value(operand, sizes) for operand in (node.left, *node.comparators)]
    except (ZeroDivisionError, KeyError, OverflowError):
        return False
    triples = zip(node.ops, values, values[1:], strict=False)
    return all(_COMPARISONS[type(sign)](first, second) for sign, first, second in triples)


def satisfies_all(constraints: Sequence[str], sizes: Mapping[str, int]) -> bool:
    return all(satisfies_constraint(text, sizes) for text in constraints)


def _compute_value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """The value of an expression that was checked."""
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        value = _ARITHMETIC[type(node.op)](_compute_value(node.left, sizes), _compute_value(node.right, sizes))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        value = _CALLS[node.func.id](*(_compute_value(argument, sizes) for argument in node.args))
    else:
        assert isinstance(node, ast.Constant)
        assert isinstance(node.value, int)
        value = node.value
    if abs(value) > MAX_NUMBER:
        raise OverflowError
    return value


def list_following(constraints: Sequence[str]) -> dict[str, ast.expr]:
    """The dims that follow from others, each with its expression, in an order in which they can be computed.

    >>> list(list_following(["len_indptr == batch_size + 1", "batch_size == len_indptr - 1"]))
    ['len_indptr']
    """
    following: dict[str, ast.expr] = {}
    for text in constraints:
        for name, expression in _list_equalities(parse_constraint(text)):
            needed = _list_names(expression)
            if name not in following and name not in _list_roots(needed, following):
                following[name] = expression
                break
    return _order_following(following)


def _list_equalities(node: ast.Compare) -> list[tuple[str, ast.expr]]:
    """The two ways of reading an equality as the definition of a bare dim."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return []
    sides = [(node.left, node.comparators[0]), (node.comparators[0], node.left)]
    return [(side.id, value) for side, value in sides if isinstance(side, ast.Name)]


def _list_roots(names: frozenset[str], following: Mapping[str, ast.expr]) -> set[str]:
    """These dims and all that they follow from."""
    roots, waiting = set(names), list(names)
    while waiting:
        name = waiting.pop()
        further = _list_names(following[name]) - roots if name in following else frozenset()
        roots |= further
        waiting += further
    return roots


def _order_following(following: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    ordered: dict[str, ast.expr] = {}
    while len(ordered) < len(following):
        for name, expression in following.items():
            if name not in ordered and not (_list_names(expression) & following.keys()) - ordered.keys():
                ordered[name] = expression
    return ordered


def follow_constraints(constraints: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int] | None:
    """These sizes with every dim that follows computed from the others; None: one of them has no size of at least 1.

    >>> follow_constraints(["len_indptr == batch_size + 1"], {"batch_size": 4, "len_indptr": 9})
    {'batch_size': 4, 'len_indptr': 5}
    """
    completed = dict(sizes)
    for name, expression in list_following(constraints).items():
        try:
            completed[name] = _compute_value(expression, completed)
        except (ZeroDivisionError, KeyError, OverflowError):
            return None
        if completed[name] < 1:
            return None
    return completed
