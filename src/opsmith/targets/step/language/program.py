"""The program language: what does the text of an `impl` do, statement by statement? (reference section 3)

A program is a small subset of Python, parsed with `ast` and interpreted, never executed as Python. Each
`primitive.apply(argument)` is handed to an `Applier`, which types it (`check`). What is outside the subset, or too
large, becomes a LANG diagnostic with its line; the statement's targets are then `UNKNOWN`, and the rest is still
checked.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.records import Diagnostic
from opsmith.targets.step.language.expressions import MAX_DEPTH, Evaluator, stored_names
from opsmith.targets.step.language.values import (
    BUILTINS,
    UNKNOWN,
    LangError,
    TooLarge,
    Unknown,
    construct,
    describe,
    quoted,
    remedy_for,
    short,
)

MAX_TEXT = 64 * 1024
MAX_FINDINGS = 20


@dataclass
class Interpreter(Evaluator):
    """Runs one program; `errors` are its LANG findings, `lines` its text as it was read."""

    errors: list[Diagnostic] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def run(self, source: str) -> Any:
        """The returned value (a tuple of one or more), or None where there is none to check."""
        try:
            tree = self._parse(source)
            self._check_return(tree.body)
            return self._block(tree.body, top=True)
        except LangError as error:
            self._report(error, error.line)
            return None

    def _parse(self, source: str) -> ast.Module:
        if len(source) > MAX_TEXT:
            raise TooLarge("the program", f"{len(source)} characters", f"at most {MAX_TEXT}", "write less")
        text = dedent(source)
        self.lines = text.split("\n")
        try:
            return parse(text)
        except SyntaxError as error:
            raise LangError("syntax", error.msg, "a program of the language", "", error.lineno) from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            given = "null bytes" if "null" in str(error) else "text that nests too deep or holds too large a number"
            raise LangError("syntax", given, f"plain text, nested at most {MAX_DEPTH} deep") from None

    def _check_return(self, body: list[ast.stmt]) -> None:
        kinds: list[type[ast.stmt]] = [type(statement) for statement in body]
        if ast.Return not in kinds:
            line = body[-1].lineno if body else 1
            raise LangError("the program", "no return at the end", "a return of the output streams", "return E1", line)
        if kinds.index(ast.Return) != len(body) - 1:
            after = body[kinds.index(ast.Return) + 1].lineno
            raise LangError("the program", "code after return", "return as the last statement", "remove it", after)

    def _report(self, error: LangError, line: int | None) -> None:
        line = error.line or line
        text = quoted(self.lines, line)
        given, expected, remedy = short(error.given), short(error.expected), short(error.remedy)
        found = Diagnostic("LANG", short(error.where), given, expected, remedy, line, None, text)
        if len(self.errors) < MAX_FINDINGS and found not in self.errors:  # a loop repeats its findings
            self.errors.append(found)

    def _block(self, body: Iterable[ast.stmt], *, top: bool = False) -> Any:
        result, depth = None, self.depth
        for statement in body:
            self.depth = depth
            try:
                if type(statement) is ast.Assign:
                    self._assign(statement)
                elif isinstance(statement, ast.Return):
                    result = self._return(statement, top)
                else:
                    self._statement(statement)
            except TooLarge as error:
                error.line = error.line or statement.lineno
                raise
            except LangError as error:
                self._report(error, statement.lineno)
                self._forget(statement)
        self.depth = depth
        return result

    def _assign(self, statement: ast.Assign) -> None:
        if len(statement.targets) != 1:
            raise LangError("assignment", "several targets (a = b = ...)", "one", "one assignment per line")
        self.bind_target(statement.targets[0], self.evaluate(statement.value))

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.For):
            self._for(statement)
        elif isinstance(statement, ast.Expr):
            self._expression_statement(statement.value)
        else:
            raise LangError("statement", construct(statement), "=, .append( ), for or return", remedy_for(statement))

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return
        if _is_method(node, "append"):
            self._append(node)
            return
        raise LangError("statement", "an expression whose value is dropped", "an assignment", "E1 = ...")

    def _append(self, node: Any) -> None:
        owner = node.func.value
        if not isinstance(owner, ast.Name) or len(node.args) != 1 or node.keywords:
            raise LangError("append", "another form", "NAME.append(value)")
        target = self.evaluate(owner)
        value = self.evaluate(node.args[0])
        if isinstance(target, Unknown):
            return
        if not isinstance(target, list):
            raise LangError("append", f"{describe(target)} {owner.id}", "a list", f"{owner.id} = [] first")
        target.append(value)

    def _for(self, statement: ast.For) -> None:
        if statement.orelse:
            raise LangError("for", "an else branch", "a plain loop", "remove else")
        for item in self.iterate(statement.iter):
            self.tick()
            self.bind_target(statement.target, item)
            self.depth += 1
            self._block(statement.body)
            self.depth -= 1

    def _return(self, statement: ast.Return, top: bool) -> Any:
        if not top:
            raise LangError("return", "return inside a loop", "return at top level, last")
        if statement.value is None:
            raise LangError("return", "nothing", "the output streams", "return E1")
        value = self.evaluate(statement.value)
        return tuple(value) if isinstance(value, (tuple, list)) else (value,)

    def _forget(self, statement: ast.stmt) -> None:
        """Names that a skipped statement would have bound are unknown, so that one mistake gives one message."""
        names, steps = stored_names(statement)
        self.bound |= dict.fromkeys([name for name in names if name not in BUILTINS], UNKNOWN)
        self.steps += steps  # a loop may skip a long statement again and again


@lru_cache(maxsize=2)  # one text is checked at many sizes
def parse(text: str) -> ast.Module:
    """The text's syntax tree, for reading only."""
    return ast.parse(text)


def dedent(source: str) -> str:
    """The program's text without the indentation that all its lines share, and without blank lines at its ends."""
    if source[:1].isspace() or "\t" in source or " \n" in source or source.endswith(" "):
        source = textwrap.dedent(source.expandtabs(8))  # else it starts at the margin and has no line of blanks
    return source.strip("\n")


def _is_method(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
