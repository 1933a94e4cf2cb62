"""The code of a foreign module of torch around its `forward`: what creates its weights, under another class name.

The text is parsed and written anew, never executed here. Creating weights in the order of the module, from its own
code, gives equal weights for equal seeds.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from opsmith.errors import UsageError

_MODEL, _NEW = "Model", "ModelNew"
_DROPPED = frozenset({"get_inputs", "get_init_inputs"})  # what makes inputs


@dataclass(frozen=True)
class ForeignCode:
    """The parts of a file that defines `Model`."""

    futures: str  # `from __future__` imports, which a file begins with
    top: str  # imports, constants, functions and classes that `Model` may use
    module: str  # class `ModelNew`: all of `Model` but its `forward`


def read_foreign(text: str, name: str) -> ForeignCode:
    """Raises UsageError for a text without such a class."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"{name}: the source's text is no Python: {error}; expected a file that defines Model"
        ) from None
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == _MODEL), None)
    if model is None:
        raise UsageError(f"{name}: the source's text has no class {_MODEL}; expected one, as KernelBench's files have")
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    left_out = [*futures, model, *(node for node in tree.body if _is_text(node) or _is_function(node, _DROPPED))]
    top = [node for node in tree.body if node not in left_out]
    return ForeignCode(_write_nodes(futures), _write_nodes(top), ast.unparse(_strip_forward(model)))


def _is_function(node: ast.stmt, names: Collection[str]) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in names


def _write_nodes(nodes: list[ast.stmt] | list[ast.ImportFrom]) -> str:
    return "\n".join(map(ast.unparse, nodes))


def _strip_forward(model: ast.ClassDef) -> ast.ClassDef:
    renamed: ast.ClassDef = _RenameModel().visit(model)
    renamed.name = _NEW
    renamed.body = [node for node in renamed.body if not _is_function(node, ("forward",)) and not _is_text(node)]
    ast.fix_missing_locations(renamed)
    return renamed


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _RenameModel(ast.NodeTransformer):
    """`super(Model, self)` and the like."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(_NEW, node.ctx), node) if node.id == _MODEL else node
