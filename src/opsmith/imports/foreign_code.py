"""Foreign Python texts: what may be executed in a confined worker, decided by their syntax alone.

At top level stand imports of a few packages, constants, functions and classes, so that nothing of the file's own runs
when it is read. What the functions do is the worker's to confine.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

MOST_CHARACTERS = 1 << 18
_LIBRARY = ("math", "typing", "functools", "itertools", "collections", "dataclasses", "operator", "abc", "enum")
PACKAGES = frozenset({"torch", "numpy", "einops", "typing_extensions", "__future__", *_LIBRARY})
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)


class CodeRefusalError(ValueError):
    """Foreign code that is not executed; `str(error)` says why, with a line."""


def check_foreign_code(text: str) -> ast.Module:
    """The syntax tree of a text that may be executed in a confined worker. Raises CodeRefusalError."""
    tree = parse_foreign_code(text)
    for node in ast.walk(tree):
        for package in _list_packages(node):
            if package not in PACKAGES:
                packages = ", ".join(sorted(PACKAGES - {"__future__"}))
                raise CodeRefusalError(f"line {node.lineno}: imports {package}; expected {packages}")  # type: ignore[attr-defined]
    for statement in tree.body:
        if not _is_harmless(statement):
            excerpt = ast.unparse(statement).split("\n")[0][:60]
            expected = "imports, constants, functions and classes at top level"
            raise CodeRefusalError(f"line {statement.lineno}: `{excerpt}` would run; expected {expected}")
    return tree


def parse_foreign_code(text: str) -> ast.Module:
    """The syntax tree. Raises CodeRefusalError."""
    if len(text) > MOST_CHARACTERS:
        raise CodeRefusalError(f"code of {len(text)} characters; expected at most {MOST_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise CodeRefusalError(f"line {error.lineno or 1}: no Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeRefusalError(f"Python cannot parse it: {type(error).__name__}") from None


def _list_packages(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        yield "a neighbouring file" if node.level else (node.module or "").partition(".")[0]


def _is_harmless(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)  # a docstring
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value
        return value is None or not any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(value))
    return isinstance(statement, _DEFINITIONS)
