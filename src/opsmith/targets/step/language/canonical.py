"""The canonical text of a program: equal for two that differ in names of locals, comments and layout alone.

Functions, keywords, constants and order are kept, as in the paper's filter (its section 3.1). A local is written as the
number of its first binding. Names that are read before they are bound (inputs, fns, sizes) are kept; so is, beside its
number, a name that only a loop bound, once the loop is over: the loop may have had nothing to run over.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from opsmith.targets.step.language.expressions import stored_names
from opsmith.targets.step.language.program import MAX_TEXT, dedent_program, parse_program
from opsmith.targets.step.language.values import BUILTINS


def canonical_text(source: str) -> str:
    """A text that is equal exactly for isomorphic programs; a text that does not parse stands for itself."""
    if len(source) > MAX_TEXT:
        return source
    try:
        writer = _Writer()
        body = parse_program(dedent_program(source)).body
        for statement in body:
            if statement is body[-1] or not _is_docstring(statement):
                writer.write_node(statement)
        return " ".join(writer.words)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


_FIELDS: Mapping[type[ast.AST], tuple[str, ...]] = {  # of the commonest, and where names are bound after their use
    ast.Assign: ("value", "targets"),
    ast.Call: ("func", "args", "keywords"),
    ast.Attribute: ("value", "attr"),
    ast.Constant: ("value",),
    ast.keyword: ("arg", "value"),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
}


class _Writer:
    """Writes a syntax tree as a list of words; every node stands between its class and a `)`."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.names: dict[str, str] = {name: name for name in BUILTINS}
        self.bound: list[str] = []  # the locals, in the order of their first bindings

    def write_node(self, node: Any) -> None:
        kind = type(node)
        if kind is ast.Name:
            self.words.append(self.names.get(node.id) or self._bind_first(node))
        elif kind is list:
            self._write_list(node)
        elif not isinstance(node, ast.AST):
            self.words.append(repr(node))
        else:
            self.words.append(f"{kind.__name__}(")
            _WRITERS.get(kind, _Writer._write_fields)(self, node)
            self.words.append(")")

    def _write_list(self, elements: list[Any]) -> None:
        self.words.append("[")
        for element in elements:
            self.write_node(element)
        self.words.append("]")

    def _write_fields(self, node: ast.AST) -> None:
        for name in _FIELDS.get(type(node)) or node._fields:
            if name != "ctx":
                self.write_node(getattr(node, name))

    def _bind_first(self, node: ast.Name) -> str:
        """What a name is written as from its first occurrence on."""
        self.names[node.id] = node.id
        if isinstance(node.ctx, ast.Store):
            self.names[node.id] = str(len(self.bound))
            self.bound.append(node.id)
        return self.names[node.id]

    def _write_loop(self, node: ast.For) -> None:
        before = len(self.bound)
        for child in (node.iter, node.target, node.body, node.orelse):
            self.write_node(child)
        for number, name in enumerate(self.bound[before:], before):
            if self.names.get(name) == str(number):
                self.names[name] = f"{number}:{name}"

    def _write_comprehension(self, node: ast.ListComp) -> None:
        """Its variables are its own; what it runs over does not see them."""
        self._write_list([generator.iter for generator in node.generators])
        targets = [name for generator in node.generators for name in stored_names(generator.target)[0]]
        own = [name for name in targets if name not in BUILTINS]
        outer = {name: self.names.pop(name) for name in own if name in self.names}
        for generator in node.generators:
            self._write_list([generator.target, generator.ifs, generator.is_async])
        self.write_node(node.elt)
        for name in own:
            self.names.pop(name, None)
        self.names |= outer


_WRITERS: Mapping[type[ast.AST], Callable[[_Writer, Any], None]] = {
    ast.For: _Writer._write_loop,
    ast.ListComp: _Writer._write_comprehension,
}
