"""What a function's text proves about it: which fields it passes on or treats alike, and what a first step is.

Proofs are about the text: a property that holds but cannot be read off the syntax tree is not claimed. Two functions
with equal texts and types are one function, whatever they are called. Numbers are equal up to the sign of zero.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import fields_of


@lru_cache(maxsize=256)
def identity_of(fn: FnSpec) -> tuple[object, ...]:
    """Equal for two functions exactly when their bodies, types and start values are."""
    return (ast.dump(parse_body(fn)), fn.input_dtype, fn.output_dtype, fn.init)


@lru_cache(maxsize=256)
def find_projection(fn: FnSpec) -> tuple[int, ...] | None:
    """The input fields that a stateless fn returns untouched, in order; None for one that does anything else."""
    if fn.stateful:
        return None
    return _select_fields(_find_results(fn))


@lru_cache(maxsize=256)
def find_first_step(fn: FnSpec) -> tuple[int, ...] | None:
    """The input fields that a stateful fn returns when its state is still init, in order; None: anything else.

    Sums that start from 0 do, products from 1, maxima from -inf and minima from inf.
    """
    results = _find_results(fn)
    if results is None or fn.init is None:
        return None
    selected = _select_fields([_from_init(result, fn.init) for result in results])
    inputs, outputs = fields_of(fn.input_dtype), fields_of(fn.output_dtype)
    return (
        selected if selected and tuple(inputs[number] for number in selected) == outputs else None
    )  # else state + input is broadcast


@lru_cache(maxsize=256)
def find_exchangeable(fn: FnSpec) -> tuple[tuple[int, int], ...]:
    """Pairs of input fields that may trade places: of one type, and the body reads the same with them exchanged."""
    if not _reads_by_number(parse_body(fn)):
        return ()
    fields = fields_of(fn.input_dtype)
    pairs = [(i, j) for j in range(len(fields)) for i in range(j) if fields[i] == fields[j]]
    return tuple(pair for pair in pairs if _dump_commuted(fn) == _dump_commuted(fn, _Exchanged(*pair)))


def _dump_commuted(fn: FnSpec, change: ast.NodeTransformer | None = None) -> str:
    body = parse_body(fn)
    return ast.dump(_Commuted().visit(change.visit(body) if change else body))


def _reads_by_number(body: ast.Module) -> bool:
    """Whether `input` occurs as `input[i]` only, so that exchanging numbers exchanges fields."""
    named = sum(isinstance(node, ast.Name) and node.id == "input" for node in ast.walk(body))
    return named == sum(_field_number(node, "input") is not None for node in ast.walk(body))


def parse_body(fn: FnSpec) -> ast.Module:
    """The body as that of a function without parameters."""
    return ast.parse("def body():\n" + "\n".join(" " + line for line in fn.apply.splitlines()))


def _find_results(fn: FnSpec) -> list[ast.expr] | None:
    """The expressions of a body that is one `return [...]`."""
    match parse_body(fn).body:
        case [ast.FunctionDef(body=[ast.Return(value=ast.List(elts=results))])]:
            return results
    return None


def _select_fields(results: list[ast.expr] | None) -> tuple[int, ...] | None:
    fields = [_field_number(result, "input") for result in results or []]
    numbers = tuple(field for field in fields if field is not None)
    return numbers if numbers and len(numbers) == len(fields) else None


def _field_number(node: ast.AST, of: str) -> int | None:
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
    for state, operand in ((left, right), (right, left)):
        number = _field_number(state, "state")
        if number is not None and unit is not None and init[number] == unit:
            return operand
    return node


class _Exchanged(ast.NodeTransformer):
    """`input[i]` for `input[j]` and the reverse."""

    def __init__(self, i: int, j: int) -> None:
        self.other = {i: j, j: i}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        number = _field_number(node, "input")
        if number in self.other:
            return ast.Subscript(node.value, ast.Constant(self.other[number]), node.ctx)
        return self.generic_visit(node)


class _Commuted(ast.NodeTransformer):
    """The operands of every `+` and `*` of numbers in one order; each commutes exactly, also in floating point."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Mult) and _is_numeric(node):
            first, second = sorted((node.left, node.right), key=ast.dump)
            return ast.BinOp(first, node.op, second)
        return node


def _is_numeric(node: ast.expr) -> bool:
    """Whether an expression is arithmetic on fields and numbers; lists and tuples have a `+` that does not commute."""
    if isinstance(node, ast.BinOp):
        return _is_numeric(node.left) and _is_numeric(node.right)
    number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return number or _field_number(node, "input") is not None or _field_number(node, "state") is not None
