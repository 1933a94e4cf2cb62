"""What languages that are embedded in Python share: a text is looked at, node by node, before anything executes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from opsmith.records import Diagnostic
from opsmith.targets.native.source_checks import KIND, Findings

DEEPEST = 60  # nodes within nodes
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift),
    *(ast.RShift, ast.UAdd, ast.USub, ast.Invert, ast.Not, ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE),
    *(ast.Gt, ast.GtE),
)
_WORDS = {
    **{ast.Import: "import", ast.ImportFrom: "import", ast.JoinedStr: "an f-string", ast.FunctionDef: "a function"},
    **{ast.ClassDef: "a class", ast.Lambda: "lambda", ast.NamedExpr: "`:=`", ast.Starred: "`*`", ast.Pow: "`**`"},
}


def parse_python(source: str, language: str) -> ast.Module | Diagnostic:
    """The tree, or why there is none."""
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return Diagnostic(KIND, "program", str(error.msg)[:200], "Python's syntax", "", error.lineno)
    except (ValueError, RecursionError, MemoryError):
        return Diagnostic(KIND, "program", "a text that Python's parser does not take", language, "nest it less")


def walk_nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST, int]]:
    """All nodes in the order of the text with their parents and depths, by a stack of our own."""
    stack = [(tree, tree, 0)]
    while stack:
        node, parent, depth = stack.pop()
        yield node, parent, depth
        stack += [(child, node, depth + 1) for child in reversed(list(ast.iter_child_nodes(node)))]


def refuse(node: ast.AST, given: str, expected: str, remedy: str = "remove it") -> Diagnostic:
    return Diagnostic(KIND, "program", given, expected, remedy, getattr(node, "lineno", None))


def refuse_depth(node: ast.AST) -> Diagnostic:
    return refuse(node, f"more than {DEEPEST} expressions within each other", "less", "name parts of it")


def name_node(node: ast.AST) -> str:
    return _WORDS.get(type(node), f"a Python {type(node).__name__}")


def check_number(node: ast.Constant) -> Findings:
    if isinstance(node.value, int) and abs(node.value) >= 1 << 64:
        yield refuse(node, "a number of more than 64 bits", "numbers of at most 64 bits")
    elif not isinstance(node.value, int | float):
        yield refuse(node, f"{node.value!r:.40}", "numbers, True and False")


def check_spelling(node: ast.AST, name: str) -> Findings:
    """Of a name that the text defines."""
    if (not _NAME.fullmatch(name) and name != "_") or "__" in name or name.startswith("opsmith"):
        yield refuse(node, f"the name {name[:80]}", "names of ASCII letters, digits and single `_`, a letter first")
