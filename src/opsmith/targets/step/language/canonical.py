"""Isomorphism of programs: are two texts the same program up to the names of locals, comments and layout?

Functions, keywords, constants and order are kept, as in the paper's filter (section 3.1). Names that are read before
they are bound (inputs, fns, sizes) are kept too, so that only names of the program's own making are renamed.
"""

from __future__ import annotations

import ast

from opsmith.targets.step.language.program import dedent
from opsmith.targets.step.language.values import BUILTINS


def canonical(source: str) -> str:
    """A text that is equal exactly for isomorphic programs; a text that does not parse stands for itself."""
    try:
        tree = ast.parse(dedent(source))
        tree.body = [statement for statement in tree.body if not _is_docstring(statement)]
        return ast.unparse(_Renamer().visit(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Renamer(ast.NodeTransformer):
    """Renames locals in the order of their first binding; a name seen first as a read keeps its name."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {name: name for name in BUILTINS}
        self.bound = 0

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            if isinstance(node.ctx, ast.Store):
                self.names[node.id] = f"_{self.bound}"
                self.bound += 1
            else:
                self.names[node.id] = node.id
        return ast.copy_location(ast.Name(self.names[node.id], node.ctx), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        node.generators = [self.visit(generator) for generator in node.generators]
        node.elt = self.visit(node.elt)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        return node
