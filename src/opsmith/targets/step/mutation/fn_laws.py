"""What does a function's text prove about it? Which fields it passes on or treats alike, and what a first step is.

Proofs are about the text: a property that holds but cannot be read off the syntax tree is not claimed. Two functions
with equal texts and types are one function, whatever they are called. Numbers are equal up to the sign of zero.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from opsmith.targets.step.language.spec import Fn
from opsmith.targets.step.language.types import fields_of


@lru_cache(maxsize=256)
def identity_of(fn: Fn) -> tuple[object, ...]:
    """Equal for two functions exactly when their bodies, types and start values are."""
    return (ast.dump(_parsed(fn.apply)), fn.input_dtype, fn.output_dtype, fn.init)


@lru_cache(maxsize=256)
def projection(fn: Fn) -> tuple[int, ...] | None:
    """The input fields that a stateless fn returns untouched, in order; None for one that does anything else."""
    if fn.stateful:
        return None
    return _selection(_returned(fn))


@lru_cache(maxsize=256)
def first_step(fn: Fn) -> tuple[int, ...] | None:
    """The input fields that a stateful fn returns when its state is still init, in order; None: anything else.

    Sums that start from 0 do, products from 1, maxima from -inf and minima from inf.
    """
    results = _returned(fn)
    if results is None or fn.init is None:
        return None
    kept = _selection([_from_init(result, fn.init) for result in results])
    given, made = fields_of(fn.input_dtype), fields_of(fn.output_dtype)
    return kept if kept and tuple(given[at] for at in kept) == made else None  # else state + input is broadcast


@lru_cache(maxsize=256)
def exchangeable(fn: Fn) -> tuple[tuple[int, int], ...]:
    """Pairs of input fields that may trade places: of one type, and the body reads the same with them exchanged."""
    if not _reads_by_number(_parsed(fn.apply)):
        return ()
    fields = fields_of(fn.input_dtype)
    pairs = [(i, j) for j in range(len(fields)) for i in range(j) if fields[i] == fields[j]]
    return tuple(pair for pair in pairs if _commuted(fn) == _commuted(fn, _Exchanged(*pair)))


def _commuted(fn: Fn, change: ast.NodeTransformer | None = None) -> str:
    body = _parsed(fn.apply)
    return ast.dump(_Commuted().visit(change.visit(body) if change else body))


def _reads_by_number(body: ast.Module) -> bool:
    """Whether `input` occurs as `input[i]` only, so that exchanging numbers exchanges fields."""
    named = sum(isinstance(node, ast.Name) and node.id == "input" for node in ast.walk(body))
    return named == sum(_field(node, "input") is not None for node in ast.walk(body))


def _parsed(body: str) -> ast.Module:
    return ast.parse(f"def body():\n{chr(10).join(' ' + line for line in body.splitlines())}")


def _returned(fn: Fn) -> list[ast.expr] | None:
    """The expressions of a body that is one `return [...]`."""
    match _parsed(fn.apply).body:
        case [ast.FunctionDef(body=[ast.Return(value=ast.List(elts=results))])]:
            return results
    return None


def _selection(results: list[ast.expr] | None) -> tuple[int, ...] | None:
    fields = [_field(result, "input") for result in results or []]
    known = tuple(field for field in fields if field is not None)
    return known if known and len(known) == len(fields) else None


def _field(node: ast.AST, of: str) -> int | None:
    """i of `input[i]` or `state[i]`."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(i))) if name == of:
            return i
    return None


_UNITS = {ast.Add: 0.0, ast.Mult: 1.0}
_EXTREMES = {"maximum": float("-inf"), "minimum": float("inf")}


def _from_init(node: ast.expr, init: tuple[float, ...]) -> ast.expr:
    """`x` for `state[i] + x` where state[i] starts at the operation's unit; any other expression as it is."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            unit = _UNITS.get(type(op))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[left, right], keywords=[]):
            unit = _EXTREMES.get(name)
        case _:
            return node
    for state, other in ((left, right), (right, left)):
        at = _field(state, "state")
        if at is not None and unit is not None and init[at] == unit:
            return other
    return node


class _Exchanged(ast.NodeTransformer):
    """`input[i]` for `input[j]` and the reverse."""

    def __init__(self, i: int, j: int) -> None:
        self.other = {i: j, j: i}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        at = _field(node, "input")
        if at in self.other:
            return ast.Subscript(node.value, ast.Constant(self.other[at]), node.ctx)
        return self.generic_visit(node)


class _Commuted(ast.NodeTransformer):
    """The operands of every `+` and `*` of numbers in one order; each commutes exactly, also in floating point."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Mult) and _is_numeric(node):
            left, right = sorted((node.left, node.right), key=ast.dump)
            return ast.BinOp(left, node.op, right)
        return node


def _is_numeric(node: ast.expr) -> bool:
    """Whether an expression is arithmetic on fields and numbers; lists and tuples have a `+` that does not commute."""
    if isinstance(node, ast.BinOp):
        return _is_numeric(node.left) and _is_numeric(node.right)
    number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return number or _field(node, "input") is not None or _field(node, "state") is not None
