"""Foreign Python texts: what may be executed in a confined worker, decided by their syntax alone.

At top level stand imports of a few packages, constants, functions and classes, so that nothing of the file's own runs
when it is read. What the functions do is the worker's to confine; the plain ways out of the process are refused here
already, because a line says more than a worker that ended.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

MOST_CHARACTERS = 1 << 18
PACKAGES = frozenset(
    ["torch", "math", "numpy", "einops", "typing", "functools", "itertools", "collections", "dataclasses", "__future__"]
)
_OPTIONAL = ("einops",)
_DENIED_MODULES = ("torch.hub", "torch.utils.cpp_extension", "torch.distributed", "torch.multiprocessing")
_DENIED_NAMES = frozenset(["open", "exec", "eval", "compile", "__import__", "input", "breakpoint"])
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)


class CodeRefusalError(ValueError):
    """Foreign code that is not executed; `str(error)` says why, with a line."""


def check_foreign_code(text: str) -> ast.Module:
    """The syntax tree of a text that may be executed in a confined worker, and that calls nothing at top level. Raises
    CodeRefusalError."""
    tree = parse_foreign_code(text)
    check_foreign_tree(tree)
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
        raise CodeRefusalError(f"line {error.lineno or 1}: a syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeRefusalError(f"Python cannot parse it: {type(error).__name__}") from None


def check_foreign_tree(tree: ast.Module, may_compute: bool = False) -> None:
    """Raises CodeRefusalError. `may_compute`: the top level may call what functions may, since the worker that confines
    them runs it too."""
    try:
        for statement in tree.body:
            _check_statement(statement, may_compute)
            for node in ast.walk(statement):
                _check_node(node)
    except (RecursionError, MemoryError):
        raise CodeRefusalError("its expressions are nested too deeply") from None


def _check_statement(statement: ast.stmt, may_compute: bool) -> None:
    """Raises CodeRefusalError for what does more at top level than to define."""
    if not _is_harmless(statement, may_compute):
        excerpt = ast.unparse(statement).split("\n")[0][:60]
        expected = "imports, constants, functions and classes at top level"
        raise CodeRefusalError(f"line {statement.lineno}: `{excerpt}` would run; expected {expected}")


def _is_harmless(statement: ast.stmt, may_compute: bool) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or (may_compute and _is_pure(statement.value, may_compute))
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return statement.value is None or all(_is_pure(node, may_compute) for node in ast.walk(statement.value))
    return isinstance(statement, _DEFINITIONS)


def _is_pure(node: ast.AST, may_compute: bool) -> bool:
    return not (isinstance(node, ast.Call) and not may_compute) and not isinstance(
        node, ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom
    )


def _check_node(node: ast.AST) -> None:
    """Raises CodeRefusalError for imports of other packages, and for what reaches out of the process."""
    for module in _list_modules(node):
        _check_module(module, getattr(node, "lineno", 0))
    if isinstance(node, ast.Attribute):
        _refuse_denied(ast.unparse(node) if _is_dotted(node) else "", node.lineno)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DENIED_NAMES:
        raise CodeRefusalError(f"line {node.lineno}: calls {node.func.id}; expected code that computes")


def _list_modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        yield f"{'.' * node.level}{node.module or ''}"
        yield from (f"{node.module}.{alias.name}" for alias in node.names if not node.level)


def _check_module(module: str, line: int) -> None:
    package = module.partition(".")[0]
    if package not in PACKAGES:
        names = ", ".join(sorted(PACKAGES - {"__future__"}))
        raise CodeRefusalError(f"line {line}: imports {module}; expected {names}")
    if package in _OPTIONAL and find_spec(package) is None:
        raise CodeRefusalError(
            f"line {line}: imports {package}, which is not installed here; try: pip install {package}"
        )
    _refuse_denied(module, line)


def _refuse_denied(module: str, line: int) -> None:
    for denied in _DENIED_MODULES:
        if module == denied or module.startswith(f"{denied}."):
            raise CodeRefusalError(f"line {line}: {denied}; expected code that computes")


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))
