"""The program language: what the text of an `impl` does, statement by statement.

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
from opsmith.targets.step.language.endings import meant_return
from opsmith.targets.step.language.expressions import MAX_DEPTH, Evaluator, stored_names
from opsmith.targets.step.language.values import (
    BUILTINS,
    UNKNOWN,
    LangError,
    TooLarge,
    Unknown,
    describe_construct,
    describe_value,
    remedy_for,
    report_mistake,
)

MAX_TEXT = 64 * 1024
MAX_FINDINGS = 20


@dataclass
class Interpreter(Evaluator):
    """Runs one program; `errors` are its LANG findings, `lines` its text as it was read."""

    errors: list[Diagnostic] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def run_program(self, source: str) -> Any:
        """The returned value (a tuple of one or more), or None where there is none to check."""
        try:
            tree = self._parse_source(source)
            self._check_return(tree.body)
            return self._run_block(tree.body, top=True)
        except LangError as error:
            self._report_error(error, error.line)
            return None

    def _parse_source(self, source: str) -> ast.Module:
        if len(source) > MAX_TEXT:
            raise TooLarge("the program", f"{len(source)} characters", f"at most {MAX_TEXT}", "write less")
        text = dedent_program(source)
        self.lines = text.split("\n")
        try:
            return parse_program(text)
        except SyntaxError as error:
            remedy = "close the bracket" if "never closed" in error.msg else self._meant_return(error.lineno)
            expected, column = "a program of the language", error.offset or None
            raise LangError("syntax", error.msg, expected, remedy, error.lineno, column) from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            description = (
                "null bytes" if "null" in str(error) else "text that nests too deep or holds too large a number"
            )
            raise LangError("syntax", description, f"plain text, nested at most {MAX_DEPTH} deep") from None

    def _meant_return(self, line: int | None = None) -> str:
        return meant_return(self.lines, line or len(self.lines), self.names)

    def _check_return(self, body: list[ast.stmt]) -> None:
        kinds: list[type[ast.stmt]] = [type(statement) for statement in body]
        if ast.Return not in kinds:
            line, column = (body[-1].lineno, body[-1].col_offset + 1) if body else (1, None)
            expected, remedy = "a return of the output streams", self._meant_return() or "return E1"
            raise LangError("the program", "no return at the end", expected, remedy, line, column)
        if kinds.index(ast.Return) != len(body) - 1:
            after = body[kinds.index(ast.Return) + 1].lineno
            raise LangError("the program", "code after return", "return as the last statement", "remove it", after)

    def _report_error(self, error: LangError, line: int | None) -> None:
        line = error.line or line
        finding = report_mistake("LANG", error.where, error, self.lines, line)
        if len(self.errors) < MAX_FINDINGS and finding not in self.errors:  # a loop repeats its findings
            self.errors.append(finding)

    def _run_block(self, body: Iterable[ast.stmt], *, top: bool = False) -> Any:
        result, depth = None, self.depth
        for statement in body:
            self.depth = depth
            try:
                if type(statement) is ast.Assign:
                    self._run_assignment(statement)
                elif isinstance(statement, ast.Return):
                    result = self._run_return(statement, top)
                else:
                    self._run_statement(statement)
            except TooLarge as error:
                error.line = error.line or statement.lineno
                raise
            except LangError as error:
                self._report_error(error, statement.lineno)
                self._forget_names(statement)
        self.depth = depth
        return result

    def _run_assignment(self, statement: ast.Assign) -> None:
        if len(statement.targets) != 1:
            raise LangError("assignment", "several targets (a = b = ...)", "one name", "one assignment per line")
        self.bind_target(statement.targets[0], self.evaluate_node(statement.value))

    def _run_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.For):
            self._run_loop(statement)
        elif isinstance(statement, ast.Expr):
            self._expression_statement(statement.value)
        else:
            raise LangError(
                "statement", describe_construct(statement), "=, .append( ), for or return", remedy_for(statement)
            )

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            self._run_append(node, node.func.value)
            return
        raise LangError("statement", "an expression whose value is dropped", "an assignment", "E1 = ...")

    def _run_append(self, node: ast.Call, owner: ast.expr) -> None:
        if not isinstance(owner, ast.Name) or len(node.args) != 1 or node.keywords:
            raise LangError("append", "another form", "NAME.append(value)")
        target = self.evaluate_node(owner)
        value = self.evaluate_node(node.args[0])
        if isinstance(target, Unknown):
            return
        if not isinstance(target, list):
            raise LangError("append", f"{describe_value(target)} {owner.id}", "a list", f"{owner.id} = [] first")
        target.append(value)

    def _run_loop(self, statement: ast.For) -> None:
        if statement.orelse:
            raise LangError("for", "an else branch", "a plain loop", "remove else")
        for element in self.iterate_over(statement.iter):
            self.count_steps()
            self.bind_target(statement.target, element)
            self.depth += 1
            self._run_block(statement.body)
            self.depth -= 1

    def _run_return(self, statement: ast.Return, top: bool) -> Any:
        if not top:
            raise LangError("return", "return inside a loop", "return at top level, last")
        if statement.value is None:
            raise LangError("return", "nothing", "the output streams", self._meant_return() or "return E1")
        value = self.evaluate_node(statement.value)
        return tuple(value) if isinstance(value, (tuple, list)) else (value,)

    def _forget_names(self, statement: ast.stmt) -> None:
        """Names that a skipped statement would have bound are unknown, so that one mistake gives one message."""
        names, steps = stored_names(statement)
        self.bound |= dict.fromkeys([name for name in names if name not in BUILTINS], UNKNOWN)
        self.steps += steps  # a loop may skip a long statement again and again


@lru_cache(maxsize=2)  # one text is checked at many sizes
def parse_program(text: str) -> ast.Module:
    """The text's syntax tree, for reading only."""
    return ast.parse(text)


def dedent_program(source: str) -> str:
    """The program's text without the indentation that all its lines share, and without blank lines at its ends."""
    if source[:1].isspace() or "\t" in source or " \n" in source or source.endswith(" "):
        source = textwrap.dedent(source.expandtabs(8))  # else it starts at the margin and has no line of blanks
    return source.strip("\n")
