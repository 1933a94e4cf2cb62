"""Texts of parts: statements over what a part takes, and sizes as authors' code writes them."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Mapping, Sequence

from opsmith.problems.dims import Dim
from opsmith.targets.step.planning.statements import ReferenceStatement


def write_size(dim: Dim) -> str:
    """A dim as an expression of sizes: M*N -> M_value*N_value."""
    return re.sub(r"[^\W\d]\w*", lambda match: f"{match[0]}_value", str(dim)).replace("/", "//")


def write_statements(
    statements: Sequence[ReferenceStatement],
    tensors: Collection[str],
    constants: Mapping[str, ast.expr],
    enter: Mapping[str, str],
    leave: Mapping[str, str],
) -> str:
    """The text of a part. `tensors`: names that are read from input_data as they are; `constants`: what stands for
    others; `enter` and `leave`: texts that lead from a border to the value of that name, and from the value to the
    border, `{}` for the tensor."""
    rows = [f"{name} = {text.format(_write_tensor(name))}" for name, text in enter.items() if text != "{}"]
    plain = {*tensors, *(name for name, text in enter.items() if text == "{}")}
    reader = _Reader(plain, constants)
    rows += [ast.unparse(reader.visit(copy.deepcopy(row))) for statement in statements for row in statement.tree]
    rows += [f"{name} = {text.format(name)}" for name, text in leave.items() if text != "{}"]
    return "\n".join(rows) + "\n"


def _write_tensor(name: str) -> str:
    return f"input_data['{name}']"


class _Reader(ast.NodeTransformer):
    def __init__(self, tensors: Collection[str], constants: Mapping[str, ast.expr]) -> None:
        self._tensors, self._constants = tensors, constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._tensors and isinstance(node.ctx, ast.Load):
            return ast.parse(_write_tensor(node.id), mode="eval").body
        return copy.deepcopy(self._constants.get(node.id, node))
