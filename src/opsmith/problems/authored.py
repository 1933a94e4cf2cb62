"""Authors' code: the Python texts of a problem, compiled once and run in the namespace of a draw.

Two forms: a text whose last statement has the value (`Transform`: references, margins, cases), and the lines of
`global`. The code is trusted, but it runs in worker processes only. Whatever it does wrong is a `TaskFault`; errors of
ours are never dressed up as the author's.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from opsmith.problems.faults import TaskFault, make_fault

BUILTINS: Mapping[str, Any] = vars(builtins)


@dataclass(frozen=True)
class Transform:
    """A compiled text whose last statement is an expression, or an assignment to one name, and gives the value."""

    label: str
    text: str = field(repr=False)
    statements: CodeType = field(repr=False, compare=False)
    value: CodeType = field(repr=False, compare=False)
    name: str | None = None  # what the value is assigned to

    def run_text(self, namespace: dict[str, Any]) -> Any:
        """Execute in `namespace`, which keeps what the text assigns. Raises TaskFault."""
        try:
            exec(self.statements, namespace)
            value = eval(self.value, namespace)
        except (Exception, SystemExit) as error:
            raise blame_author("TASK", self.label, self.text, f"<{self.label}>", error) from error
        if self.name is not None:
            namespace[self.name] = value
        return value


@lru_cache(maxsize=1024)
def compile_transform(text: str, label: str) -> Transform:
    """A reference, margin or case. Raises TaskFault (TASK) unless its last statement has a value."""
    module = parse_code("TASK", text, label)
    last = module.body[-1] if module.body else None
    name: str | None = None
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name):
        name = last.targets[0].id
    elif not isinstance(last, ast.Expr):
        line = find_line(text, last.lineno) if last is not None else ""
        expected = "an expression, or an assignment to one name, as the last statement"
        raise make_fault("TASK", label, f"`{line}`" if line else "no statement", expected, text=line)
    filename = f"<{label}>"
    statements = compile(ast.Module(module.body[:-1], []), filename, "exec")
    return Transform(label, text, statements, compile(ast.Expression(last.value), filename, "eval"), name)


@lru_cache(maxsize=256)
def compile_function(text: str, label: str) -> tuple[CodeType, str]:
    """The code of a text that ends with the definition of a function, and its name. Raises TaskFault (TASK)."""
    module = parse_code("TASK", text, label)
    last = module.body[-1] if module.body else None
    if not isinstance(last, ast.FunctionDef):
        raise make_fault("TASK", label, "no function at the end", "`def` of the reference as the last statement")
    return compile(module, f"<{label}>", "exec"), last.name


@lru_cache(maxsize=256)
def compile_statements(text: str, label: str) -> tuple[CodeType, ...]:
    """The top-level statements of `global`, one by one. Raises TaskFault (TASK)."""
    module = parse_code("TASK", text, label)
    return tuple(compile(ast.Module([statement], []), f"<{label}>", "exec") for statement in module.body)


def run_statements(text: str, label: str, namespace: dict[str, Any], after_each: Callable[[], None]) -> None:
    """Execute `global`; `after_each` runs after every top-level statement. Raises TaskFault (TASK)."""
    for statement in compile_statements(text, label):
        try:
            exec(statement, namespace)
        except (Exception, SystemExit) as error:
            raise blame_author("TASK", label, text, f"<{label}>", error) from error
        after_each()


def make_namespace(names: Mapping[str, Any]) -> dict[str, Any]:
    """A namespace for authors' code with these names and Python's built-ins."""
    return {"__builtins__": BUILTINS, **names}


def parse_code(kind: str, text: str, label: str) -> ast.Module:
    """A text as Python. Raises TaskFault of that kind."""
    try:
        return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{label}, line {line}" if line else label
        reason = getattr(error, "msg", None) or str(error)
        raise make_fault(kind, where, reason, "Python statements", text=find_line(text, line)) from None


def blame_author(kind: str, label: str, text: str, filename: str, error: BaseException) -> TaskFault:
    """The finding for an exception; the innermost frame that lies in the author's text says where."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    where = f"{label}, line {lines[-1]}" if lines else label
    message = str(error).strip().split("\n", 1)[0]
    failure = f"{type(error).__name__}: {message}" if message else type(error).__name__
    line = find_line(text, lines[-1] if lines else None)
    return make_fault(kind, where, failure, "code that runs without an exception", text=line)


def find_line(text: str, number: int | None) -> str:
    """A line of a text, counted from 1; "": there is none."""
    rows = text.splitlines()
    return rows[number - 1].strip() if number is not None and 0 < number <= len(rows) else ""
