"""A definition's constraints in the language of problem files: constants written out, axes by the names of dims."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from opsmith.imports.flashinfer.dataset import list_constants
from opsmith.imports.flashinfer.formats import Definition
from opsmith.problems.constraints import ConstraintError, list_symbols, satisfies_constraint


def translate_constraints(definition: Definition, dims: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that a problem file can state, and the others as they are."""
    texts: list[str] = []
    doubts: list[str] = []
    for text in definition.constraints or ():
        translated = _translate_text(
            text, {**{name: str(size) for name, size in list_constants(definition).items()}, **dims}
        )
        if translated is None:
            doubts.append(text)
        elif list_symbols(translated) or not satisfies_constraint(translated, {}):  # one of constants alone may hold
            texts.append(translated)
    return tuple(texts), tuple(doubts)


def _translate_text(text: str, words: Mapping[str, str]) -> str | None:
    """None: it is no comparison of axes."""
    try:
        if not list_symbols(text) <= words.keys():
            return None
        return ast.unparse(_Renaming(words).visit(ast.parse(text.strip(), mode="eval")))
    except ConstraintError:
        return None


class _Renaming(ast.NodeTransformer):
    """Names of axes replaced by dims and numbers."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def visit_Name(self, node: ast.Name) -> ast.AST:
        word = self._words.get(node.id, node.id)  # `min` and `max` stay
        return ast.Constant(int(word)) if word.isdecimal() else ast.Name(word, ast.Load())
