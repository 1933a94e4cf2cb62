"""Sizes as expressions of Python: of an axis, and of a symbol given the axes of the inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from opsmith.problems.dims import Dim
from opsmith.targets.native.library.sizes import SizeRule

Names = Mapping[str, str]  # of the problem -> in Python


def write_dim(dim: Dim, names: Names) -> str:
    """The length of an axis; `_opsmith_divide` raises where it is not whole."""
    top = _write_product(dim.coefficient.numerator, _list_factors(dim, 1, names))
    bottom = _write_product(dim.coefficient.denominator, _list_factors(dim, -1, names))
    return top if bottom == "1" else f"_opsmith_divide({top}, {bottom})"


def write_rule(rule: SizeRule, names: Names) -> str:
    """The size of a symbol, rounded down: the shapes are compared afterwards."""
    power = dict(rule.dim.powers)[rule.symbol]
    others = Dim(rule.dim.coefficient, tuple(pair for pair in rule.dim.powers if pair[0] != rule.symbol))
    length = f"{names[rule.tensor]}.shape[{rule.axis}]"
    top = _write_product(others.coefficient.denominator, [length, *_list_factors(others, -1, names)])
    bottom = _write_product(others.coefficient.numerator, _list_factors(others, 1, names))
    top, bottom = (top, bottom) if power > 0 else (bottom, top)
    value = top if bottom == "1" else f"max(1, ({top}) // ({bottom}))"
    return value if abs(power) == 1 else f"max(1, round(({value}) ** {1 / abs(power)!r}))"


def write_shape(dims: tuple[Dim, ...], names: Names) -> str:
    """A tuple of lengths, outermost first."""
    lengths = [write_dim(dim, names) for dim in dims]
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"


def rename_sizes(tree: ast.expr, names: Names) -> str:
    """An expression of a constraint, which is Python already."""
    return ast.unparse(_RenameSizes(names).visit(ast.parse(ast.unparse(tree), mode="eval")))


class _RenameSizes(ast.NodeTransformer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def _list_factors(dim: Dim, sign: int, names: Names) -> list[str]:
    return [names[name] for name, power in dim.powers for _ in range(power * sign)]


def _write_product(number: int, factors: list[str]) -> str:
    return " * ".join([*([str(number)] if number != 1 or not factors else []), *factors])
