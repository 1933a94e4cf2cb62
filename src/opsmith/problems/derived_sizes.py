"""Derived sizes: dims whose size follows from those of others, such as the length of a convolution's output.

A text is whole-number arithmetic on dims: `+ - * // %`, brackets, `min` and `max`. It is read, never executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache

from opsmith.problems.dims import DimError

MAX_TEXT = 200  # characters

_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.FloorDiv: lambda x, y: x // y,
    ast.Mod: lambda x, y: x % y,
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}
_FORM = "whole numbers, dims, + - * // %, brackets, min and max"


@lru_cache(maxsize=1024)
def parse_size(text: str) -> tuple[ast.expr, frozenset[str]]:
    """The tree of a text, and the dims that it names. Raises DimError.

    >>> sorted(parse_size("(H + 2*P - 3)//2 + 1")[1])
    ['H', 'P']
    """
    if len(text) > MAX_TEXT:
        raise DimError(f"a derived size of {len(text)} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DimError(f"cannot read the derived size {text!r}; expected {_FORM}") from None
    names: set[str] = set()
    _collect_names(text, tree, names)
    return tree, frozenset(names)


def _collect_names(text: str, node: ast.expr, names: set[str]) -> None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return
        case ast.Name(id=name):
            names.add(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _collect_names(text, operand, names)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            _collect_names(text, left, names)
            _collect_names(text, right, names)
        case ast.Call(func=ast.Name(id=function), args=[_, _, *_] as arguments, keywords=[]) if function in _FUNCTIONS:
            for argument in arguments:
                _collect_names(text, argument, names)
        case _:
            raise DimError(f"cannot read {ast.unparse(node)!r} in the derived size {text!r}; expected {_FORM}")


def evaluate_size(text: str, sizes: Mapping[str, int]) -> int:
    """The size. Raises DimError where it is below 1, not defined, or a dim has no size.

    >>> evaluate_size("(H + 2*1 - 3)//2 + 1", {"H": 8})
    4
    """
    tree, names = parse_size(text)
    if missing := sorted(names - sizes.keys()):
        raise DimError(f"{text} has no value: the size of {missing[0]} is not known")
    try:
        size = _evaluate_node(tree, sizes)
    except ZeroDivisionError:
        size = 0
    if size < 1:
        chosen = ", ".join(f"{name} = {sizes[name]}" for name in sorted(names))
        raise DimError(f"{text} is no size of at least 1: {chosen}")
    return size


def _evaluate_node(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(operand=operand):
            return -_evaluate_node(operand, sizes)
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_evaluate_node(left, sizes), _evaluate_node(right, sizes))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _FUNCTIONS[function](*(_evaluate_node(argument, sizes) for argument in arguments))
    raise DimError(f"cannot evaluate {ast.unparse(node)!r}")


def derive_sizes(derived: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, int]:
    """The given sizes and those that follow from them, in the order of the file. Raises DimError."""
    complete = {name: size for name, size in sizes.items() if name not in derived}
    for name, text in derived.items():
        complete[name] = evaluate_size(text, complete)
    return complete
