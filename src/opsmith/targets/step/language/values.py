"""What a program's names can stand for, and how a program is refused: the values of the program language."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from opsmith.problems.dims import Dim
from opsmith.records import Diagnostic, printable
from opsmith.targets.step.language.ops import OpError

MAX_WORDS = 1000  # characters of each part of a message
MAX_OPENED = 1000  # parts of a nested list that are looked at
BUILTINS = frozenset({"step", "len", "list", "tuple", "zip", "enumerate", "range"})


class Unknown:
    """The value of an expression that was already reported; it passes every further check silently."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Sized:
    """`X_value`, and products and exact quotients of such: a number that remembers its dim."""

    value: int
    dim: Dim


@dataclass(eq=False, slots=True)
class Primitive:
    """`step.NAME(...)`: may be applied several times. `config` is what the Applier made of the keywords."""

    op: str
    config: Any
    line: int


@dataclass(eq=False, slots=True)
class Opaque:
    """A named value with no meaning to the interpreter: the base of streams and fns. `noun`: its kind in messages."""

    noun: ClassVar[str] = "value"
    name: str


class Applier(Protocol):
    """What the interpreter asks of its owner."""

    def configure_primitive(self, op: str, keywords: Mapping[str, Any], line: int) -> Any:
        """Check a primitive's arguments; returns what `apply_primitive` gets back."""

    def apply_primitive(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        """One application; returns a stream, a tuple or a list of streams."""

    def bind_name(self, name: str, value: Any) -> None:
        """A statement or comprehension gave `value` a name."""

    def read_size(self, sized: Sized) -> int:
        """The number behind `X_value` is used as a number."""


class LangError(Exception):
    """Outside the language: reported at the statement's line, then the statement is skipped."""

    def __init__(
        self,
        where: str,
        given: str,
        expected: str,
        remedy: str = "",
        line: int | None = None,
        column: int | None = None,  # from 1; where the line alone does not say it
    ) -> None:
        super().__init__(given)
        self.where, self.given, self.expected, self.remedy = where, given, expected, remedy
        self.line, self.column = line, column


class TooLarge(LangError):
    """A limit struck: the rest of the program is not looked at."""


def list_leaves(value: Any) -> list[Any]:
    """What a value holds, its lists and tuples opened. Lists may share parts, so no more than MAX_OPENED are opened."""
    leaves: list[Any] = []
    pending = [value]
    for _ in range(MAX_OPENED):
        if not pending:
            break
        entry = pending.pop()
        if isinstance(entry, (list, tuple)):
            pending += entry[:MAX_OPENED]
        else:
            leaves.append(entry)
    return leaves


def shorten_text(text: str) -> str:
    """A text for a message: its beginning, where it is too long, and nothing that steers a terminal or its reading."""
    text = text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}..."
    return printable(text)


def quote_line(lines: Sequence[str], line: int | None) -> str:
    """A line of the program for a message; lines are counted from 1."""
    return shorten_text(lines[line - 1].strip()[:200].replace("\t", " ")) if line and line <= len(lines) else ""


def report_mistake(
    kind: str, where: str, error: LangError | OpError, lines: Sequence[str], line: int | None
) -> Diagnostic:
    """A finding on a line of the program."""
    where, given, expected, remedy = map(shorten_text, (where, error.given, error.expected, error.remedy))
    column = error.column if isinstance(error, LangError) else None
    return Diagnostic(kind, where, given, expected, remedy, line, column, quote_line(lines, line))


def describe_value(value: Any) -> str:
    """A value in words, for messages."""
    if isinstance(value, Opaque):
        return f"{value.noun} {value.name}".strip()
    if isinstance(value, Primitive):
        return f"the primitive {value.op}"
    if isinstance(value, Sized):
        return f"{value.dim} = {value.value}"
    if isinstance(value, Dim):
        return f"the dim {value}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return "an unknown value" if isinstance(value, Unknown) else f"{value}"


_WORDS: dict[type[ast.AST], str] = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.FunctionDef: "a function definition",
    ast.AsyncFunctionDef: "a function definition",
    ast.ClassDef: "a class definition",
    ast.While: "a while loop",
    ast.If: "if",
    ast.IfExp: "a conditional expression",
    ast.Lambda: "a lambda",
    ast.AugAssign: "an augmented assignment",
    ast.AnnAssign: "an annotation",
    ast.NamedExpr: "an assignment expression",
    ast.Compare: "a comparison",
    ast.JoinedStr: "a format string",
    ast.Starred: "a starred expression",
    ast.DictComp: "a dict comprehension",
    ast.SetComp: "a set comprehension",
    ast.GeneratorExp: "a generator",
}


def describe_construct(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"attribute `{node.attr}`"
    if isinstance(node, ast.Constant):
        return f"the constant {_constant_text(node.value)[:40]!r}"
    return _WORDS.get(type(node), f"{type(node).__name__.lower()}")


def _constant_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # Python prints no int of more than 4300 digits
        return f"0x{value:x}"


def remedy_for(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return "streams are read only by primitives: step.Map(fn=...).apply(E0)"
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return "a plain assignment: E1 = ..."
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Lambda, ast.FunctionDef)):
        return "write the primitives out; functions come from the task"
    return ""
