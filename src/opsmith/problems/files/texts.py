"""The Python texts of an author's file: their normal form, and whether they parse.

Nothing here executes them. Normal form: no common indentation, no blank lines around it, one line break at the end.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from dataclasses import dataclass

MAX_CODE = 1 << 16  # characters of one text; its syntax tree takes several hundred bytes for each


@dataclass(frozen=True)
class CodeFinding:
    """What is wrong with a text, at line and column of the text itself (from 1)."""

    line: int
    column: int
    given: str
    expected: str
    remedy: str = ""


def normalise_code(text: str) -> str:
    """The normal form of a text; "" for one without any content."""
    body = textwrap.dedent(text).strip("\n")
    return body + "\n" if body.strip() else ""


def parse_code(text: str, wrap: str = "") -> tuple[ast.Module | None, CodeFinding | None]:
    """The syntax tree of a text, of a body below the line `wrap` if given, or what is wrong with it."""
    if len(text) > MAX_CODE:
        return None, CodeFinding(1, 1, f"{len(text)} characters", f"at most {MAX_CODE}", "no data in code")
    body = f"{wrap}\n{textwrap.indent(text, ' ', lambda line: True)}" if wrap else text
    shift = 1 if wrap else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(body), None
    except SyntaxError as error:
        line = max(1, (error.lineno or 1) - shift)
        rows = text.split("\n")
        excerpt = rows[line - 1].strip()[:80] if line <= len(rows) else ""
        return None, CodeFinding(line, max(1, (error.offset or 1) - shift), repr(excerpt), f"Python code: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return None, CodeFinding(1, 1, "a text that Python cannot parse", f"Python code: {type(error).__name__}")


def check_value(text: str) -> CodeFinding | None:
    """Whether a text's last statement has a value: an expression, or an assignment to one name."""
    tree, finding = parse_code(text)
    if tree is None:
        return finding
    remedy = "end with the tensor itself, or with S0 = ..."
    expected = "an expression or an assignment to one name as the last statement"
    if not tree.body:
        return CodeFinding(1, 1, "no statement", expected, remedy)
    last = tree.body[-1]
    if isinstance(last, ast.Expr) or (
        isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name)
    ):
        return None
    return CodeFinding(last.lineno, last.col_offset + 1, repr(abbreviate_node(last)), expected, remedy)


def abbreviate_node(node: ast.AST) -> str:
    """The beginning of a node's text."""
    try:
        return ast.unparse(node).split("\n")[0][:80]
    except (RecursionError, ValueError):  # ValueError: a number of more digits than Python writes
        return "a very long expression"
